//! What a carrier works with.

use std::os::fd::OwnedFd;

use hawser_tun::Queue;

use crate::address::Block;
use crate::handover::HandoverReceiver;
use crate::link::{Link, ToCarrier, ToHolder};

/// What the holder gives to the carrier.
pub struct Attachment {
    /// A queue of the holder's TUN device, or why there is none and no MPTCP.
    pub queue: Result<Queue, String>,
    /// A queue of the device to which programs' packets are routed that are not redirected.
    pub captured: Queue,
    /// The sockets of programs whose connections are streams.
    pub handed: HandoverReceiver,
    /// The end over which the holder lends connections, if it has MPTCP and lends any.
    pub(crate) lent: Option<OwnedFd>,
    /// The addresses of this host.
    pub own: Block,
    /// Tells this host's sessions from those of other processes with the same key; the same for all
    /// carriers of one holder.
    pub tag: u64,
    /// The connection to the holder.
    pub link: Link<ToHolder, ToCarrier>,
}
