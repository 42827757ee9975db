//! What a host has, and what it fetches next.

use std::time::Instant;

use hawser_picker::{AddressFamily, Arrival, ConnId, Picker, Placed};
use hawser_wire::{BLOCK, Bitfield, Request};

use crate::names::{FlowKey, HostId};
use crate::random::mix;

/// Number of pieces, unless they would be smaller than a block.
const PIECES: u64 = 128;

/// The pieces of a host, and the picker that chooses what it requests.
#[derive(Debug)]
pub(crate) struct Pieces {
    picker: Picker,
    size: u64,
    left: u64,
    /// How often something happened that may let idle path-level peers have something to send.
    chances: u64,
    /// Whether, since the last review, a leecher came, or was the first to have a piece.
    has_news: bool,
}

/// A block on its way to a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetch {
    request: Request,
    /// Bytes that have not arrived.
    left: u32,
}

/// What comes of a block that has arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// The piece that it completes.
    pub whole: Option<u32>,
    /// Requests that are needed no more.
    pub cancel: Vec<Placed>,
}

/// The connection that tells a host which pieces another host has. It exists also while the other host does
/// not serve it.
fn acquaintance(other: HostId) -> ConnId {
    u64::from(other) << 32
}

/// The connection of a path-level peer.
pub(crate) fn connection(key: FlowKey) -> ConnId {
    acquaintance(key.from) + 1 + key.path as u64
}

/// The id of a host, as other leechers see it.
fn id(host: HostId) -> u64 {
    mix(u64::from(host))
}

impl Pieces {
    fn new(size: u64, has: fn(u32) -> Bitfield, host: HostId, seed: u64) -> Self {
        let length = size.div_ceil(PIECES).next_multiple_of(u64::from(BLOCK));
        let pieces = hawser_metainfo::Pieces {
            length: u32::try_from(length).unwrap_or(u32::MAX / BLOCK * BLOCK),
            total: size,
        };
        let has = has(pieces.count());
        let left = if has.is_full() { 0 } else { size };
        let mut picker = Picker::new(pieces, has, seed);
        picker.set_own_id(id(host));
        Self {
            picker,
            size,
            left,
            chances: 0,
            has_news: false,
        }
    }

    /// A host without pieces of content of this size, in bytes; `seed` is for its random choices.
    pub fn none(size: u64, host: HostId, seed: u64) -> Self {
        Self::new(size, Bitfield::empty, host, seed)
    }

    /// A host with all pieces.
    pub fn all(size: u64, host: HostId) -> Self {
        Self::new(size, Bitfield::full, host, 0)
    }

    /// Bytes of the content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of blocks that have not arrived.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The pieces it has.
    pub fn held(&self) -> &Bitfield {
        self.picker.verified()
    }

    /// Whether it has everything.
    pub fn is_complete(&self) -> bool {
        self.picker.is_complete()
    }

    /// Meets another leecher, which has these pieces.
    pub fn meet(&mut self, other: HostId, has: Bitfield) {
        self.join(acquaintance(other), other, has);
        self.has_news = true;
    }

    /// The other leecher has left.
    pub fn part(&mut self, other: HostId) {
        self.picker.remove_conn(acquaintance(other));
    }

    /// It has left, complete: it needs to know nobody any more.
    pub fn forget(&mut self) {
        *self = Self::all(self.size, 0);
    }

    /// Whether a leecher that it has met has a piece that is missing here.
    pub fn wants(&self, other: HostId) -> bool {
        self.picker.is_interesting(acquaintance(other))
    }

    /// Whether a piece that has become complete here may have been the last one wanted of another leecher.
    pub fn may_want_less(&self, other: HostId, piece: u32) -> bool {
        let other = acquaintance(other);
        self.picker.has(other, piece) && !self.picker.is_interesting(other)
    }

    /// A host that has these pieces begins to serve it as this path-level peer.
    pub fn begin(&mut self, key: FlowKey, has: Bitfield) {
        self.join(connection(key), key.from, has);
    }

    fn join(&mut self, conn: ConnId, other: HostId, has: Bitfield) {
        self.picker.add_conn(conn, other);
        self.picker.set_has(conn, has);
        self.picker.set_peer(conn, id(other), AddressFamily::Scion);
    }

    /// The path-level peer is gone.
    pub fn end(&mut self, key: FlowKey) {
        self.picker.remove_conn(connection(key));
        self.add_chance();
    }

    /// The path-level peer serves it no more, for now.
    pub fn release(&mut self, key: FlowKey) {
        self.picker.release(connection(key));
        self.add_chance();
    }

    /// A leecher has one more piece. Returns requests that are needed no more.
    pub fn add(&mut self, other: HostId, flows: &[FlowKey], piece: u32) -> Vec<Placed> {
        self.has_news |= self.picker.availability(piece) == 0;
        let mut cancel = self.picker.add_has(acquaintance(other), piece);
        for key in flows {
            cancel.extend(self.picker.add_has(connection(*key), piece));
        }
        if !cancel.is_empty() {
            self.add_chance();
        }
        cancel
    }

    /// Whether a leecher came, or was the first to have a piece, since the last review.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Takes note of the time; to be called in every step in which it fetches from seeders or has news. In others
    /// there is nothing but time to take note of, which the next call does.
    pub fn review(&mut self, now: Instant) {
        self.has_news = false;
        self.picker.review(now);
    }

