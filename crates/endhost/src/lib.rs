//! A host in a SCION AS: finds paths, sends and receives on a chosen path, handles SCMP errors.
//!
//! - [`Bootstrap`]: how this host determines its AS and its source of paths.
//! - [`Daemon`]: a client of the SCION daemon of this AS (gRPC).
//! - [`Endhost`]: the paths to other ASes, kept fresh, without those over dead links.
//! - [`plain_ip`]: hosts without SCION, to use lanes and connections over plain IP.
//! - [`lanes`]: paths in use by a socket, each kept fresh until its end.
//! - [`PathRates`]: what paths have carried, for the next sender over them.
//! - [`requests`] for [`ping`] and [`traceroute`], and [`probe`]: whether a host answers, over
//!   which routers, and which paths work.
//!
//! A host lives as long as a clone of its [`Endhost`]. One task asks its source for paths when they
//! are due: every second where they are watched (less often where that is many), every minute where
//! they were asked for of late, and before they expire. An AS whose paths nobody watches or has
//! asked for in five minutes is forgotten. An [`Outage`] withholds the paths that it cuts until
//! they are offered again or found to work. The task ends with the host. A host on plain IP has no
//! task.
//!
//! The paths are behind one lock. Watchers are informed under it, so it comes before what they
//! borrow, and that before the path of a lane. Under the lock of the rates of paths
//! nothing is called. Of other locks, only two are taken while another is
//! held here: the verified segments under the trust store of a host without a daemon, and what
//! [`lanes`] says. Nothing is awaited, read or sent under any of them.

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
mod rates;
pub mod requests;
pub mod responder;
mod service;
pub mod socket;
mod source;
mod standalone;
mod sync;
pub mod traceroute;

pub use hawser_address::{AddrError, IsdAsn, ScionAddr};
pub use hawser_packet::{Quote, ScmpError};

pub use self::bootstrap::{Attempt, Bootstrap, BootstrapError};
pub use self::daemon::Daemon;
pub use self::endhost::{Endhost, PathsError};
pub use self::headers::{Headers, HeadersError};
pub use self::local_as::LocalAs;
pub use self::outage::Outage;
pub use self::path::{Path, PathError};
pub use self::plain_ip::{on_plain_ip, plain_ip};
pub use self::rates::{PathRates, RateRecord};
pub use self::service::{Service, SourceError};
