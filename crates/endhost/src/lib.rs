//! A host in a SCION AS: find paths, send and receive on a chosen path, hear SCMP.
//!
//! - [`Daemon`]: the SCION daemon of this AS, asked over gRPC.
//! - [`Endhost`]: the paths to other ASes, kept fresh, without those that lead over dead links.

mod addr;
pub mod daemon;
mod dataplane;
mod endhost;
mod path;

pub use addr::{AddrError, ScionAddr};
pub use daemon::{Daemon, DaemonError};
pub use endhost::{Endhost, EndhostError, PathsError};
pub use path::{Path, PathError};
pub use sciparse::identifier::isd_asn::IsdAsn;
