//! The control plane that an AS offers to its hosts: path segments, the daemon API and the endhost
//! API.
//!
//! A [`Control`] reads the whole network and the hop keys of all ASes, and creates the segments
//! that SCION's beaconing would provide to its AS: the same routes, each hop field with the MAC of
//! its AS. It creates them on request, so an idle service uses no CPU time, and the cost of a large
//! network grows only with the requests.
//!
//! The services are those of scionproto: `proto.daemon.v1.DaemonService` on the loopback address,
//! `proto.control_plane.v1.SegmentLookupService` on the address of the control service, both as
//! gRPC (h2c) and as Connect. The latter address also serves the endhost API of Anapaya's
//! `scion-stack`, `scion.endhost.v1`. The daemon's paths are combined from the segments that
//! lookups return, so a host that combines segments gets the same paths.
//! With [`Control::with_bootstrap`] it also serves, over HTTP, what hosts need to join the AS.
//!
//! Bounds: a segment has at most 20 links; between two ASes there are at most 20 segments, selected
//! from the 256 shortest so that they share few links; an answer contains the 200 shortest paths to
//! a destination. As in scionproto, peering links of a core AS serve the ASes below it, not the core
//! AS itself, and paths leave and enter an ISD through its core ASes or over peering links: links
//! to children in another ISD serve no path.
//!
//! Each entry of a segment is signed with the key of its AS when the segment is first sent to a
//! host. The control service also provides the TRCs and certificates to verify the signatures with
//! (`proto.control_plane.v1.TrustMaterialService`). Each AS announces in its entries the services
//! that its `topology.json` has.
//!
//! The life of a control plane. [`Control::bind`] binds the sockets and reads `topology.json` alone.
//! [`Control::run`] serves until its caller or a request on the live socket stops it, or a server fails.
//! The network is *unread* until the first request that needs it, and then *read*, or *failed*: requests
//! get that error for a second, and the next one reads it again. Once read it stays, until
//! [`Reloader::reload`] has read another or the file of segments is replaced. Changes of links count at
//! once, or as soon as it is read. At the end the live socket is removed, and open requests have a second.
//!
//! A task serves each socket, and one each connection; none works without a request. In memory are the
//! network, the segments of the file or up to 2048 that were made, and 1 MiB of answers. The bootstrap
//! server has 64 connections at most, the others as many as files can be open.
//!
//! An async lock is around the network (`shared`). A request waits for it without a thread, and holds it on
//! a thread for blocking work while files are read and segments are made and signed; a change of a link
//! holds it for a moment. The bootstrap server has a lock for each of its two kinds of files, which it
//! holds on such a thread while it reads them. None of these is taken under another.

mod beacons;
mod bootstrap;
mod cache;
mod carriers;
mod control_service;
mod daemon;
mod discovery;
mod endhost_api;
mod error;
mod graph;
mod pki;
mod plane;
mod publication;
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
pub use self::bootstrap::PORT as BOOTSTRAP_PORT;
pub use self::carriers::link_mtus;
pub use self::discovery::announced;
pub use self::error::ControlError;
pub use self::publication::{Publication, PublicationError};
pub use self::segment::{MAX_LIFETIME, MIN_LIFETIME};
pub use self::serve::{Control, Reloader};
