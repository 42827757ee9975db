//! Why a packet was not passed on.

/// Why a packet was not passed on; the name is the key in the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// Cut short, or header lengths that contradict each other.
    Malformed,
    /// A SCION version other than 0.
    UnknownVersion,
    /// A path type the router does not forward (EPIC, unknown).
    UnsupportedPathType,
    /// Segment lengths or current fields that contradict each other.
    MalformedPath,
    /// An empty path, which is for hosts of one AS among themselves.
    EmptyPath,
    /// The payload length differs from what arrived.
    PacketSize,
    /// The hop's time is over.
    ExpiredHop,
    /// The segment's timestamp lies in the future.
    NotYetValid,
    /// Came in over another interface than the hop says.
    WrongIngress,
    /// The hop's egress interface does not exist.
    UnknownEgress,
    /// The hop's MAC is not this AS's.
    InvalidMac,
    /// Source ISD-AS or host not possible on this interface.
    InvalidSource,
    /// Destination ISD-AS or host not possible on this interface.
    InvalidDestination,
    /// From a host of this AS, or from the wrong router of it, yet in the middle of a path.
    TransitFromInside,
    /// Interfaces that no single segment connects.
    InvalidPath,
    /// Segments that may not follow each other here.
    InvalidSegmentChange,
    /// The interface is down.
    InterfaceDown,
    /// The AS's router that has the egress interface cannot be reached.
    SiblingDown,
    /// A BFD packet that belongs to no session, or says nothing.
    UnexpectedBfd,
    /// Larger than the egress link's MTU.
    PacketTooBig,
    /// No service of that kind in this AS.
    NoService,
    /// The destination host cannot be reached.
    Unreachable,
    /// The transport header does not say which port to deliver to.
    UnknownPort,
    /// Lost on purpose, by the link's emulated loss.
    EmulatedLoss,
    /// The link's delay queue is full.
    DelayQueueFull,
    /// The socket's send buffer is full.
    SendBufferFull,
    /// The system refused to send.
    SendFailed,
    /// Arrived faster than the router reads (counted by the kernel).
    ReceiveBufferFull,
    /// An SCMP message not sent, to stay within the rate limit.
    ScmpRateLimited,
    /// An SCMP message not sent, because what caused it must not be answered.
    ScmpNotAnswered,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 30] = [
        Self::Malformed,
        Self::UnknownVersion,
        Self::UnsupportedPathType,
        Self::MalformedPath,
        Self::EmptyPath,
        Self::PacketSize,
        Self::ExpiredHop,
        Self::NotYetValid,
        Self::WrongIngress,
        Self::UnknownEgress,
        Self::InvalidMac,
        Self::InvalidSource,
        Self::InvalidDestination,
        Self::TransitFromInside,
        Self::InvalidPath,
        Self::InvalidSegmentChange,
        Self::InterfaceDown,
        Self::SiblingDown,
        Self::UnexpectedBfd,
        Self::PacketTooBig,
        Self::NoService,
        Self::Unreachable,
        Self::UnknownPort,
        Self::EmulatedLoss,
        Self::DelayQueueFull,
        Self::SendBufferFull,
        Self::SendFailed,
        Self::ReceiveBufferFull,
        Self::ScmpRateLimited,
        Self::ScmpNotAnswered,
    ];

    /// The name in the counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownVersion => "unknown-version",
            Self::UnsupportedPathType => "unsupported-path-type",
            Self::MalformedPath => "malformed-path",
            Self::EmptyPath => "empty-path",
            Self::PacketSize => "packet-size",
            Self::ExpiredHop => "expired-hop",
            Self::NotYetValid => "not-yet-valid",
            Self::WrongIngress => "wrong-ingress",
            Self::UnknownEgress => "unknown-egress",
            Self::InvalidMac => "invalid-mac",
            Self::InvalidSource => "invalid-source",
            Self::InvalidDestination => "invalid-destination",
            Self::TransitFromInside => "transit-from-inside",
            Self::InvalidPath => "invalid-path",
            Self::InvalidSegmentChange => "invalid-segment-change",
            Self::InterfaceDown => "interface-down",
            Self::SiblingDown => "sibling-down",
            Self::UnexpectedBfd => "unexpected-bfd",
            Self::PacketTooBig => "packet-too-big",
            Self::NoService => "no-service",
            Self::Unreachable => "unreachable",
            Self::UnknownPort => "unknown-port",
            Self::EmulatedLoss => "emulated-loss",
            Self::DelayQueueFull => "delay-queue-full",
            Self::SendBufferFull => "send-buffer-full",
            Self::SendFailed => "send-failed",
            Self::ReceiveBufferFull => "receive-buffer-full",
            Self::ScmpRateLimited => "scmp-rate-limited",
            Self::ScmpNotAnswered => "scmp-not-answered",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Reason;

    #[test]
    fn each_reason_has_its_own_place_and_name() {
        let names: HashSet<_> = Reason::ALL.iter().map(|r| r.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        for (place, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
    }
}
