//! Packets of uTP (BEP 29, "header format").

use thiserror::Error;

/// Bytes of a header without extensions.
pub const HEADER_LENGTH: usize = 20;

/// Most bytes of a selective acknowledgement that are written: one bit for each packet that may be outstanding.
pub const MAX_SELECTIVE_LENGTH: usize = 128;

/// The version of the protocol.
const VERSION: u8 = 1;
/// The extension with a selective acknowledgement.
const SELECTIVE_ACK: u8 = 1;

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// Carries bytes of the stream.
    Data,
    /// Ends the sender's direction of the stream.
    Fin,
    /// Acknowledges, and takes no sequence number.
    State,
    /// Ends a connection at once.
    Reset,
    /// Opens a connection.
    Syn,
}

impl PacketKind {
    /// The kinds, by their numbers.
    const ALL: [Self; 5] = [Self::Data, Self::Fin, Self::State, Self::Reset, Self::Syn];
}

/// The header of a packet, without extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the packet is for.
    pub kind: PacketKind,
    /// The connection, as its receiver numbers it; in a SYN, as its sender does.
    pub connection_id: u16,
    /// The time of sending by the sender's clock, in microseconds.
    pub timestamp: u32,
    /// How long the last packet from the other side took by the clocks of both, in microseconds; 0 if none
    /// has arrived.
    pub timestamp_difference: u32,
    /// Bytes for which the sender has room behind the packet that it acknowledges.
    pub window: u32,
    /// The number of the packet; of one that takes no number, the next one.
    pub sequence: u16,
    /// The last packet up to which all have arrived.
    pub acknowledged: u16,
}

/// Why a datagram is no packet of uTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PacketError {
    /// It ends before the header or an extension does.
    #[error("the packet is cut off")]
    Truncated,
    /// It is of another version, or of another protocol.
    #[error("version {0} is not supported")]
    Version(u8),
    /// The kind is not known.
    #[error("{0} is no kind of packet")]
    Kind(u8),
}

/// A packet that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The header.
    pub header: Header,
    /// Which later packets have arrived. Empty if it does not say.
    pub selective: SelectiveAck<'a>,
    /// Bytes of the stream.
    pub payload: &'a [u8],
}

/// Which packets have arrived behind the one that is acknowledged: a bit for each, from the second one on, the
/// least significant bit of each byte first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectiveAck<'a>(&'a [u8]);

impl SelectiveAck<'_> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many packets behind the acknowledged one it speaks of: the first, which is missing, and one for each bit.
    pub fn covered(&self) -> usize {
        match self.is_empty() {
            true => 0,
            false => 1 + 8 * self.0.len(),
        }
    }

    /// How far behind the acknowledged packet those lie that have arrived: 2 and more, in rising order.
    pub fn offsets(&self) -> impl Iterator<Item = u64> {
        let bytes = (2u64..).step_by(8).zip(self.0);
        bytes.flat_map(|(first, byte)| {
            (0..8)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |bit| first + bit)
        })
    }
}

impl<'a> Packet<'a> {
    /// Reads a packet. Extensions that are not known are skipped, and of several selective acknowledgements
    /// the last one counts.
    ///
    /// # Errors
    /// If the datagram is not a packet of uTP.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let Some((header, mut rest)) = datagram.split_first_chunk::<HEADER_LENGTH>() else {
            return Err(PacketError::Truncated);
        };
        let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
        let (kind, version) = (header[0] >> 4, header[0] & 15);
        if version != VERSION {
            return Err(PacketError::Version(version));
        }
        let kind = PacketKind::ALL.get(usize::from(kind));
        let kind = *kind.ok_or(PacketError::Kind(header[0] >> 4))?;
        let mut selective = SelectiveAck::default();
        let mut extension = header[1];
        while extension != 0 {
            let [next, length, behind @ ..] = rest else {
                return Err(PacketError::Truncated);
            };
            let split = behind.split_at_checked(usize::from(*length));
            let (content, behind) = split.ok_or(PacketError::Truncated)?;
            if extension == SELECTIVE_ACK {
                selective = SelectiveAck(content);
            }
            (extension, rest) = (*next, behind);
        }
        Ok(Self {
            header: Header {
                kind,
                connection_id: short(2),
                timestamp: long(4),
                timestamp_difference: long(8),
                window: long(12),
                sequence: short(16),
                acknowledged: short(18),
            },
            selective,
            payload: rest,
        })
    }
}

impl Header {
    /// Appends the header, and a selective acknowledgement if `selective` is not empty: its length is a
    /// multiple of 4, and at most [`MAX_SELECTIVE_LENGTH`].
    pub fn write(&self, selective: &[u8], out: &mut Vec<u8>) {
        let has_selective = !selective.is_empty();
        out.push((self.kind as u8) << 4 | VERSION);
        out.push(if has_selective { SELECTIVE_ACK } else { 0 });
        out.extend(self.connection_id.to_be_bytes());
        out.extend(self.timestamp.to_be_bytes());
        out.extend(self.timestamp_difference.to_be_bytes());
        out.extend(self.window.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.acknowledged.to_be_bytes());
        if has_selective {
            debug_assert!(
                selective.len() <= MAX_SELECTIVE_LENGTH && selective.len().is_multiple_of(4)
            );
            out.extend([0, selective.len() as u8]);
            out.extend(selective);
        }
    }
}

#[cfg(test)]
mod tests;
