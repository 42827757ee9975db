//! SCION's control-plane PKI: TRCs, certificates, and what they sign.
//!
//! The roots of trust of an ISD stand in its TRC, which the voting ASes sign;
//! an AS has a certificate from a certification authority, and that one from
//! a root in the TRC. Formats and rules are those of the "SCION Control-Plane
//! PKI" documents and of scionproto.

mod cms;
mod issue;
mod key;
mod oid;
mod payload;
mod write;

pub use issue::{Kind, SignError};
pub use key::KeyError;
pub use write::{AsRole, WriteError, write};
