//! Which block is requested over which connection.
//!
//! Pure: no I/O; the caller passes the time. Pieces are chosen rarest first, the first one at
//! random; pieces already begun come before new ones, and several connections may share a piece,
//! block by block, so that all path-level peers of a peer work on the same few pieces. A block is
//! requested over one connection only, except through [`Picker::duplicate`], which is for the
//! endgame.

mod begun;
mod conn;
mod piece;
mod rarity;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use self::begun::Begun;
use self::conn::{Asked, Conn};
use self::piece::{Block, BlockRef};
pub(crate) use self::piece::{ConnId, GroupId};
use self::rarity::Rarity;
use crate::bitfield::Bitfield;
use crate::pieces::Pieces;
use crate::wire::{BLOCK, Request};

/// Chooses what to fetch next, and over which connection.
#[derive(Debug)]
pub(crate) struct Picker {
    pieces: Pieces,
    verified: Bitfield,
    /// The pieces not begun.
    rarity: Rarity,
    /// Blocks of pieces not begun.
    untouched: u64,
    begun: Begun,
    conns: HashMap<ConnId, Conn>,
    /// Connections that may have late blocks.
    late: BTreeSet<ConnId>,
    rng: fastrand::Rng,
}

/// What to do with a block that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A new block: write it. `cancel` lists requests over other connections that are no longer
    /// needed; `complete` means that the block was the last one of its piece.
    New {
        cancel: Vec<(ConnId, Request)>,
        complete: bool,
    },
    /// The block was received before or is no longer wanted: drop it.
    Duplicate,
    /// The block was never requested over this connection.
    Unrequested,
}

impl Picker {
    /// For a torrent whose pieces `verified` are on disk; `seed` is for the random choices.
    pub fn new(pieces: Pieces, verified: Bitfield, seed: u64) -> Self {
        let count = pieces.count();
        let untouched = (0..count)
            .filter(|piece| !verified.has(*piece))
            .map(|piece| u64::from(pieces.size(piece).div_ceil(BLOCK)))
            .sum();
        Self {
            rarity: Rarity::new(count, &verified),
            pieces,
            verified,
            untouched,
            begun: Begun::default(),
            conns: HashMap::new(),
            late: BTreeSet::new(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// The verified pieces.
    pub fn verified(&self) -> &Bitfield {
        &self.verified
    }

    /// Number of blocks neither received nor requested.
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
    }

    /// Removes a connection; the blocks requested over it are free again.
    pub fn remove_conn(&mut self, conn: ConnId) {
        self.release(conn);
        self.late.remove(&conn);
        let Some(gone) = self.conns.remove(&conn) else {
            return;
        };
        if gone.counted {
            let has = gone.has.iter();
            has.for_each(|piece| self.rarity.subtract(piece));
        }
    }

    /// Replaces the set of pieces that the peer has: libtorrent, Transmission and aria2 understand
    /// every bitfield so, not only the first one. Returns how many pieces the peer no longer has;
    /// [`Picker::release_missing`] frees the requests for those.
    pub fn set_has(&mut self, conn: ConnId, has: Bitfield) -> u32 {
        let Some(known) = self.conns.get_mut(&conn) else {
            return 0;
        };
        if known.counted && known.has.is_empty() && has.is_full() {
            known.counted = false;
        } else if !known.counted && !has.is_full() {
            known.has.iter().for_each(|piece| self.rarity.add(piece));
            known.counted = true;
        }
        let mut lost = 0;
        for piece in known.has.differences(&has) {
            let gained = has.has(piece);
            lost += u32::from(!gained);
            if known.counted {
                match gained {
                    true => self.rarity.add(piece),
                    false => self.rarity.subtract(piece),
                }
            }
            if !self.verified.has(piece) {
                match gained {
                    true => known.wanted += 1,
                    false => known.wanted -= 1,
                }
            }
        }
        known.has = has;
        known.exhausted = false;
        lost
    }

    /// Adds a piece that the peer has.
    pub fn add_has(&mut self, conn: ConnId, piece: u32) {
        let Some(known) = self.conns.get_mut(&conn) else {
            return;
        };
        if !known.has.set(piece) {
            return;
        }
        known.exhausted = false;
        if known.counted {
            self.rarity.add(piece);
        }
        if !self.verified.has(piece) {
            known.wanted += 1;
        }
    }

    /// Whether the peer has `piece`, as far as is known.
    pub fn has(&self, conn: ConnId, piece: u32) -> bool {
        self.conns.get(&conn).is_some_and(|c| c.has.has(piece))
    }

    /// Whether the peer has every piece, as far as is known.
    pub fn has_all(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|c| c.has.is_full())
    }

    /// Whether the peer has a piece that is not verified here.
    pub fn is_interesting(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|c| c.wanted > 0)
    }

    /// Number of blocks requested over `conn`.
    pub fn asked(&self, conn: ConnId) -> usize {
        self.conns.get(&conn).map_or(0, |c| c.asked.len())
    }

