//! SCION's control-plane PKI: TRCs, certificates and signatures.
//!
//! The roots of trust of an ISD are in its TRC, which the voting ASes sign; an AS has a certificate
//! from a certification authority, and the authority one from a root in the TRC. Formats and rules
//! are those of the "SCION Control-Plane PKI" documents and of scionproto.

mod certificate;
mod chain;
mod cms;
mod ecdsa;
mod error;
mod issue;
mod key;
mod message;
mod oid;
mod pem;
mod segment;
mod signer;
mod store;
mod trc;
mod trc_verify;
mod write;

pub use self::certificate::{Certificate, Kind, Validity};
pub use self::chain::Chain;
pub use self::error::{ParseError, SignError};
pub use self::segment::SegmentVerifyError;
pub use self::signer::Signer;
pub use self::store::{ChainQuery, LoadError, Store};
pub use self::trc::{Trc, TrcContent, TrcId};
pub use self::trc_verify::TrcVerifyError;
pub use self::write::{AsRole, WriteError, write};
