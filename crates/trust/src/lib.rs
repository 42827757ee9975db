//! SCION's control-plane PKI: TRCs, certificates, and what they sign.
//!
//! The roots of trust of an ISD stand in its TRC, which the voting ASes sign;
//! an AS has a certificate from a certification authority, and that one from
//! a root in the TRC. Formats and rules are those of the "SCION Control-Plane
//! PKI" documents and of scionproto.

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

pub use certificate::{Certificate, CertificateError, Kind, Validity};
pub use chain::{Chain, ChainError};
pub use cms::SignedError;
pub use issue::SignError;
pub use key::KeyError;
pub use message::MessageError;
pub use segment::{ChainQuery, SegmentVerifyError};
pub use signer::Signer;
pub use store::{LoadError, Store};
pub use trc::{Trc, TrcError, TrcId, TrcVerifyError};
pub use write::{AsRole, WriteError, write};
