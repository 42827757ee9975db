//! Which peers a BitTorrent peer serves at a time: choking (BEP 3; Cohen, *Incentives Build
//! Robustness in BitTorrent*, 2003).
//!
//! Pure: no I/O and no clock; chance comes from a seed. The owner reports what happens, and calls
//! [`Choker::tick`] after that and at [`Choker::next_due`]; it chokes and unchokes peers as the
//! orders say.
//!
//! A peer here is an *address-level* peer. One slot unchokes all paths to it, and what it sends
//! over all of them is added up, so more paths buy no more than what they carry.
//!
//! # Slots
//!
//! Every peer that is served holds one of a fixed number of slots. Every 10 s ([`RECHOKE`]) they
//! are given anew:
//!
//! - *Earned* slots go to the peers that did most in the last 20 s. While this side
//!   [fetches](Goal::Fetching), these are the ones that sent it most (tit-for-tat); a peer that has
//!   sent no block for 60 s ([`SNUBBED`]) earns none. While it [seeds](Goal::Seeding), they are the
//!   ones that receive fastest.
//! - All other slots are *optimistic*: at least a fifth of them while it fetches, and half of them
//!   while it seeds. A peer holds one for 30 s ([`TURN`]), then the next one is drawn. One that
//!   never held a slot is drawn with three times the chance of others, as it has nothing yet to
//!   give.
//!
//! A slot that is free is given at once. A peer that wants nothing any more keeps its slot until
//! another one wants it: peers of a swarm often are interested again a moment later. If it has
//! earned the slot, it then gets it back at once. A peer that downloads nothing (BEP 21) never gets
//! one.
//!
//! While a peer waits, at most four times as many optimistic slots are given to others as peers
//! wait: after three times as many it is drawn before those that waited less.

mod choker;
mod peer;
#[cfg(test)]
mod tests;
mod waiting;

use std::iter::Sum;
use std::ops::Add;
use std::time::Duration;

pub use self::choker::Choker;

/// Time between two reviews of which peers earn a slot.
pub const RECHOKE: Duration = Duration::from_secs(10);

/// Time for which an optimistic slot is held, if others wait for it; [`RECHOKE`] where nothing was
/// sent to the peer meanwhile.
pub const TURN: Duration = Duration::from_secs(30);

/// A peer that has sent no block for this long earns no slot.
pub const SNUBBED: Duration = Duration::from_secs(60);

/// Number of slots without a limit of the rate: the default of libtorrent.
pub const DEFAULT_SLOTS: usize = 8;

/// Fewest slots: one that is earned, one that is optimistic.
const MIN_SLOTS: usize = 2;

/// Least rate for which a slot is opened, in bytes per second: about a block each second. With
/// less, a peer would wait for each block longer than others wait before they look for another
/// source.
const MIN_RATE: u64 = 16 << 10;

/// Number of slots for a limit of the upload rate in bytes per second: one for every 16 KiB/s, from
/// 2 to [`DEFAULT_SLOTS`]. Without a limit [`DEFAULT_SLOTS`].
pub fn slots_for(limit: Option<u64>) -> usize {
    let fitting = |limit: u64| usize::try_from(limit / MIN_RATE).unwrap_or(usize::MAX);
    limit.map_or(DEFAULT_SLOTS, |limit| {
        fitting(limit).clamp(MIN_SLOTS, DEFAULT_SLOTS)
    })
}

/// What this side wants from the swarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// It fetches, and serves those that serve it.
    Fetching,
    /// It has everything, and spreads it.
    Seeding,
}

/// Bytes of blocks that were exchanged with a peer, since any moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes received from it.
    pub received: u64,
    /// Bytes sent to it.
    pub sent: u64,
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            sent: self.sent + other.sent,
        }
    }
}

impl Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// An order about a peer: about all paths to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order<P> {
    /// The peer.
    pub peer: P,
    /// What is to be done.
    pub action: Action,
}

/// What is to be done with a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Answer its requests.
    Unchoke,
    /// Drop its requests, and answer none.
    Choke,
}
