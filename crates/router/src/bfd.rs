//! Monitoring of links and of the AS's other routers: BFD (RFC 5880) in SCION packets, as
//! scionproto's routers send them.
//!
//! Packets to a neighbour AS have a one-hop path, those to another router of the AS an empty one.
//! The link, or the other router's address, identifies the session (scionproto, "BFD on top of
//! SCION"). Your Discriminator is checked only while a session is up, against packets of other
//! sessions.

mod frame;
mod neighbours;
mod pace;
mod packet;
mod session;

pub(crate) use self::frame::Frame;
pub(crate) use self::neighbours::{Neighbour, Neighbours};
pub(crate) use self::session::Session;
