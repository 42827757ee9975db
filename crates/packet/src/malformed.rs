//! Errors of parsing packets and paths.

use thiserror::Error;

/// The reason why bytes are not a valid SCION packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The packet is shorter than its headers say.
    #[error("the packet is cut short")]
    Truncated,
    /// Only version 0 is defined.
    #[error("SCION version {0} is unknown")]
    Version(u8),
    /// The lengths in the headers contradict each other.
    #[error("the packet's lengths contradict each other")]
    Length,
    /// The type of a host address is unknown, or not the one expected.
    #[error("the address type {0:#x} is unknown")]
    AddressType(u8),
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// The protocol is not the expected one.
    #[error("next header {0} is not what was expected")]
    NextHeader(u8),
}

/// The reason why bytes are not a valid standard path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MalformedPath {
    /// The path is shorter than its segments say.
    #[error("the path header is cut short")]
    Truncated,
    /// Bytes are left after the last hop field.
    #[error("{0} bytes follow the last hop field")]
    Trailing(usize),
    /// A segment without hops precedes another one, or the path has too few hops.
    #[error("the path header lacks hops")]
    Empty,
    /// There are more hop fields than the 6-bit index of the current hop can count.
    #[error("the path has {0} hop fields: at most 64 can be used")]
    TooManyHops(usize),
    /// The current hop is not on the path, or not in the current segment.
    #[error("the path header points outside itself")]
    Position,
    /// Only empty and standard paths can be reversed.
    #[error("a path of type {0} cannot be reversed")]
    Type(u8),
}

/// The header length is invalid: the common header counts it in units of four bytes, at most 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a SCION header cannot have {0} bytes: at most 1020, and a multiple of four")]
pub struct HeaderLength(pub usize);