    /// Chooses up to `most` blocks to request over `conn`, and counts them as requested.
    pub fn pick(&mut self, conn: ConnId, most: usize) -> Vec<Request> {
        let mut picked = Vec::new();
        let Some(known) = self.conns.get_mut(&conn) else {
            return picked;
        };
        if known.wanted == 0 {
            return picked;
        }
        while picked.len() < most {
            let piece = match self.begun.first_open(&known.has, known.group) {
                Some(open) => open,
                None if known.exhausted => break,
                None => {
                    let (has, rng) = (&known.has, &mut self.rng);
                    let chosen = match self.verified.is_empty() {
                        true => self.rarity.any(has, rng),
                        false => self.rarity.rarest(has, known.counted, rng),
                    };
                    let Some(new) = chosen else {
                        known.exhausted = true;
                        break;
                    };
                    self.rarity.remove(new);
                    let size = self.pieces.size(new);
                    self.untouched -= u64::from(size.div_ceil(BLOCK));
                    self.begun.begin(new, size);
                    new
                }
            };
            while picked.len() < most
                && let Some(block) = self.begun.take(piece, conn, known.group)
            {
                known.ask((piece, block));
                picked.push(request(self.pieces, (piece, block)));
            }
        }
        picked
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
        self.conns.get_mut(&conn)?.ask(chosen);
        Some(request(self.pieces, chosen))
    }

    /// Takes note of a block that arrived over `conn`.
    pub fn receive(&mut self, conn: ConnId, arrived: Request, now: Instant) -> Arrival {
        let block = (arrived.piece, arrived.begin / BLOCK);
        let Some(known) = self.conns.get_mut(&conn) else {
            return Arrival::Unrequested;
        };
        if arrived.piece >= self.pieces.count() || request(self.pieces, block) != arrived {
            return Arrival::Unrequested;
        }
        // Peers answer in order, so it is nearly always the first one.
        let late = match known.asked.iter().position(|asked| asked.block == block) {
            Some(at) => {
                known.pass(at, now);
                known.asked.remove(at).is_none()
            }
            None if known.take_late(block) => {
                if known.late.is_empty() {
                    self.late.remove(&conn);
                }
                true
            }
            None if known.forgot => return Arrival::Duplicate,
            None => return Arrival::Unrequested,
        };
        let group = known.group;
        let Some((before, complete)) = self.begun.receive(block, group, late) else {
            return Arrival::Duplicate;
        };
        let cancel = match before {
            Block::Asked(holder) if holder == conn && self.late.is_empty() => Vec::new(),
            Block::Asked(holder) => self.call_off(conn, block, &[holder]),
            Block::Shared(holders) => self.call_off(conn, block, &holders),
            Block::Free | Block::Received(_) => self.call_off(conn, block, &[]),
        };
        Arrival::New { cancel, complete }
    }

    /// Cancels the requests for `block` over every connection except `conn`, and returns them.
    fn call_off(
        &mut self,
        conn: ConnId,
        block: BlockRef,
        holders: &[ConnId],
    ) -> Vec<(ConnId, Request)> {
        let mut cancel = Vec::new();
        let late = self.late.iter().copied();
        let late = late.filter(|other| {
            let known = self.conns.get(other);
            known.is_some_and(|known| known.late.contains_key(&block))
        });
        let late: Vec<ConnId> = late.collect();
        let others = holders
            .iter()
            .chain(late.iter().filter(|it| !holders.contains(it)));
        for &other in others.filter(|other| **other != conn) {
            let Some(known) = self.conns.get_mut(&other) else {
                continue;
            };
            if holders.contains(&other) {
                known.asked.retain(|asked| asked.block != block);
                known.remember_late(block);
                self.late.insert(other);
            }
            cancel.push((other, request(self.pieces, block)));
        }
        cancel
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

    /// A block that was once requested over `conn`, never arrived, and is free now.
    pub fn unanswered(&self, conn: ConnId) -> Option<Request> {
        let known = self.conns.get(&conn)?;
        let mut late = known.late.keys();
        let block = late.find(|block| self.begun.is_free(**block, known.group))?;
        Some(request(self.pieces, *block))
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
            known.remember_late(*block);
            self.late.insert(conn);
            self.begun.give_back(conn, *block);
        }
        self.begun.restart_waiting_for(known.group);
        let given_back = given_back.into_iter();
        given_back
            .map(|block| request(self.pieces, block))
            .collect()
    }

    /// Marks a piece as verified.
    pub fn verify(&mut self, piece: u32) {
        self.begun.remove(piece);
        if self.verified.set(piece) {
            let had = self.conns.values_mut().filter(|c| c.has.has(piece));
            had.for_each(|conn| conn.wanted -= 1);
        }
    }

    /// The hash of a piece is wrong: it is fetched again, from one peer. Returns the sender of each
    /// block.
    pub fn fail(&mut self, piece: u32) -> Vec<GroupId> {
        let senders = self.begun.senders(piece);
        self.begun.restart(piece);
        senders
    }
}

fn request(pieces: Pieces, (piece, block): BlockRef) -> Request {
    let begin = block.saturating_mul(BLOCK);
    Request {
        piece,
        begin,
        length: pieces.size(piece).saturating_sub(begin).min(BLOCK),
    }
}
