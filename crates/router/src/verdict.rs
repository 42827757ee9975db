//! The origin of a packet, and the verdict on it.

use std::net::SocketAddr;

use hawser_packet::ScmpError;

use crate::reason::DropReason;

/// The origin of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A host of this AS.
    Host,
    /// Another router of this AS, by its number among them.
    Sibling(u8),
    /// The neighbour at this external interface.
    Interface(u16),
}

impl Origin {
    /// The interface the packet came in by; 0 is the internal one.
    #[inline]
    pub fn interface(self) -> u16 {
        match self {
            Self::Host | Self::Sibling(_) => 0,
            Self::Interface(id) => id,
        }
    }
}

/// Converts an interface number; 0 is a host.
impl From<u16> for Origin {
    fn from(interface: u16) -> Self {
        match interface {
            0 => Self::Host,
            id => Self::Interface(id),
        }
    }
}

/// The decision on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketVerdict {
    /// Send it to the neighbour; its path has been advanced.
    Forward {
        /// The interface to send it out by.
        egress: u16,
    },
    /// Send it to a host of this AS; its path is ready to be reversed.
    Deliver {
        /// The host's underlay address.
        to: SocketAddr,
    },
    /// Send it to the router of this AS that has its egress interface.
    Transit {
        /// That router's internal address.
        to: SocketAddr,
    },
    /// It belongs to the router's own BFD session with its sender.
    Bfd {
        /// Offset of the BFD packet.
        at: usize,
    },
    /// A STUN message of a host of this AS. The packet is unchanged.
    Stun,
    /// Answer it with an SCMP message over the reversed path. The packet is unchanged.
    Answer(Answer),
    /// Drop it, and report an SCMP error to its source. The packet is unchanged.
    Refuse {
        /// The reason, for the counters.
        reason: DropReason,
        /// The SCMP error to send to the source.
        error: ScmpError,
    },
    /// Drop it. The packet is unchanged.
    Drop(DropReason),
}

/// What a request to the router itself requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// An SCMP echo reply.
    Echo,
    /// An SCMP traceroute reply.
    Traceroute {
        /// The interface that the request addresses.
        interface: u16,
    },
}

/// The result of one step of the processing, or a verdict that ends it early.
pub(crate) type Step<T> = Result<T, PacketVerdict>;

#[inline]
pub(crate) fn refuse<T>(reason: DropReason, error: ScmpError) -> Step<T> {
    Err(PacketVerdict::Refuse { reason, error })
}

/// Refuses a packet because of the header field at `offset`, which fits in 16 bits: headers are at
/// most 1020 bytes long.
#[inline]
pub(crate) fn refuse_field<T>(reason: DropReason, code: u8, offset: usize) -> Step<T> {
    let pointer = offset as u16;
    refuse(reason, ScmpError::ParameterProblem { code, pointer })
}
