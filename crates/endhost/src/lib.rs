//! A host in a SCION AS: finds paths, sends and receives on a chosen path, handles SCMP errors.
//!
//! - [`Bootstrap`]: how this host determines its AS and its source of paths.
//! - [`Daemon`]: a client of the SCION daemon of this AS (gRPC).
//! - [`Endhost`]: the paths to other ASes, kept fresh, without those over dead links.
//! - [`plain_ip`]: hosts without SCION, to use lanes and connections over plain IP.
//! - [`lanes`]: paths in use by a socket, each kept fresh until its end.
//! - [`requests`] for [`ping`] and [`traceroute`], and [`probe`]: whether a host answers, over
//!   which routers, and which paths work.

mod bootstrap;
mod clock;
pub mod daemon;
mod endhost;
mod headers;
pub mod lanes;
mod local_as;
mod outage;
mod path;
pub mod patience;
pub mod ping;
mod plain_ip;
pub mod probe;
pub mod requests;
pub mod responder;
mod service;
pub mod socket;
mod source;
mod standalone;
mod sync;
pub mod traceroute;

pub use hawser_packet::{AddrError, Quote, ScionAddr, ScmpError};
pub use sciparse::identifier::isd_asn::IsdAsn;

pub use self::bootstrap::{Attempt, Bootstrap, BootstrapError};
pub use self::daemon::Daemon;
pub use self::endhost::{Endhost, PathsError};
pub use self::headers::{Headers, HeadersError};
pub use self::local_as::LocalAs;
pub use self::outage::Outage;
pub use self::path::{Path, PathError};
pub use self::plain_ip::{on_plain_ip, plain_ip};
pub use self::service::{Service, SourceError};
