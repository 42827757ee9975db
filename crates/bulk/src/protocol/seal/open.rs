//! Opening packets.

use thiserror::Error;

use super::super::packet::{Ack, HEADER, Header, Kind, SubflowId, TAG};
use super::super::wire::{DecodeError, Reader};
use super::keys::{Cipher, Keys, SECRET};
use super::window::{NotNew, Window};

/// Opens the packets of one direction of a subflow.
#[derive(Debug)]
pub struct Opener {
    subflow: SubflowId,
    /// The keys before the current ones, for packets that were overtaken.
    previous: Option<Keys>,
    current: Keys,
    /// Derived in advance, so that the time to reject a forged packet does not depend on its phase.
    next: Keys,
    phase: bool,
    /// The smallest number opened with the current keys.
    since: u64,
    received: Window,
    rejections: Rejections,
}

/// An authentic packet that was not received before.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// The packet number.
    pub number: u64,
    /// The sender wants an answer at once.
    pub ask: bool,
    /// What the packet carries.
    pub payload: Payload<'a>,
}

/// What a packet carries.
#[derive(Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// At least one byte of content.
    Data {
        /// The position of the first byte in the content. With the length of the content it is at
        /// most `u64::MAX`; whether that is within the content is the sink's to check.
        position: u64,
        /// The content.
        content: &'a [u8],
    },
    /// An acknowledgement.
    Ack(Ack),
    /// Nothing.
    Probe {
        /// The size of the packet, in bytes.
        size: usize,
    },
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejected {
    /// Its first bytes are not the header of a packet with a tag.
    #[error("it is not a packet of this protocol: {0}")]
    NotAPacket(DecodeError),
    /// It has the id of another subflow.
    #[error("it has the id of another subflow")]
    OtherSubflow,
    /// A packet with its number was received before.
    #[error("it was received before")]
    Replayed,
    /// It is 65,536 numbers or more below the largest number received.
    #[error("it is too old")]
    TooOld,
    /// It was not sealed with the keys of the subflow, or was changed since.
    #[error("it is forged")]
    Forged,
    /// It is authentic, and its payload breaks the protocol: the peer is at fault.
    #[error("its payload is invalid: {0}")]
    Malformed(DecodeError),
}

/// How many packets were dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rejections {
    /// [`Rejected::NotAPacket`].
    pub not_packets: u64,
    /// [`Rejected::OtherSubflow`].
    pub other_subflow: u64,
    /// [`Rejected::Replayed`].
    pub replayed: u64,
    /// [`Rejected::TooOld`].
    pub too_old: u64,
    /// [`Rejected::Forged`].
    pub forged: u64,
    /// [`Rejected::Malformed`].
    pub malformed: u64,
}

impl Rejections {
    /// All dropped packets.
    pub fn total(&self) -> u64 {
        let unsealed = self.not_packets + self.other_subflow + self.forged;
        unsealed + self.replayed + self.too_old + self.malformed
    }

    fn count(&mut self, rejected: Rejected) {
        *match rejected {
            Rejected::NotAPacket(_) => &mut self.not_packets,
            Rejected::OtherSubflow => &mut self.other_subflow,
            Rejected::Replayed => &mut self.replayed,
            Rejected::TooOld => &mut self.too_old,
            Rejected::Forged => &mut self.forged,
            Rejected::Malformed(_) => &mut self.malformed,
        } += 1;
    }
}

impl Opener {
    /// An opener with the exported secret of the sender's direction (`docs/bulk-protocol.md`, *Keys*).
    pub fn new(cipher: Cipher, secret_and_id: &[u8; SECRET]) -> Self {
        let (current, subflow) = Keys::exported(cipher, secret_and_id);
        Self {
            subflow,
            previous: None,
            next: current.next(),
            current,
            phase: false,
            since: 0,
            received: Window::new(),
            rejections: Rejections::default(),
        }
    }

    /// The id in all packets.
    pub fn subflow_id(&self) -> SubflowId {
        self.subflow
    }

    /// The packets that were dropped.
    pub fn rejections(&self) -> Rejections {
        self.rejections
    }

    /// Opens `packet`; `scratch` holds its content. Only packets that open change what is received
    /// later.
    ///
    /// # Errors
    /// Why the packet is dropped; it is counted.
    pub fn open<'a>(
        &mut self,
        packet: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<Opened<'a>, Rejected> {
        self.try_open(packet, scratch)
            .inspect_err(|rejected| self.rejections.count(*rejected))
    }

    #[inline]
    fn try_open<'a>(
        &mut self,
        packet: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<Opened<'a>, Rejected> {
        let header = Header::decode(packet).map_err(Rejected::NotAPacket)?;
        if header.subflow != self.subflow {
            return Err(Rejected::OtherSubflow);
        }
        let (clear, sealed) = (packet.split_first_chunk::<HEADER>())
            .filter(|(_, sealed)| sealed.len() >= TAG)
            .ok_or(Rejected::NotAPacket(DecodeError::Truncated))?;
        let number = self.received.complete(header.number);
        self.received
            .check(number)
            .map_err(|not_new| match not_new {
                NotNew::Replayed => Rejected::Replayed,
                NotNew::TooOld => Rejected::TooOld,
            })?;
        scratch.clear();
        scratch.extend_from_slice(sealed);
        let (keys, is_next) = if header.phase == self.phase {
            (&self.current, false)
        } else if let Some(previous) = &self.previous
            && number < self.since
        {
            (previous, false)
        } else {
            (&self.next, true)
        };
        let payload = keys.open(number, clear, scratch).ok_or(Rejected::Forged)?;
        if is_next {
            self.change_keys(number);
        } else if header.phase == self.phase {
            self.since = self.since.min(number);
        }
        self.received.insert(number);
        Ok(Opened {
            number,
            ask: header.ask,
            payload: decode(header.kind, payload, packet.len()).map_err(Rejected::Malformed)?,
        })
    }

    #[cold]
    fn change_keys(&mut self, since: u64) {
        let after = self.next.next();
        let current = std::mem::replace(&mut self.next, after);
        self.previous = Some(std::mem::replace(&mut self.current, current));
        self.phase = !self.phase;
        self.since = since;
    }
}

fn decode(kind: Kind, payload: &[u8], size: usize) -> Result<Payload<'_>, DecodeError> {
    match kind {
        Kind::Data => {
            let mut reader = Reader::new(payload);
            let position = reader.u64()?;
            let content = reader.rest();
            if content.is_empty() {
                return Err(DecodeError::Truncated);
            }
            if position.checked_add(content.len() as u64).is_none() {
                return Err(DecodeError::Invalid("position"));
            }
            Ok(Payload::Data { position, content })
        }
        Kind::Ack => Ack::decode(payload).map(Payload::Ack),
        Kind::Probe => Ok(Payload::Probe { size }),
    }
}
