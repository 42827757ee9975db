//! The control plane an AS offers its hosts: path segments, the daemon API and the endhost API.
//!
//! A [`Control`] reads the whole network and every AS's hop key, and makes the segments that
//! SCION's beaconing would bring to its AS: the same routes, each hop field with the MAC of its own
//! AS. It makes them on request, so an idle service does nothing, and the cost of a large network
//! grows only with the requests.
//!
//! Hosts are served as by scionproto: `proto.daemon.v1.DaemonService` on the loopback address,
//! `proto.control_plane.v1.SegmentLookupService` on the address of the control service, both as
//! gRPC (h2c) and as Connect. The latter address also serves the endhost API of Anapaya's
//! `scion-stack`, `scion.endhost.v1`. The daemon's paths are made of the segments that lookups are
//! answered with, so a host that combines them itself has the same paths.
//!
//! Bounds: a segment has at most 20 links; between two ASes there are at most 20 segments, chosen
//! among the 256 shortest so that they share few links; a destination is answered with its 200
//! shortest paths. Peering links serve the ASes below a core AS, not the core AS itself, as in
//! scionproto.
//!
//! Each AS's entry of a segment is signed with that AS's key when the segment is handed out for the
//! first time. The control service also hands out the TRCs and certificates with which the
//! signatures are verified (`proto.control_plane.v1.TrustMaterialService`).

mod beacons;
mod cache;
mod control_service;
mod daemon;
mod endhost_api;
mod error;
mod graph;
mod pki;
mod plane;
mod routes;
mod segment;
mod serve;
mod shared;
mod source;
#[cfg(test)]
mod testing;
mod wire;

pub mod live;

pub use self::beacons::NetworkPaths;
pub use self::error::ControlError;
pub use self::segment::{MAX_LIFETIME, MIN_LIFETIME};
pub use self::serve::Control;
