//! Watching a link together with the router at its other end: BFD (RFC 5880) in SCION packets, as
//! scionproto's routers send them.
//!
//! Packets to a neighbour AS have a one-hop path, those to another router of the AS an empty one.
//! Each has a session of its own, which the link, or the other router's address, identifies
//! (scionproto, "BFD on top of SCION"). Your Discriminator then only keeps packets of others from a
//! session that is up.

mod frame;
mod neighbours;
mod packet;
mod session;

pub(crate) use self::frame::Frame;
pub(crate) use self::neighbours::{Neighbour, Neighbours};
pub(crate) use self::session::Session;
