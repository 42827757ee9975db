//! TCP headers in their compact form: what a receiver cannot know of the header of an MPTCP segment.
//!
//! Nothing in it refers to other datagrams, as those get lost and overtake each other. Headers that
//! have no such form, as those that open a subflow, are sent as they are.

#[cfg(test)]
pub(crate) mod tests;

use crate::protocol::role::Role;

/// The port to which subflows are opened.
pub const PORT: u16 = 1;

/// Bytes of the largest compact header: that of data.
pub const MAX: usize = ALWAYS + DATA_ACK + MAPPING;

/// By how many bytes the largest compact header is smaller than the header that Linux makes: 20, and
/// an MPTCP option of 28 whose data acknowledgement has 64 bits.
pub const SAVED: usize = TCP + 28 - MAX;

/// Bytes of flags, port, sequence number, acknowledgement and window.
const ALWAYS: usize = 1 + 2 + 4 + 4 + 2;
/// Bytes of the data acknowledgement, whose upper half the receiver's kernel knows: it is written when
/// its segment is sent, so that it is as old as the datagram.
const DATA_ACK: usize = 4;
/// Bytes of the mapping: data sequence number, subflow sequence number, length. The first is whole: a
/// mapping is sent again with its segment, perhaps when the connection has gone 4 GiB on over other
/// paths, and is taken for that of other data then (RFC 8684, 3.3.1).
const MAPPING: usize = 8 + 4 + 2;

/// Bytes of a TCP header without options.
const TCP: usize = 20;
/// Bytes of the largest header that is made of a compact one.
const MAX_HEADER: usize = TCP + (DSS + DATA_ACK + MAPPING).next_multiple_of(4);

/// TCP flags.
const ACK: u8 = 0x10;
/// TCP flags that the compact form has in the same place: FIN, PSH, ECE, CWR.
const KEPT_FLAGS: u8 = 0x01 | 0x08 | 0x40 | 0x80;

/// What a compact header has, in the places of TCP's SYN, RST and ACK.
const HAS_DATA_ACK: u8 = 0x02;
const HAS_MAPPING: u8 = 0x04;
const DATA_FIN: u8 = 0x10;

/// TCP's option that stands for nothing, and that of MPTCP.
const NOP: u8 = 1;
const MPTCP: u8 = 30;
/// Bytes of MPTCP's data sequence signal without data acknowledgement and mapping.
const DSS: usize = 4;
/// Its subtype, with four bits that are reserved, and its flags (RFC 8684, 3.3).
const DSS_SUBTYPE: u8 = 0x20;
const DSS_DATA_ACK: u8 = 0x01;
const DSS_DATA_ACK_64: u8 = 0x02;
const DSS_MAPPING: u8 = 0x04;
const DSS_MAPPING_64: u8 = 0x08;
const DSS_DATA_FIN: u8 = 0x10;

/// A compact header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compact(Bytes<MAX>);

/// A TCP header that was made of a compact one. Its checksum is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header(Bytes<MAX_HEADER>);

/// Up to `N` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

/// MPTCP's data sequence signal.
#[derive(Debug, Clone, Copy, Default)]
struct Signal {
    /// The lower 32 bits.
    data_ack: Option<[u8; DATA_ACK]>,
    mapping: Option<[u8; MAPPING]>,
    /// Whether the mapping ends with the end of the data.
    is_end: bool,
}

impl Compact {
    /// The compact form of a TCP header that the side `sender` sends; `None` if it has none. The
    /// checksum is left out.
    ///
    /// It has one if TCP has opened the subflow and does not reset it, nothing is urgent, and there is
    /// no option but MPTCP's data sequence signal without a checksum (RFC 8684, 3.3).
    #[inline]
    pub fn encode(header: &[u8], sender: Role) -> Option<Self> {
        let (fixed, options) = header.split_first_chunk::<TCP>()?;
        let (port, server_port) = match sender {
            Role::Client => ([fixed[0], fixed[1]], [fixed[2], fixed[3]]),
            Role::Server => ([fixed[2], fixed[3]], [fixed[0], fixed[1]]),
        };
        let has_form = server_port == PORT.to_be_bytes()
            // The length, and bits that are reserved.
            && usize::from(fixed[12]) == header.len() << 2
            && fixed[13] & !KEPT_FLAGS == ACK
            // The urgent pointer.
            && fixed[18..] == [0, 0];
        let signal = Signal::read(options).filter(|_| has_form)?;
        let mut bytes = Bytes::default();
        bytes.push(&[fixed[13] & KEPT_FLAGS | signal.flags()]);
        bytes.push(&port);
        // Sequence number and acknowledgement; the window.
        bytes.push(&fixed[4..12]);
        bytes.push(&fixed[14..16]);
        signal.write(&mut bytes);
        Some(Self(bytes))
    }

    /// Makes it the compact form of the header of one of the segments of the same packet: they differ
    /// by sequence number and flags.
    #[inline]
    pub fn set_segment(&mut self, header: &[u8]) {
        let bytes = &mut self.0.bytes;
        bytes[0] = bytes[0] & !KEPT_FLAGS | header[13] & KEPT_FLAGS;
        bytes[3..7].copy_from_slice(&header[4..8]);
    }

