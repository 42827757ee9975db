//! Which blocks of a torrent are requested next, and from whom.
//!
//! Pure: no I/O and no clock; the caller passes the time, and chance comes from a seed. Downloads ask a
//! [`Picker`], and so do the leechers of simulated swarms.
//!
//! Pieces are chosen by rank: those that are read now ([`Wanted`]), then by the priority of their files. Of
//! those with the same rank they are chosen rarest first, the first one at random, or in order. Pieces
//! already begun come before new ones, and several connections may share a piece, block by block, so that
//! all path-level peers of a peer work on the same few pieces. Seeders are asked first for what no leecher
//! has, and leechers share those pieces out among each other.
//!
//! A block is requested over one connection only, except through [`Picker::duplicate`], which is for the
//! endgame. One that was given up may arrive all the same; it is not the peer's fault.
//!
//! Memory: a bit for each piece and connection, some bytes for each block of the pieces that are begun, and
//! at most 8,192 blocks for each connection that may still arrive late.

mod begun;
mod claims;
mod conn;
mod firsts;
mod peers;
mod picking;
mod piece;
mod rarity;
mod run;
mod selecting;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use hawser_metainfo::Pieces;
use hawser_wire::{BLOCK, Bitfield, Request};

use self::begun::Begun;
use self::claims::Claims;
use self::conn::{Asked, Conn, Expected};
use self::peers::Peers;
use self::piece::{Block, BlockRef};
pub use self::piece::{ConnId, GroupId};
use self::rarity::Rarity;
pub use self::wanted::{Padding, PieceOrder, Priority, Wanted};

/// Chooses what to fetch next, and over which connection.
#[derive(Debug)]
pub struct Picker {
    pieces: Pieces,
    verified: Bitfield,
    wanted: Wanted,
    /// Number of wanted pieces that are not verified.
    missing: u32,
    padding: Padding,
    /// The wanted pieces not begun.
    rarity: Rarity,
    /// Blocks of wanted pieces not begun, without padding.
    untouched: u64,
    begun: Begun,
    claims: Claims,
    conns: BTreeMap<ConnId, Conn>,
    /// The connections of each peer.
    peers: Peers,
    rng: fastrand::Rng,
    /// Blocks that arrived again, as they were requested over another connection although the first
    /// was expected to deliver them.
    repeated: u64,
}

/// The addresses of peers of one kind. Some leechers connect to peers of one kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFamily {
    /// SCION.
    Scion,
    /// Plain IP.
    Ip,
}

/// A request over a connection.
pub type Placed = (ConnId, Request);

/// Blocks chosen to be requested over a connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Picked {
    /// In the order in which they are to be sent.
    pub requests: Vec<Request>,
    /// Requests for the same blocks over stalled connections, to be cancelled.
    pub cancel: Vec<Placed>,
}

/// What to do with a block that arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A new block: write it. `cancel` lists requests that are no longer needed, or were forgotten
    /// by the peer; `complete` means that the block was the last one of its piece.
    New {
        /// Requests to be cancelled.
        cancel: Vec<Placed>,
        /// Whether its piece is complete, and to be verified.
        complete: bool,
    },
    /// The block was received before, is no longer wanted, or was never requested: drop it.
    Surplus,
    /// The peer sends far more than was requested of it: these bytes so far. Drop the peer.
    Flood(u64),
}

impl Picker {
    /// For a torrent whose pieces `verified` are on disk, and of which everything is wanted; `seed`
    /// is for the random choices.
    pub fn new(pieces: Pieces, verified: Bitfield, seed: u64) -> Self {
        let wanted = Wanted::everything(pieces);
        Self::of(pieces, verified, wanted, Padding::default(), seed)
    }

    /// For a torrent whose pieces `verified` are on disk, of which `wanted` is wanted, and of which
    /// `padding` is never requested; `seed` is for the random choices.
    pub fn of(
        pieces: Pieces,
        verified: Bitfield,
        wanted: Wanted,
        padding: Padding,
        seed: u64,
    ) -> Self {
        let mut picker = Self {
            rarity: Rarity::new(pieces.count()),
            pieces,
            verified,
            wanted,
            missing: 0,
            padding,
            untouched: 0,
            begun: Begun::default(),
            claims: Claims::default(),
            conns: BTreeMap::new(),
            peers: Peers::default(),
            rng: fastrand::Rng::with_seed(seed),
            repeated: 0,
        };
        (0..pieces.count()).for_each(|piece| picker.want(piece));
        picker
    }

