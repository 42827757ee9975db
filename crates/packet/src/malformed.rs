//! Why bytes are not a packet.

use thiserror::Error;

/// Why bytes are not a valid SCION packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Shorter than its headers say.
    #[error("the packet is cut short")]
    Truncated,
    /// Only version 0 is defined.
    #[error("SCION version {0} is unknown")]
    Version(u8),
    /// The lengths in its headers contradict each other.
    #[error("the packet's lengths contradict each other")]
    Length,
    /// The type of a host address is unknown, or not the one expected.
    #[error("the address type {0:#x} is unknown")]
    AddressType(u8),
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// Not the protocol expected.
    #[error("next header {0} is not what was expected")]
    NextHeader(u8),
}

/// Why bytes are not a valid standard path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MalformedPath {
    /// Shorter than its segments say.
    #[error("the path header is cut short")]
    Truncated,
    /// Bytes are left after the last hop field.
    #[error("{0} bytes follow the last hop field")]
    Trailing(usize),
    /// A segment has no hops, though others follow, or all have together too few.
    #[error("the path header lacks hops")]
    Empty,
    /// More hop fields than the position in the path can count.
    #[error("the path has {0} hop fields: at most 64 can be used")]
    TooManyHops(usize),
    /// The position in the path is outside it, or in another segment than it says.
    #[error("the path header points outside itself")]
    Position,
    /// Only empty and standard paths can be reversed.
    #[error("a path of type {0} cannot be reversed")]
    Type(u8),
}

/// Headers that a packet cannot have: the common header counts their length in 255 units of four
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a SCION header cannot have {0} bytes: at most 1020, and a multiple of four")]
pub struct HeaderLength(pub usize);
