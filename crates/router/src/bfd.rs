//! Watching a link together with the router at its other end: BFD (RFC 5880) in SCION packets, as
//! scionproto's routers speak it.
//!
//! Over a link to another AS the packets have a one-hop path, over the way to another router of the
//! AS an empty one. There is one session for each, which the link, or the other router's address,
//! identifies (scionproto, "BFD on top of SCION"). Your Discriminator then only keeps packets of
//! others from a session that is up.

mod frame;
mod packet;
mod session;

pub(crate) use self::frame::Frame;
pub(crate) use self::packet::Control;
pub(crate) use self::session::Session;
