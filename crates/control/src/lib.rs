//! The control plane an AS offers its hosts: path segments, the daemon API and the endhost API.
//!
//! A [`Control`] knows the whole network and every AS's hop key, and makes the segments that
//! SCION's beaconing would bring to its AS: the same routes, each hop field with the MAC of its own
//! AS. It makes them when they are asked for, so a service at rest does nothing, and a large
//! network costs no more than what is asked of it.
//!
//! Hosts are served as by scionproto: `proto.daemon.v1.DaemonService` on the loopback address,
//! `proto.control_plane.v1.SegmentLookupService` on the address of the control service, both as
//! gRPC (h2c) and as Connect. Beside the latter stands the endhost API of Anapaya's `scion-stack`,
//! `scion.endhost.v1`. The daemon's paths are made of the segments that lookups are answered with,
//! so a host that combines them itself has the same ones.
//!
//! Bounds: a segment has at most 20 links; between two ASes there are at most 20 segments, chosen
//! among the 256 shortest so that they share few links; a destination is answered with its 200
//! shortest paths. Peering links serve what lies below a core AS, not the core AS itself, as in
//! scionproto.
//!
//! Each AS's entry of a segment is signed with that AS's key, when the segment is handed out for
//! the first time; the control service also hands out the TRCs and certificates that the signatures
//! are verified with (`proto.control_plane.v1.TrustMaterialService`).

mod cache;
mod clock;
mod control;
mod daemon;
mod endhost_api;
mod error;
mod found;
mod graph;
mod keys;
mod lookup;
mod network_paths;
mod pki;
mod plane;
mod revoked;
mod routes;
mod segment;
mod serve;
mod shared;
mod signed;
mod source;
#[cfg(test)]
mod testing;
mod trust;
mod wire;

pub mod live;

pub use self::control::{Control, DAEMON_ADDRESS};
pub use self::keys::{Keys, as_folder};
pub use self::network_paths::NetworkPaths;
pub use self::segment::{MAX_LIFETIME, MIN_LIFETIME};
pub use self::serve::{Bound, RunError};
pub use self::source::OpenError;
