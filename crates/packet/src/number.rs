//! The numbers of SCION headers and of SCMP messages (SCION header specification; SCMP
//! specification).

/// Values of a next-header field: the protocol of the header that follows.
pub mod next_header {
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// The hop-by-hop extension.
    pub const HOP_BY_HOP: u8 = 200;
    /// The end-to-end extension.
    pub const END_TO_END: u8 = 201;
    /// SCMP.
    pub const SCMP: u8 = 202;
    /// BFD.
    pub const BFD: u8 = 203;
}

/// Path types of the common header.
pub mod path_type {
    /// No path, between two hosts or routers of one AS.
    pub const EMPTY: u8 = 0;
    /// The standard SCION path.
    pub const STANDARD: u8 = 1;
    /// A path over one link, to a neighbour AS.
    pub const ONE_HOP: u8 = 2;
}

/// Types of SCMP messages; errors are those below 128.
pub mod scmp_type {
    /// The packet cannot be delivered.
    pub const DESTINATION_UNREACHABLE: u8 = 1;
    /// The packet is larger than the MTU of a link.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// A field of the packet's header is invalid.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// The link at an AS interface is down.
    pub const EXTERNAL_INTERFACE_DOWN: u8 = 5;
    /// Two interfaces of an AS cannot reach each other.
    pub const INTERNAL_CONNECTIVITY_DOWN: u8 = 6;
    /// Requests an echo.
    pub const ECHO_REQUEST: u8 = 128;
    /// The echo.
    pub const ECHO_REPLY: u8 = 129;
    /// Requests the AS and interface of a router.
    pub const TRACEROUTE_REQUEST: u8 = 130;
    /// The router's AS and interface.
    pub const TRACEROUTE_REPLY: u8 = 131;
}

/// Codes of "destination unreachable" that routers send.
pub mod unreachable {
    /// No route to the destination.
    pub const NO_ROUTE: u8 = 0;
    /// The destination host cannot be reached.
    pub const ADDRESS: u8 = 3;
}

/// Codes of "parameter problem".
pub mod parameter {
    /// The payload length in the header differs from that of the packet.
    pub const INVALID_PACKET_SIZE: u8 = 19;
    /// The source address is impossible at the ingress interface.
    pub const INVALID_SOURCE: u8 = 33;
    /// The destination address is impossible for the path.
    pub const INVALID_DESTINATION: u8 = 34;
    /// The path is inconsistent, or does not match the types of its links.
    pub const INVALID_PATH: u8 = 48;
    /// The ingress interface in construction direction is unknown.
    pub const UNKNOWN_CONS_INGRESS: u8 = 49;
    /// The egress interface in construction direction is unknown.
    pub const UNKNOWN_CONS_EGRESS: u8 = 50;
    /// The MAC of a hop field is wrong.
    pub const INVALID_MAC: u8 = 51;
    /// A hop field has expired.
    pub const PATH_EXPIRED: u8 = 52;
    /// The change between these segments is not allowed.
    pub const INVALID_SEGMENT_CHANGE: u8 = 53;
}
