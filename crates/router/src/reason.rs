//! The reasons for which packets are dropped, and their counters.

use std::collections::BTreeMap;

use hawser_packet::Malformed;

use crate::stun::StunError;

/// Defines the reasons with their names in the counters.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $name:literal,)*) => {
        /// Why a packet was dropped; the name is the key in the counters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum DropReason {
            $($(#[$doc])* $reason,)*
        }

        impl DropReason {
            /// Every reason.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$reason),*];

            /// The name in the counters.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// Truncated, or header lengths that contradict each other.
    Malformed = "malformed",
    /// A SCION version other than 0.
    UnknownVersion = "unknown-version",
    /// A path type the router does not forward (EPIC, unknown).
    UnsupportedPathType = "unsupported-path-type",
    /// Segment lengths or current fields that contradict each other.
    MalformedPath = "malformed-path",
    /// An empty path, which only hosts of the same AS may use among themselves.
    EmptyPath = "empty-path",
    /// The payload length in the header differs from that of the packet.
    PacketSize = "packet-size",
    /// The hop field has expired.
    ExpiredHop = "expired-hop",
    /// The segment's timestamp is in the future.
    NotYetValid = "not-yet-valid",
    /// Arrived at an external interface, but not from the neighbour's underlay address.
    UnknownNeighbour = "unknown-neighbour",
    /// Arrived by another interface than the hop field names.
    WrongIngress = "wrong-ingress",
    /// The hop's egress interface does not exist.
    UnknownEgress = "unknown-egress",
    /// The hop field's MAC is not of this AS.
    InvalidMac = "invalid-mac",
    /// Source ISD-AS or host impossible at this interface.
    InvalidSource = "invalid-source",
    /// Destination ISD-AS or host impossible at this interface.
    InvalidDestination = "invalid-destination",
    /// In the middle of its path, but from a host of this AS or from the wrong router of it.
    TransitFromInside = "transit-from-inside",
    /// Links that may not follow each other within a segment.
    InvalidPath = "invalid-path",
    /// Segments that may not follow each other at these links.
    InvalidSegmentChange = "invalid-segment-change",
    /// The interface is down.
    InterfaceDown = "interface-down",
    /// The router of the AS that has the egress interface is down.
    SiblingDown = "sibling-down",
    /// A BFD packet that is invalid or belongs to no session.
    UnexpectedBfd = "unexpected-bfd",
    /// Larger than the egress link's MTU.
    PacketTooBig = "packet-too-big",
    /// This AS has no such service.
    NoService = "no-service",
    /// There is no route to the destination host.
    Unreachable = "unreachable",
    /// The upper-layer header does not name a port to deliver to.
    UnknownPort = "unknown-port",
    /// Dropped by the link's emulated loss.
    EmulatedLoss = "emulated-loss",
    /// The link's delay queue is full.
    DelayQueueFull = "delay-queue-full",
    /// The socket's send buffer is full.
    SendBufferFull = "send-buffer-full",
    /// The system refused to send it.
    SendFailed = "send-failed",
    /// Arrived faster than the router reads (counted by the kernel).
    ReceiveBufferFull = "receive-buffer-full",
    /// An SCMP message not sent, to stay within the rate limit.
    ScmpRateLimited = "scmp-rate-limited",
    /// An SCMP message not sent, because its cause must not be answered.
    ScmpNotAnswered = "scmp-not-answered",
    /// A STUN message with contradicting lengths or a wrong fingerprint.
    StunMalformed = "stun-malformed",
    /// A STUN message that is not a binding request.
    StunUnsupported = "stun-unsupported",
    /// A STUN request not answered, to stay within the rate limit.
    StunRateLimited = "stun-rate-limited",
    /// A STUN request not answered, because its source is not a single host.
    StunNotAnswered = "stun-not-answered",
}

impl From<Malformed> for DropReason {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Version(_) => Self::UnknownVersion,
            _ => Self::Malformed,
        }
    }
}

impl From<StunError> for DropReason {
    fn from(error: StunError) -> Self {
        match error {
            StunError::Malformed => Self::StunMalformed,
            StunError::Unsupported => Self::StunUnsupported,
        }
    }
}

/// Dropped packets by reason.
#[derive(Clone)]
pub(crate) struct Drops([u64; DropReason::ALL.len()]);

impl Default for Drops {
    fn default() -> Self {
        Self([0; DropReason::ALL.len()])
    }
}

impl Drops {
    #[inline]
    pub fn add(&mut self, reason: DropReason, packets: u64) {
        self.0[reason as usize] += packets;
    }

    pub fn by_name(&self) -> BTreeMap<String, u64> {
        DropReason::ALL
            .iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.name().to_owned(), count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::DropReason;

    #[test]
    fn reasons_have_distinct_indices_and_names() {
        let names: HashSet<_> = DropReason::ALL.iter().map(|r| r.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
        for (place, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
    }
}