    /// The next block to fetch from a path-level peer.
    pub fn request(&mut self, key: FlowKey) -> Option<Fetch> {
        let mut picked = self.picker.pick(connection(key), 1);
        let request = picked.requests.pop()?;
        // It may have begun a piece whose other blocks are free, or left none free, and the end begins.
        self.add_chance();
        Some(Fetch::of(request))
    }

    /// How often something happened that may let a path-level peer, which had nothing to send, have something:
    /// blocks became free, a piece was begun, or a block is late. That the peer gains a piece is not counted.
    pub fn chances(&self) -> u64 {
        self.chances
    }

    /// Something happened of which [`Self::chances`] counts.
    pub fn add_chance(&mut self) {
        self.chances += 1;
    }

    /// Whether every block is here or on its way.
    pub fn is_ending(&self) -> bool {
        self.picker.free_blocks() == 0
    }

    /// A block to fetch from a path-level peer that others would deliver later: `late` says in how many
    /// seconds, if that is too late.
    pub fn repeat(&mut self, key: FlowKey, late: impl Fn(ConnId) -> Option<f64>) -> Option<Fetch> {
        let own = connection(key);
        let again = self.picker.duplicate(own, |conn, _| late(conn))?;
        Some(Fetch::of(again))
    }

    /// A block has arrived from a path-level peer.
    pub fn receive(&mut self, key: FlowKey, fetch: Fetch, now: Instant) -> Arrived {
        let request = fetch.request;
        match self.picker.receive(connection(key), request, now) {
            Arrival::New { cancel, complete } => {
                self.left -= u64::from(request.length);
                if complete {
                    self.has_news |= self.picker.availability(request.piece) == 0;
                    self.picker.verify(request.piece);
                }
                let whole = complete.then_some(request.piece);
                Arrived { whole, cancel }
            }
            Arrival::Surplus | Arrival::Flood(_) => Arrived::default(),
        }
    }
}

impl Fetch {
    fn of(request: Request) -> Self {
        Self {
            request,
            left: request.length,
        }
    }

    /// Bytes of it that have arrived.
    pub fn begun(self) -> u64 {
        u64::from(self.request.length - self.left)
    }

    /// Seconds until it arrives at this rate, in bytes per second.
    pub fn seconds(self, rate: f64) -> f64 {
        f64::from(self.left) / rate
    }

    /// Takes up to `bytes` bytes that arrive. Returns how many, and whether it is whole.
    pub fn take(&mut self, bytes: u64) -> (u64, bool) {
        let taken = u64::from(self.left).min(bytes);
        self.left -= taken as u32;
        (taken, self.left == 0)
    }

    /// Whether it is this request over this connection.
    pub fn is(self, key: FlowKey, placed: &Placed) -> bool {
        *placed == (connection(key), self.request)
    }
}

/// The path-level peer of a connection to the host `to`; `None` for an acquaintance.
pub(crate) fn flow(conn: ConnId, to: HostId) -> Option<FlowKey> {
    let path = (conn & u64::from(u32::MAX)).checked_sub(1)?;
    Some(FlowKey {
        from: (conn >> 32) as HostId,
        to,
        path: path as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(from: HostId) -> FlowKey {
        FlowKey {
            from,
            to: 9,
            path: 2,
        }
    }

    #[test]
    fn pieces_add_up() {
        for size in [1, 16 << 10, (16 << 10) + 1, 100_000_000, 1 << 40] {
            let (mut host, all) = (Pieces::none(size, 9, 1), Pieces::all(size, 1));
            assert_eq!((host.left(), all.left()), (size, 0));
            assert!(all.is_complete() && !host.is_complete());
            if size == 1 << 40 {
                continue;
            }
            assert!(all.held().count() <= 128);
            host.begin(key(1), all.held().clone());
            let mut carried = 0;
            while let Some(mut fetch) = host.request(key(1)) {
                carried += fetch.take(10_000).0;
                let (rest, whole) = fetch.take(u64::MAX);
                carried += rest;
                assert!(whole);
                host.receive(key(1), fetch, Instant::now());
            }
            assert_eq!((carried, host.left()), (size, 0));
            assert!(host.is_complete());
        }
    }

    #[test]
    fn connections_are_those_of_flows() {
        assert_eq!(flow(connection(key(7)), 9), Some(key(7)));
        assert_eq!(flow(acquaintance(7), 9), None);
    }

    #[test]
    fn leechers_that_have_met_know_what_the_other_has() {
        let size = 4 * u64::from(BLOCK);
        let mut host = Pieces::none(size, 9, 1);
        host.meet(3, Bitfield::empty(4));
        assert!(!host.wants(3));
        host.add(3, &[], 2);
        assert!(host.wants(3));
        host.begin(key(3), Bitfield::empty(4));
        assert!(host.request(key(3)).is_none());
        host.add(3, &[key(3)], 2);
        let fetch = host.request(key(3)).unwrap();
        assert!(!host.is_ending());
        // Another path-level peer may be faster.
        host.begin(key(4), Bitfield::full(4));
        while host.request(key(4)).is_some() {}
        assert!(host.is_ending());
        let again = host.repeat(key(4), |_| Some(2.0)).unwrap();
        assert_eq!(again.request, fetch.request);
        let arrived = host.receive(key(4), again, Instant::now());
        assert_eq!(arrived.whole, Some(2));
        assert!(fetch.is(key(3), &arrived.cancel[0]));
        host.part(3);
        assert!(!host.wants(3));
    }
}
