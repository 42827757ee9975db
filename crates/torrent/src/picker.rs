//! Which block is asked for over which connection.
//!
//! Pure: no I/O; the caller passes the time. Pieces are chosen rarest first, the first one at
//! random; pieces already begun come before new ones, and several connections may share a piece,
//! block by block, so that all path-level peers of a peer work on the same few pieces. A block is
//! asked for over one connection only, except through [`Picker::duplicate`], which is for the end
//! game.

mod begun;
mod conn;
mod piece;
mod rarity;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Instant;

use self::begun::Begun;
use self::conn::{Asked, Conn};
use self::piece::BlockRef;
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
    rng: fastrand::Rng,
}

/// What to do with a block that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// New: write it. `cancel` has the other connections over which it is not needed any more;
    /// `complete` means that it was the last one of its piece.
    New {
        cancel: Vec<(ConnId, Request)>,
        complete: bool,
    },
    /// Received before, or not wanted any more: drop it.
    Duplicate,
    /// It was never asked for over this connection.
    Unrequested,
}

impl Picker {
    /// For a torrent of which the pieces `verified` are on disk; `seed` is for the random choices.
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
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Which pieces are verified.
    pub fn verified(&self) -> &Bitfield {
        &self.verified
    }

    /// Blocks neither received nor asked for.
    pub fn free_blocks(&self) -> u64 {
        self.begun.free() + self.untouched
    }

    /// Blocks asked for, each counted once.
    pub fn asked_blocks(&self) -> u64 {
        self.begun.asked()
    }

    /// Adds a connection to a peer that is not known to have any piece yet.
    pub fn add_conn(&mut self, conn: ConnId, group: GroupId) {
        let known = Conn::new(group, self.pieces.count());
        self.conns.insert(conn, known);
    }

    /// Removes a connection; what was asked for over it is free again.
    pub fn remove_conn(&mut self, conn: ConnId) {
        self.release(conn);
        let Some(gone) = self.conns.remove(&conn) else {
            return;
        };
        if gone.counted {
            let has = gone.has.iter();
            has.for_each(|piece| self.rarity.subtract(piece));
        }
    }

    /// The peer has exactly these pieces, whatever was known before: libtorrent, Transmission and
    /// aria2 understand a bitfield so, the first one and later ones. Returns how many pieces it had
    /// and has no longer; [`Picker::release_missing`] gives back what was asked for of those.
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
        lost
    }

    /// The peer has one more piece.
    pub fn add_has(&mut self, conn: ConnId, piece: u32) {
        let Some(known) = self.conns.get_mut(&conn) else {
            return;
        };
        if !known.has.set(piece) {
            return;
        }
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

    /// How many blocks are asked for over `conn`.
    pub fn asked(&self, conn: ConnId) -> usize {
        self.conns.get(&conn).map_or(0, |c| c.asked.len())
    }

    /// Chooses up to `most` blocks to ask for over `conn`, and counts them as asked for.
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
                None => {
                    let first = self.verified.is_empty();
                    let choose = if first { Rarity::any } else { Rarity::rarest };
                    let Some(new) = choose(&self.rarity, &known.has, &mut self.rng) else {
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

    /// Chooses a block asked for over another connection and counts it as asked for over `conn`
    /// too: of each other connection the last one in its queue, and of these the one with the
    /// greatest `gain(connection, place in its queue)`; none for which that is `None`.
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

    /// A block arrived over `conn`.
    pub fn receive(&mut self, conn: ConnId, arrived: Request, now: Instant) -> Arrival {
        let block = (arrived.piece, arrived.begin / BLOCK);
        let Some(known) = self.conns.get_mut(&conn) else {
            return Arrival::Unrequested;
        };
        if arrived.piece >= self.pieces.count() || request(self.pieces, block) != arrived {
            return Arrival::Unrequested;
        }
        // Peers answer in order, so it is nearly always the first.
        let late = match known.asked.iter().position(|asked| asked.block == block) {
            Some(at) => {
                known.pass(at, now);
                known.asked.remove(at).is_none()
            }
            None if known.take_late(block) => true,
            None if known.forgot => return Arrival::Duplicate,
            None => return Arrival::Unrequested,
        };
        let group = known.group;
        let Some((holders, complete)) = self.begun.receive(block, group, late) else {
            return Arrival::Duplicate;
        };
        let cancel = self.call_off(conn, block, &holders);
        Arrival::New { cancel, complete }
    }

    /// No connection but `conn` need send `block` any more.
    fn call_off(
        &mut self,
        conn: ConnId,
        block: BlockRef,
        holders: &[ConnId],
    ) -> Vec<(ConnId, Request)> {
        let mut cancel = Vec::new();
        for (&other, known) in &mut self.conns {
            if other == conn {
                continue;
            }
            if holders.contains(&other) {
                known.asked.retain(|asked| asked.block != block);
                known.remember_late(block);
                cancel.push((other, request(self.pieces, block)));
            } else if known.late.contains_key(&block) {
                cancel.push((other, request(self.pieces, block)));
            }
        }
        cancel
    }

    /// Expects nothing more of what was asked for over `conn`: it is free for others. What arrives
    /// all the same is still taken. Returns what was asked for.
    pub fn release(&mut self, conn: ConnId) -> Vec<Request> {
        self.release_where(conn, |_, _| true)
    }

    /// The same for what was asked for of pieces that the peer has no longer.
    pub fn release_missing(&mut self, conn: ConnId) -> Vec<Request> {
        self.release_where(conn, |has, asked| !has.has(asked.block.0))
    }

    /// The same for blocks that were overtaken at `before` or earlier by blocks asked for after
    /// them: the peer has dropped them.
    pub fn release_passed(&mut self, conn: ConnId, before: Instant) -> Vec<Request> {
        let overdue = |asked: &Asked| asked.passed.is_some_and(|passed| passed <= before);
        let first = self.conns.get(&conn).and_then(|c| c.asked.front());
        if !first.is_some_and(overdue) {
            return Vec::new();
        }
        self.release_where(conn, |_, asked| overdue(asked))
    }

    /// A block that was asked for over `conn` once, never came, and is free now.
    pub fn unanswered(&self, conn: ConnId) -> Option<Request> {
        let known = self.conns.get(&conn)?;
        let mut late = known.late.keys();
        let block = late.find(|block| self.begun.is_free(**block, known.group))?;
        Some(request(self.pieces, *block))
    }

    /// The same for what `which` (given what the peer has) is true of.
    fn release_where(
        &mut self,
        conn: ConnId,
        which: impl Fn(&Bitfield, &Asked) -> bool,
    ) -> Vec<Request> {
        let Some(known) = self.conns.get_mut(&conn) else {
            return Vec::new();
        };
        let given_back = known.take_asked(which);
        // The last one given back is the first one taken again: keep the order they were asked in.
        for block in given_back.iter().rev() {
            known.remember_late(*block);
            self.begun.give_back(conn, *block);
        }
        self.begun.restart_waiting_for(known.group);
        let given_back = given_back.into_iter();
        given_back
            .map(|block| request(self.pieces, block))
            .collect()
    }

    /// The hash of a piece is right.
    pub fn verify(&mut self, piece: u32) {
        self.begun.remove(piece);
        if self.verified.set(piece) {
            let had = self.conns.values_mut().filter(|c| c.has.has(piece));
            had.for_each(|conn| conn.wanted -= 1);
        }
    }

    /// The hash of a piece is wrong: it is fetched again, from one peer. Returns the peer that sent
    /// each block.
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
