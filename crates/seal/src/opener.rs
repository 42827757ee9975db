//! Opening packets.

use thiserror::Error;

use crate::cipher::Cipher;
use crate::header::{Header, Kind, SubflowId};
use crate::keys::{Keys, SECRET};
use crate::window::{NotNew, Window};

/// Opens the packets of one direction of a subflow.
#[derive(Debug)]
pub struct Opener {
    subflow: SubflowId,
    cipher: Cipher,
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
    /// What the payload is.
    pub kind: Kind,
    /// The sender wants an answer at once.
    pub ask: bool,
    /// What the packet carries.
    pub payload: &'a mut [u8],
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It does not begin with the header of a packet, or is too short for header and tag.
    #[error("it is not a sealed packet")]
    NotAPacket,
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
}

impl Rejections {
    /// All dropped packets.
    pub fn total(&self) -> u64 {
        self.not_packets + self.other_subflow + self.forged + self.replayed + self.too_old
    }

    fn count(&mut self, rejected: Rejected) {
        *match rejected {
            Rejected::NotAPacket => &mut self.not_packets,
            Rejected::OtherSubflow => &mut self.other_subflow,
            Rejected::Replayed => &mut self.replayed,
            Rejected::TooOld => &mut self.too_old,
            Rejected::Forged => &mut self.forged,
        } += 1;
    }
}

impl Opener {
    /// An opener with the exported secret of the sender's direction ([`SECRET`]).
    pub fn new(cipher: Cipher, secret_and_id: &[u8; SECRET]) -> Self {
        let (current, subflow) = Keys::exported(cipher, secret_and_id);
        Self {
            subflow,
            cipher,
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

    /// How many packets are known to have been sent: their numbers are consecutive.
    pub fn sent(&self) -> u64 {
        self.received.next()
    }

    /// The packets that were dropped.
    pub fn rejections(&self) -> Rejections {
        self.rejections
    }

    /// Opens `packet`; `scratch` holds its payload alone. Only packets that open change what is
    /// received later.
    ///
    /// # Errors
    /// Why the packet is dropped; it is counted.
    #[inline]
    pub fn open<'a>(
        &mut self,
        packet: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<Opened<'a>, Rejected> {
        scratch.clear();
        self.open_into(packet, scratch)
    }

    /// Opens `packet` as [`open`](Self::open) does, and appends its payload to `out`.
    ///
    /// # Errors
    /// Why the packet is dropped; it is counted, and `out` is unchanged.
    #[inline]
    pub fn open_into<'a>(
        &mut self,
        packet: &[u8],
        out: &'a mut Vec<u8>,
    ) -> Result<Opened<'a>, Rejected> {
        let start = out.len();
        match self.try_open(packet, out, start) {
            Ok((Header { kind, ask, .. }, number)) => Ok(Opened {
                number,
                kind,
                ask,
                payload: &mut out[start..],
            }),
            Err(rejected) => {
                out.truncate(start);
                self.rejections.count(rejected);
                Err(rejected)
            }
        }
    }

    /// The header of `packet` and its number; its payload is in `out` from `start`. If it is
    /// rejected, anything may be there.
    #[inline]
    fn try_open(
        &mut self,
        packet: &[u8],
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(Header, u64), Rejected> {
        let (clear, sealed) = (packet.split_first_chunk()).ok_or(Rejected::NotAPacket)?;
        let header = Header::decode(clear).ok_or(Rejected::NotAPacket)?;
        if header.subflow != self.subflow {
            return Err(Rejected::OtherSubflow);
        }
        if packet.len() < self.cipher.overhead() {
            return Err(Rejected::NotAPacket);
        }
        let number = self.received.complete(header.number);
        self.received
            .check(number)
            .map_err(|not_new| match not_new {
                NotNew::Replayed => Rejected::Replayed,
                NotNew::TooOld => Rejected::TooOld,
            })?;
        let (keys, is_next) = if header.phase == self.phase {
            (&self.current, false)
        } else if let Some(previous) = &self.previous
            && number < self.since
        {
            (previous, false)
        } else {
            (&self.next, true)
        };
        out.extend_from_slice(sealed);
        let payload = keys
            .open(number, clear, &mut out[start..])
            .ok_or(Rejected::Forged)?;
        out.truncate(start + payload);
        if is_next {
            self.change_keys(number);
        } else if header.phase == self.phase {
            self.since = self.since.min(number);
        }
        self.received.insert(number);
        Ok((header, number))
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