    /// The verified pieces.
    pub fn verified(&self) -> &Bitfield {
        &self.verified
    }

    /// Number of blocks neither received nor requested over a connection that delivers.
    pub fn free_blocks(&self) -> u64 {
        self.begun.free() + self.untouched
    }

    /// Number of blocks requested, each counted once.
    pub fn asked_blocks(&self) -> u64 {
        self.begun.asked()
    }

    /// Adds a connection to a peer without any known piece.
    pub fn add_conn(&mut self, conn: ConnId, group: GroupId) {
        let known = Conn::new(group, self.pieces.count());
        self.conns.insert(conn, known);
        self.peers.set(conn, group);
    }

    /// Sets the peer id that this side has sent to its peers.
    pub fn set_own_id(&mut self, own: u64) {
        self.claims.set_own(own);
    }

    /// Sets the id of the peer of a connection that has just been added, and the kind of its address.
    pub fn set_peer(&mut self, conn: ConnId, id: u64, family: AddressFamily) {
        if let Some(known) = self.conns.get_mut(&conn) {
            known.family = Some(family);
            if !known.has.is_full() {
                self.claims.join(conn, id);
            }
        }
    }

    /// Takes note of what has happened since the last call; to be called about every 50 ms.
    pub fn review(&mut self, now: Instant) {
        let left = self.rarity.unavailable_pieces();
        self.claims.review(left, self.rarity.unavailable(), now);
    }

    /// Removes a connection; the blocks requested over it are free again.
    pub fn remove_conn(&mut self, conn: ConnId) {
        self.release(conn);
        self.claims.leave(conn);
        let elsewhere = self.all_counted_elsewhere(conn);
        let Some(gone) = self.conns.remove(&conn) else {
            return;
        };
        self.peers.remove(conn);
        if gone.counted {
            let has = gone.has.iter().filter(|piece| !elsewhere.has(*piece));
            has.for_each(|piece| self.rarity.subtract(piece, &self.wanted));
        }
    }

    /// Replaces the set of pieces that the peer has: libtorrent, Transmission and aria2 understand
    /// every bitfield so, not only the first one. Returns how many pieces the peer no longer has;
    /// [`Picker::release_missing`] frees the requests for those.
    pub fn set_has(&mut self, conn: ConnId, has: Bitfield) -> u32 {
        let elsewhere = self.all_counted_elsewhere(conn);
        let Some(known) = self.conns.get_mut(&conn) else {
            return 0;
        };
        if known.counted && known.has.is_empty() && has.is_full() {
            known.counted = false;
        } else if !known.counted && !has.is_full() {
            let has = known.has.iter().filter(|piece| !elsewhere.has(*piece));
            has.for_each(|piece| self.rarity.add(piece, &self.wanted));
            known.counted = true;
        }
        let mut lost = 0;
        for piece in known.has.differences(&has) {
            let gained = has.has(piece);
            lost += u32::from(!gained);
            if known.counted && !elsewhere.has(piece) {
                match gained {
                    true => self.rarity.add(piece, &self.wanted),
                    false => self.rarity.subtract(piece, &self.wanted),
                }
            }
            if !self.verified.has(piece) && self.wanted.has(piece) {
                match gained {
                    true => known.wanted += 1,
                    false => known.wanted -= 1,
                }
            }
        }
        known.has = has;
        known.exhausted = false;
        if known.has.is_full() {
            self.claims.leave(conn);
        }
        lost
    }

    /// Adds a piece that the peer has. Returns requests to be cancelled: blocks of it that others have now.
    pub fn add_has(&mut self, conn: ConnId, piece: u32) -> Vec<Placed> {
        let is_elsewhere = self.counted_elsewhere(conn).any(|has| has.has(piece));
        let Some(known) = self.conns.get_mut(&conn) else {
            return Vec::new();
        };
        if !known.has.set(piece) {
            return Vec::new();
        }
        known.exhausted = false;
        if known.counted && !is_elsewhere {
            if self.rarity.availability(piece) == 0 && !self.verified.has(piece) {
                self.claims.is_first(conn);
            }
            self.rarity.add(piece, &self.wanted);
        }
        if !self.verified.has(piece) && self.wanted.has(piece) {
            known.wanted += 1;
        }
        let is_counted = known.counted;
        if known.has.is_full() {
            self.claims.leave(conn);
        }
        match is_counted && self.begun.contains(piece) {
            true => self.spare_seeders(piece),
            false => Vec::new(),
        }
    }

