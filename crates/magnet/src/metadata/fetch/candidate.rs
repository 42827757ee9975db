//! An info dictionary of one length, of which pieces arrive.

use std::collections::BTreeSet;

use super::super::piece_count;
use super::peer::ConnectionId;

/// A piece.
#[derive(Debug, Clone)]
enum Slot {
    /// It is to be requested.
    Missing,
    /// It was requested from a peer.
    Asked(ConnectionId),
    /// A peer sent it.
    Received(ConnectionId, Box<[u8]>),
}

/// The pieces of an info dictionary. Memory is taken up as they arrive.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Its length, in bytes.
    pub size: usize,
    slots: Vec<Slot>,
    received: usize,
}

impl Candidate {
    pub fn new(size: usize) -> Self {
        Self {
            size,
            slots: vec![Slot::Missing; piece_count(size)],
            received: 0,
        }
    }

    /// Number of pieces that were received, and of all.
    pub fn progress(&self) -> (usize, usize) {
        (self.received, self.slots.len())
    }

    pub fn is_complete(&self) -> bool {
        self.received == self.slots.len()
    }

    /// The pieces that are to be requested, in order.
    pub fn missing(&self) -> Vec<u32> {
        let slots = (0..).zip(&self.slots);
        let missing = slots.filter(|(_, slot)| matches!(slot, Slot::Missing));
        missing.map(|(piece, _)| piece).collect()
    }

    pub fn ask(&mut self, piece: u32, of: ConnectionId) {
        if let Some(slot @ Slot::Missing) = self.slots.get_mut(piece as usize) {
            *slot = Slot::Asked(of);
        }
    }

    /// Has a piece that was requested from `of` be requested again.
    pub fn release(&mut self, piece: u32, of: ConnectionId) {
        if let Some(slot) = self.slots.get_mut(piece as usize)
            && matches!(slot, Slot::Asked(asked) if *asked == of)
        {
            *slot = Slot::Missing;
        }
    }

    /// Has all pieces that were requested from `of` be requested again.
    pub fn release_all(&mut self, of: ConnectionId) {
        for slot in &mut self.slots {
            if matches!(slot, Slot::Asked(asked) if *asked == of) {
                *slot = Slot::Missing;
            }
        }
    }

    /// Takes a piece, unless it was received before. Its length must be right.
    pub fn receive(&mut self, piece: u32, bytes: &[u8], from: ConnectionId) {
        match self.slots.get_mut(piece as usize) {
            None | Some(Slot::Received(..)) => {}
            Some(slot) => {
                *slot = Slot::Received(from, bytes.into());
                self.received += 1;
            }
        }
    }

    /// Drops what other peers than `from` sent, and has all other pieces be requested again.
    pub fn keep_only(&mut self, from: ConnectionId) {
        self.keep(|sender| sender == from);
        for slot in &mut self.slots {
            if matches!(slot, Slot::Asked(_)) {
                *slot = Slot::Missing;
            }
        }
    }

    /// Drops what a peer sent.
    pub fn drop_all(&mut self, from: ConnectionId) {
        self.keep(|sender| sender != from);
    }

    /// Keeps what some peers sent.
    fn keep(&mut self, is_kept: impl Fn(ConnectionId) -> bool) {
        for slot in &mut self.slots {
            if matches!(slot, Slot::Received(sender, _) if !is_kept(*sender)) {
                *slot = Slot::Missing;
                self.received -= 1;
            }
        }
    }

    /// The pieces that were received with their senders, in order.
    pub fn pieces(&self) -> impl Iterator<Item = (u32, ConnectionId, &[u8])> + Clone {
        (0..)
            .zip(&self.slots)
            .filter_map(|(piece, slot)| match slot {
                Slot::Received(from, bytes) => Some((piece, *from, &bytes[..])),
                Slot::Missing | Slot::Asked(_) => None,
            })
    }

    /// The peers that sent something of it.
    pub fn senders(&self) -> BTreeSet<ConnectionId> {
        self.pieces().map(|(_, from, _)| from).collect()
    }
}
