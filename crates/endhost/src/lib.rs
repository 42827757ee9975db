//! A host in a SCION AS: find paths, send and receive on a chosen path, hear SCMP.
//!
//! - [`Daemon`]: the SCION daemon of this AS, asked over gRPC.
//! - [`Endhost`]: the paths to other ASes, kept fresh, without those that lead over dead links.

mod addr;
pub mod daemon;
mod dataplane;
mod endhost;
mod outage;
mod path;
pub mod ping;
pub mod responder;
pub mod socket;
pub mod wire;

pub use addr::{AddrError, ScionAddr};
pub use daemon::{Daemon, DaemonError, LocalAs};
pub use endhost::{Endhost, EndhostError, PathsError};
pub use outage::Outage;
pub use path::{Path, PathError};
pub use sciparse::identifier::isd_asn::IsdAsn;