    /// Whether the peer has `piece`, as far as is known.
    pub fn has(&self, conn: ConnId, piece: u32) -> bool {
        self.conns.get(&conn).is_some_and(|c| c.has.has(piece))
    }

    /// Number of peers that have `piece`, each counted once, without those that had every piece from the
    /// beginning.
    pub fn availability(&self, piece: u32) -> u32 {
        self.rarity.availability(piece)
    }

    /// Number of pieces that the peer has, as far as is known.
    pub fn has_count(&self, conn: ConnId) -> u32 {
        self.conns.get(&conn).map_or(0, |known| known.has.count())
    }

    /// Whether the peer has every piece, as far as is known.
    pub fn has_all(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|c| c.has.is_full())
    }

    /// Whether the peer has a piece that is wanted and not verified here.
    pub fn is_interesting(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|c| c.wanted > 0)
    }

    /// Number of blocks requested over `conn`.
    pub fn asked(&self, conn: ConnId) -> usize {
        self.conns.get(&conn).map_or(0, |c| c.asked.len())
    }

    /// Number of blocks that arrived and were not needed because they were requested twice: through
    /// [`Picker::duplicate`] or [`Picker::take_back`]. What a stalled connection delivers after all,
    /// or a peer sends twice, is none of them.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Number of requests that the peer has answered, without those made before the connection last
    /// stalled; `None` if the connection is not known.
    pub fn answered(&self, conn: ConnId) -> Option<u64> {
        self.conns.get(&conn).map(|c| c.answered)
    }

    /// Whether `conn` has stalled and the peer has answered no request made since: what it sends
    /// meanwhile shows only how late it is.
    pub fn is_late(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|c| c.is_late)
    }

    /// Chooses a block requested over another connection and counts it as requested over `conn`
    /// too. The candidate of each other connection is the last suitable block in its queue; the
    /// one with the greatest `gain(connection, place in its queue)` is chosen. A candidate whose
    /// gain is `None` is not.
    pub fn duplicate(
        &mut self,
        conn: ConnId,
        gain: impl Fn(ConnId, usize) -> Option<f64>,
    ) -> Option<Request> {
        let known = self.conns.get(&conn)?;
        let candidates = self.conns.iter().filter_map(|(holder, other)| {
            if *holder == conn {
                return None;
            }
            let mut from_last = other.asked.iter().enumerate().rev();
            let (place, asked) = from_last.find(|(_, asked)| {
                known.has.has(asked.block.0) && self.begun.may_share(asked.block, conn, known.group)
            })?;
            Some((gain(*holder, place)?, asked.block))
        });
        let (_, chosen) = candidates.max_by(|a, b| a.0.total_cmp(&b.0))?;
        self.begun.share(chosen, conn)?;
        let request = request(self.pieces, &self.padding, chosen);
        self.conns.get_mut(&conn)?.ask(chosen, request.length);
        Some(request)
    }

    /// Takes note of a block that arrived over `conn`. It need not be one that is expected: a peer
    /// may answer late, twice, or to a request that was cancelled while the answer was under way.
    pub fn receive(&mut self, conn: ConnId, arrived: Request, now: Instant) -> Arrival {
        let block = (arrived.piece, arrived.begin / BLOCK);
        let Some(known) = self.conns.get_mut(&conn) else {
            return Arrival::Surplus;
        };
        known.received_bytes += u64::from(arrived.length);
        if known.is_flooding() {
            return Arrival::Flood(known.received_bytes);
        }
        if arrived.piece >= self.pieces.count()
            || request(self.pieces, &self.padding, block) != arrived
        {
            return Arrival::Surplus;
        }
        let was_suspended = self.begun.is_suspended(conn, block);
        let taken = known.take(block, now);
        let (before, expected) = match taken {
            Some(Expected::Asked { before, .. }) => (before, true),
            Some(Expected::Suspended) => (0, was_suspended),
            None if known.late.contains(&block) => (0, false),
            None => return Arrival::Surplus,
        };
        self.claims.received(!known.counted, arrived.length);
        let is_answered_probe = known.probe == Some(block);
        let group = known.group;
        let Some((state, complete)) = self.begun.receive(block, group, !expected) else {
            self.repeated += u64::from(known.repeated.contains(&block));
            return Arrival::Surplus;
        };
        if matches!(taken, Some(Expected::Asked { before_stall, .. }) if !before_stall) {
            known.answer();
        }
        let mut cancel = match state {
            Block::Asked(holder) | Block::Suspended(holder) => {
                self.call_off(conn, block, &[holder])
            }
            Block::Shared(holders) => self.call_off(conn, block, &holders),
            Block::Free | Block::Received(_) | Block::Padding => Vec::new(),
        };
        if is_answered_probe {
            cancel.extend(self.answered_probe(conn, before));
        }
        Arrival::New { cancel, complete }
    }

    /// The peer answered the probe. It was requested last, so the `before` blocks requested earlier
    /// that have not arrived were forgotten by the peer: they are free again. Returns the requests.
    fn answered_probe(&mut self, conn: ConnId, before: usize) -> Vec<Placed> {
        let Some(known) = self.conns.get_mut(&conn) else {
            return Vec::new();
        };
        known.probe = None;
        let forgotten: Vec<BlockRef> = known.asked.iter().take(before).map(|a| a.block).collect();
        let released = self.release_where(conn, |_, asked| forgotten.contains(&asked.block));
        let released = released.into_iter();
        released.map(|request| (conn, request)).collect()
    }

    /// Cancels the requests for `block` over every connection except `conn`, and returns them.
    fn call_off(&mut self, conn: ConnId, block: BlockRef, holders: &[ConnId]) -> Vec<Placed> {
        let others = holders.iter().copied().filter(|other| *other != conn);
        others
            .filter_map(|other| self.withdraw(other, block))
            .collect()
    }

    /// Withdraws the request for `block` over `conn`, and returns it, to be cancelled.
    fn withdraw(&mut self, conn: ConnId, block: BlockRef) -> Option<Placed> {
        let known = self.conns.get_mut(&conn)?;
        let is_repeated = known.is_expected(block);
        if !known.withdraw(block) {
            return None;
        }
        known.remember_late(block, |block| self.begun.is_missing(block));
        if is_repeated {
            known.repeated.insert(block);
        }
        Some((conn, request(self.pieces, &self.padding, block)))
    }

    /// Frees the blocks requested over `conn` for other connections. Blocks that arrive all the
    /// same are still accepted. Returns the requests.
    pub fn release(&mut self, conn: ConnId) -> Vec<Request> {
        self.release_where(conn, |_, _| true)
    }

    /// Frees the requests over `conn` for pieces that the peer no longer has, and returns them.
    pub fn release_missing(&mut self, conn: ConnId) -> Vec<Request> {
        self.release_where(conn, |has, asked| !has.has(asked.block.0))
    }

    /// Frees and returns the requests over `conn` that were overtaken at `before` or earlier by
    /// blocks requested later: the peer has dropped them.
    pub fn release_passed(&mut self, conn: ConnId, before: Instant) -> Vec<Request> {
        let overdue = |asked: &Asked| asked.passed.is_some_and(|passed| passed <= before);
        let first = self.conns.get(&conn).and_then(|c| c.asked.front());
        if !first.is_some_and(overdue) {
            return Vec::new();
        }
        self.release_where(conn, |_, asked| overdue(asked))
    }

    /// Suspends the requests over `conn`, which has stalled: they stay with the peer, which may be
    /// paused only, and other connections may request the blocks too. Returns the requests to be
    /// cancelled: those for blocks that others have requested already.
    pub fn suspend(&mut self, conn: ConnId) -> Vec<Request> {
        let Some(known) = self.conns.get_mut(&conn) else {
            return Vec::new();
        };
        known.is_late = true;
        // It would not have delivered what was taken back from it either.
        known.repeated.clear();
        let mut cancel = Vec::new();
        for Asked { block, .. } in std::mem::take(&mut known.asked) {
            if self.begun.suspend(conn, block) {
                known.suspended.push_back(block);
            } else {
                known.remember_late(block, |block| self.begun.is_missing(block));
                cancel.push(request(self.pieces, &self.padding, block));
            }
        }
        self.begun.restart_waiting_for(known.group);
        cancel
    }

    /// Expects the suspended blocks over `conn` again, except those that other connections have
    /// requested meanwhile: the peer still has the requests.
    pub fn resume(&mut self, conn: ConnId) {
        let Some(known) = self.conns.get_mut(&conn) else {
            return;
        };
        for block in std::mem::take(&mut known.suspended) {
            if self.begun.resume(conn, block) {
                known.asked.push_back(Asked::before_stall(block));
            } else {
                known.remember_late(block, |block| self.begun.is_missing(block));
            }
        }
    }

    /// Chooses a block to request over a stalled connection, to see whether the peer answers again:
    /// the last that was requested, so that an answer shows whether it forgot those before.
    pub fn probe(&mut self, conn: ConnId) -> Picked {
        let known = self.conns.get(&conn);
        let mut suspended = known.into_iter().flat_map(|known| &known.suspended).rev();
        let last = suspended.find(|block| self.begun.is_suspended(conn, **block));
        let Some(block) = last.copied() else {
            let picked = self.pick(conn, 1);
            self.suspend(conn);
            return picked;
        };
        let request = request(self.pieces, &self.padding, block);
        if let Some(known) = self.conns.get_mut(&conn) {
            known.probe = Some(block);
            known.requested_bytes += u64::from(request.length);
        }
        Picked {
            requests: vec![request],
            cancel: Vec::new(),
        }
    }

    /// Frees and returns the last requests over `conn`, at most `most`, so that at least `keep` stay.
    pub fn take_back(&mut self, conn: ConnId, keep: usize, most: usize) -> Vec<Request> {
        let Some(known) = self.conns.get(&conn) else {
            return Vec::new();
        };
        let first = known.asked.len().saturating_sub(most).max(keep);
        let last: HashSet<BlockRef> = known.asked.iter().skip(first).map(|it| it.block).collect();
        if last.is_empty() {
            return Vec::new();
        }
        let expected = last.iter().filter(|block| known.is_expected(**block));
        let expected: Vec<BlockRef> = expected.copied().collect();
        let released = self.release_where(conn, |_, asked| last.contains(&asked.block));
        if let Some(known) = self.conns.get_mut(&conn) {
            known.repeated.extend(expected);
        }
        released
    }

    /// Frees and returns the requests for which `which` (given the pieces of the peer) is true.
    fn release_where(
        &mut self,
        conn: ConnId,
        which: impl Fn(&Bitfield, &Asked) -> bool,
    ) -> Vec<Request> {
        let Some(known) = self.conns.get_mut(&conn) else {
            return Vec::new();
        };
        let given_back = known.take_asked(which);
        // The block freed last is taken first: keep the order in which they were requested.
        for block in given_back.iter().rev() {
            known.remember_late(*block, |block| self.begun.is_missing(block));
            self.begun.give_back(conn, *block);
        }
        self.begun.restart_waiting_for(known.group);
        let given_back = given_back.into_iter();
        given_back
            .map(|block| request(self.pieces, &self.padding, block))
            .collect()
    }

    /// Marks a piece as verified.
    pub fn verify(&mut self, piece: u32) {
        self.begun.remove(piece);
        if !self.verified.set(piece) {
            return;
        }
        if self.rarity.availability(piece) == 0 {
            self.claims.is_first_itself();
        }
        if self.wanted.has(piece) {
            self.missing -= 1;
            let had = self.conns.values_mut().filter(|c| c.has.has(piece));
            had.for_each(|conn| conn.wanted -= 1);
        }
    }

    /// The sender of each block of a piece that is begun; `None` for padding, and for what is missing.
    pub fn senders(&self, piece: u32) -> Vec<Option<GroupId>> {
        self.begun.senders(piece)
    }

    /// The hash of a piece is wrong: it is fetched again, from one peer, if it is still wanted.
    /// Returns the sender of each block; `None` for padding.
    pub fn fail(&mut self, piece: u32) -> Vec<Option<GroupId>> {
        let senders = self.begun.senders(piece);
        match self.wanted.has(piece) {
            true => self.begun.restart(piece),
            false => self.begun.remove(piece),
        }
        senders
    }
}

fn request(pieces: Pieces, padding: &Padding, (piece, block): BlockRef) -> Request {
    let begin = block.saturating_mul(BLOCK);
    let length = pieces.size(piece).saturating_sub(begin).min(BLOCK);
    Request {
        piece,
        begin,
        length: padding.trim(pieces.start(piece) + u64::from(begin), length),
    }
}
