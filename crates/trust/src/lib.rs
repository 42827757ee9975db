//! SCION's control-plane PKI: TRCs, certificates and signatures.
//!
//! The TRC of an ISD contains its roots of trust, and is signed by the voting ASes. A certification
//! authority issues the certificate of an AS; a root in the TRC issues that of the authority.
//! Formats and rules are those of the "SCION Control-Plane PKI" documents and of scionproto.

mod certificate;
mod chain;
mod cms;
mod ecdsa;
mod error;
mod issue;
mod issuer;
mod key;
mod message;
mod oid;
mod pem;
mod roles;
mod segment;
mod signer;
mod store;
mod trc;
mod trc_verify;
mod update;
mod write;

pub use self::certificate::{Certificate, CertificateKind, Validity};
pub use self::chain::Chain;
pub use self::error::{ParseError, SignError};
pub use self::issuer::{IssueError, Issuer};
pub use self::key::master_key;
pub use self::roles::{RoleFolders, check_roles, set_roles};
pub use self::segment::SegmentVerifyError;
pub use self::signer::Signer;
pub use self::store::{ChainQuery, LoadError, Store};
pub use self::trc::{Trc, TrcContent, TrcId};
pub use self::trc_verify::TrcVerifyError;
pub use self::update::{add_core, check_voters, set_core};
pub use self::write::{AsRole, VOTING, WriteError, write, write_with};
