//! SCION's control-plane PKI: TRCs, certificates, and what they sign.
//!
//! The roots of trust of an ISD stand in its TRC, which the voting ASes sign; an AS has a
//! certificate from a certification authority, and that one from a root in the TRC. Formats and
//! rules are those of the "SCION Control-Plane PKI" documents and of scionproto.

mod certificate;
mod chain;
mod cms;
mod ecdsa;
mod issue;
mod key;
mod message;
mod oid;
mod payload;
mod pem;
mod segment;
mod signer;
mod store;
mod trc;
mod write;

pub use self::certificate::{Certificate, CertificateError, Kind, Validity};
pub use self::chain::{Chain, ChainError};
pub use self::cms::SignedError;
pub use self::issue::SignError;
pub use self::key::KeyError;
pub use self::message::MessageError;
pub use self::segment::{ChainQuery, SegmentVerifyError};
pub use self::signer::Signer;
pub use self::store::{LoadError, Store};
pub use self::trc::{Trc, TrcError, TrcId, TrcVerifyError};
pub use self::write::{AsRole, WriteError, write};
