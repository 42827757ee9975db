//! Sealing packets.

use crate::cipher::Cipher;
use crate::header::{Header, Kind, SubflowId};
use crate::keys::{Keys, SECRET};

/// Most packets sealed with one key: the limit for AES-GCM (RFC 9001, 6.6) for packets of any size.
pub(crate) const PACKETS_PER_KEY: u64 = 1 << 23;

/// Seals the packets of one direction of a subflow, and numbers them.
#[derive(Debug)]
pub struct Sealer {
    subflow: SubflowId,
    keys: Keys,
    pub(crate) phase: bool,
    /// The number of the next packet.
    pub(crate) next: u64,
    /// The first number that the current key may not seal.
    pub(crate) key_end: u64,
}

impl Sealer {
    /// A sealer with the exported secret of its direction ([`SECRET`]).
    pub fn new(cipher: Cipher, secret_and_id: &[u8; SECRET]) -> Self {
        let (keys, subflow) = Keys::exported(cipher, secret_and_id);
        Self {
            subflow,
            keys,
            phase: false,
            next: 0,
            key_end: PACKETS_PER_KEY,
        }
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The id in all packets.
    pub fn subflow_id(&self) -> SubflowId {
        self.subflow
    }

    /// Appends one packet to `out`, and returns its number. `payload` appends what the packet
    /// carries, and changes nothing before that. With `ask`, the packet asks for an answer.
    #[inline]
    pub fn seal(
        &mut self,
        out: &mut Vec<u8>,
        kind: Kind,
        ask: bool,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> u64 {
        let number = self.next;
        if number == self.key_end {
            self.change_keys();
        }
        let header = Header {
            kind,
            phase: self.phase,
            ask,
            subflow: self.subflow,
            number: number as u32,
        };
        let header = header.encode();
        out.extend_from_slice(&header);
        let start = out.len();
        payload(out);
        self.keys.seal(number, &header, out, start);
        self.next += 1;
        number
    }

    #[cold]
    fn change_keys(&mut self) {
        self.keys = self.keys.next();
        self.phase = !self.phase;
        self.key_end += PACKETS_PER_KEY;
    }
}