    /// Its bytes, 13 to [`MAX`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Header {
    /// Reads the compact header that a segment from the side `sender` begins with, and returns the
    /// data behind it; `None` if it is invalid.
    #[inline]
    pub fn decode(segment: &[u8], sender: Role) -> Option<(Self, &[u8])> {
        let (&[flags, port @ ..], rest) = segment.split_first_chunk::<3>()?;
        let (numbers, rest) = rest.split_first_chunk::<8>()?;
        let (window, rest) = rest.split_first_chunk::<2>()?;
        let (signal, data) = Signal::decode(flags, rest)?;
        let ports = match sender {
            Role::Client => [port, PORT.to_be_bytes()],
            Role::Server => [PORT.to_be_bytes(), port],
        };
        let mut header = Bytes::default();
        header.push(ports.as_flattened());
        header.push(numbers);
        header.push(&[0, flags & KEPT_FLAGS | ACK]);
        header.push(window);
        // Checksum and urgent pointer.
        header.push(&[0; 4]);
        signal.write_option(&mut header);
        header.bytes[12] = (header.length << 2) as u8;
        Some((Self(header), data))
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Signal {
    /// The signal in TCP options; `None` if they have any other content.
    #[inline]
    fn read(mut options: &[u8]) -> Option<Self> {
        let mut found = None;
        while let Some((&kind, rest)) = options.split_first() {
            options = rest;
            if kind == NOP {
                continue;
            }
            let (&length, _) = rest.split_first()?;
            let content = rest.get(1..usize::from(length).checked_sub(1)?)?;
            options = &rest[1 + content.len()..];
            if kind != MPTCP || found.is_some() {
                return None;
            }
            found = Some(Self::read_option(content)?);
        }
        Some(found.unwrap_or_default())
    }

    /// Reads MPTCP's option behind its kind and length.
    #[inline]
    fn read_option(content: &[u8]) -> Option<Self> {
        let (&[subtype, flags], rest) = content.split_first_chunk()?;
        let (data_ack, rest) = match flags & (DSS_DATA_ACK | DSS_DATA_ACK_64) {
            0 => (None, rest),
            DSS_DATA_ACK => rest.split_first_chunk().map(|(&a, rest)| (Some(a), rest))?,
            DSS_DATA_ACK_64 => return None,
            _ => {
                let (_upper, rest) = rest.split_first_chunk::<4>()?;
                rest.split_first_chunk().map(|(&a, rest)| (Some(a), rest))?
            }
        };
        let (mapping, rest) = match flags & (DSS_MAPPING | DSS_MAPPING_64) {
            0 => (None, rest),
            m if m == DSS_MAPPING | DSS_MAPPING_64 => {
                rest.split_first_chunk().map(|(&m, rest)| (Some(m), rest))?
            }
            _ => return None,
        };
        let signal = Self {
            data_ack,
            mapping,
            is_end: flags & DSS_DATA_FIN != 0,
        };
        // A checksum may follow.
        let is_whole = subtype == DSS_SUBTYPE && flags < 0x20 && rest.is_empty();
        (is_whole && !signal.is_empty() && signal.is_valid()).then_some(signal)
    }

    /// Reads what a compact header with `flags` has behind the window.
    #[inline]
    fn decode(flags: u8, mut rest: &[u8]) -> Option<(Self, &[u8])> {
        let mut signal = Self {
            is_end: flags & DATA_FIN != 0,
            ..Self::default()
        };
        if flags & HAS_DATA_ACK != 0 {
            let (&data_ack, behind) = rest.split_first_chunk()?;
            (signal.data_ack, rest) = (Some(data_ack), behind);
        }
        if flags & HAS_MAPPING != 0 {
            let (&mapping, behind) = rest.split_first_chunk()?;
            (signal.mapping, rest) = (Some(mapping), behind);
        }
        let known = KEPT_FLAGS | HAS_DATA_ACK | HAS_MAPPING | DATA_FIN;
        (flags & !known == 0 && signal.is_valid()).then_some((signal, rest))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.data_ack.is_none() && self.mapping.is_none()
    }

    /// Only a mapping has an end.
    #[inline]
    fn is_valid(&self) -> bool {
        self.mapping.is_some() || !self.is_end
    }

    /// What there is of it, as flags of a compact header.
    #[inline]
    fn flags(&self) -> u8 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.data_ack.is_some(), HAS_DATA_ACK)
            | flag(self.mapping.is_some(), HAS_MAPPING)
            | flag(self.is_end, DATA_FIN)
    }

    /// Appends its numbers.
    #[inline]
    fn write<const N: usize>(&self, out: &mut Bytes<N>) {
        if let Some(data_ack) = &self.data_ack {
            out.push(data_ack);
        }
        if let Some(mapping) = &self.mapping {
            out.push(mapping);
        }
    }

    /// Appends it as an option, and what aligns that.
    #[inline]
    fn write_option<const N: usize>(&self, out: &mut Bytes<N>) {
        if self.is_empty() {
            return;
        }
        let (mut length, mut flags) = (DSS, 0);
        if self.data_ack.is_some() {
            length += DATA_ACK;
            flags |= DSS_DATA_ACK;
        }
        if self.mapping.is_some() {
            length += MAPPING;
            flags |= DSS_MAPPING | DSS_MAPPING_64;
        }
        if self.is_end {
            flags |= DSS_DATA_FIN;
        }
        out.push(&[MPTCP, length as u8, DSS_SUBTYPE, flags]);
        self.write(out);
        while !out.length.is_multiple_of(4) {
            out.push(&[NOP]);
        }
    }
}

impl<const N: usize> Bytes<N> {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

impl<const N: usize> Default for Bytes<N> {
    fn default() -> Self {
        Self {
            bytes: [0; N],
            length: 0,
        }
    }
}
