//! Which block is asked for over which connection.
//!
//! Pure: no I/O; the caller passes the time. Pieces are chosen rarest first, the first one at
//! random; pieces already begun come before new ones, and several connections may share a piece,
//! block by block, so that all path-level peers of a peer work on the same few pieces. A block is
//! asked for over one connection only, except through [`Picker::duplicate`], which is for the end
//! game.

mod id;
mod piece;
mod rarity;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;

pub(crate) use self::id::{ConnId, GroupId};
use self::piece::{Begun, Block, Sole};
use self::rarity::Rarity;
use crate::bitfield::Bitfield;
use crate::pieces::Pieces;
use crate::wire::{BLOCK, Request};

/// Most connections asked for the same block at once.
const MOST_HOLDERS: usize = 3;

/// Most blocks remembered per connection as possibly still coming, after they were asked for
/// elsewhere. A peer that honours every cancel leaves them here for good.
const MOST_LATE: usize = 1 << 15;

type BlockRef = (u32, u32);

/// What to fetch next, and from whom.
#[derive(Debug)]
pub(crate) struct Picker {
    pieces: Pieces,
    verified: Bitfield,
    rarity: Rarity,
    begun: HashMap<u32, Begun>,
    /// Pieces begun that have free blocks; the first is finished first.
    open: VecDeque<u32>,
    conns: HashMap<ConnId, Conn>,
    /// Free blocks of begun pieces.
    free: u64,
    /// Blocks of pieces not begun.
    untouched: u64,
    /// Blocks received in pieces that are not verified yet.
    unverified: u64,
    rng: StdRng,
}

#[derive(Debug)]
struct Conn {
    group: GroupId,
    has: Bitfield,
    /// Counted in [`Rarity`]; not so when its first bitfield had everything.
    counted: bool,
    /// Pieces it has that are not verified here.
    wanted: u32,
    /// Blocks asked for, in the order asked.
    asked: VecDeque<Asked>,
    /// Blocks no longer expected, but which may come all the same, and how often: as often as they
    /// were asked for in vain.
    late: HashMap<BlockRef, u32>,
    /// `late` was full once: what comes unexpected since then may have been asked for.
    forgot: bool,
}

/// A block asked for over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    block: BlockRef,
    /// When a block asked for later arrived first. Those of a connection that have one come before
    /// those that have none.
    passed: Option<Instant>,
}

/// What a block that arrived is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// New: write it. `cancel` tells over which other connections it need not come any more;
    /// `complete` that it was the last one of its piece.
    New {
        cancel: Vec<(ConnId, Request)>,
        complete: bool,
    },
    /// Already here, or not wanted any more: throw it away.
    Duplicate,
    /// It was never asked for over this connection.
    Unrequested,
}

impl Picker {
    /// For a torrent of these pieces of which `verified` is there; `seed` for the random choices.
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
            begun: HashMap::new(),
            open: VecDeque::new(),
            conns: HashMap::new(),
            free: 0,
            untouched,
            unverified: 0,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Which pieces are verified.
    pub fn verified(&self) -> &Bitfield {
        &self.verified
    }

    /// Blocks not here and not asked for.
    pub fn free_blocks(&self) -> u64 {
        self.free + self.untouched
    }

    /// Blocks asked for, each counted once.
    pub fn asked_blocks(&self) -> u64 {
        let begun: u64 = self.begun.values().map(|p| p.blocks.len() as u64).sum();
        begun - self.free - self.unverified
    }

    /// A connection to a peer that is not known to have anything yet.
    pub fn add_conn(&mut self, conn: ConnId, group: GroupId) {
        let known = Conn {
            group,
            has: Bitfield::empty(self.pieces.count()),
            counted: true,
            wanted: 0,
            asked: VecDeque::new(),
            late: HashMap::new(),
            forgot: false,
        };
        self.conns.insert(conn, known);
    }

    /// A connection is gone; what was asked for over it is free again.
    pub fn remove_conn(&mut self, conn: ConnId) {
        self.release(conn);
        let Some(gone) = self.conns.remove(&conn) else {
            return;
        };
        if gone.counted {
            gone.has
                .iter()
                .for_each(|piece| self.rarity.subtract(piece));
        }
    }

    /// The peer has exactly these pieces, whatever was known before: so libtorrent, Transmission
    /// and aria2 take a bitfield, be it the first or a later one. Returns how many pieces it had
    /// and has no more; [`Picker::release_missing`] gives back what was asked for of those.
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

    /// Whether the peer has anything that is not verified here.
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
            let usable = |piece: &u32| {
                known.has.has(*piece)
                    && self
                        .begun
                        .get(piece)
                        .is_some_and(|b| b.open_to(known.group))
            };
            let piece = match self.open.iter().position(usable) {
                Some(at) => self.open[at],
                None => {
                    let first = self.verified.is_empty();
                    let choose = if first { Rarity::any } else { Rarity::rarest };
                    let Some(new) = choose(&self.rarity, &known.has, &mut self.rng) else {
                        break;
                    };
                    self.rarity.remove(new);
                    let begun = Begun::new(self.pieces.size(new));
                    self.untouched -= begun.blocks.len() as u64;
                    self.free += begun.blocks.len() as u64;
                    self.begun.insert(new, begun);
                    self.open.push_back(new);
                    new
                }
            };
            let Some(begun) = self.begun.get_mut(&piece) else {
                break;
            };
            while picked.len() < most
                && let Some(block) = begun.take(conn, known.group)
            {
                self.free -= 1;
                known.asked.push_back(Asked::new((piece, block)));
                picked.push(request(self.pieces, (piece, block)));
            }
            if begun.free == 0 {
                self.open.retain(|open| *open != piece);
            }
        }
        picked
    }

    /// Chooses a block that another connection was asked for and asks for it over `conn` too: of
    /// each other connection the one it will send last, and of these the one with the greatest
    /// `gain(holder, place in its queue)`; none where that is `None`.
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
            let (place, asked) =
                from_last.find(|(_, asked)| self.may_share(known, conn, asked.block))?;
            Some((gain(*holder, place)?, asked.block))
        });
        let (_, chosen) = candidates.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let state = &mut self.begun.get_mut(&chosen.0)?.blocks[chosen.1 as usize];
        match state {
            Block::Asked(first) => *state = Block::Shared(vec![*first, conn]),
            Block::Shared(holders) => holders.push(conn),
            Block::Free | Block::Received(_) => return None,
        }
        let known = self.conns.get_mut(&conn)?;
        known.asked.push_back(Asked::new(chosen));
        Some(request(self.pieces, chosen))
    }

    fn may_share(&self, known: &Conn, conn: ConnId, (piece, block): BlockRef) -> bool {
        let Some(begun) = self.begun.get(&piece) else {
            return false;
        };
        let room = match &begun.blocks[block as usize] {
            Block::Asked(_) => true,
            Block::Shared(holders) => holders.len() < MOST_HOLDERS && !holders.contains(&conn),
            Block::Free | Block::Received(_) => false,
        };
        room && known.has.has(piece) && begun.open_to(known.group)
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
        let Some(begun) = self.begun.get_mut(&block.0) else {
            return Arrival::Duplicate;
        };
        // It may be of an earlier, bad attempt at the piece.
        if late && begun.sole != Sole::No {
            return Arrival::Duplicate;
        }
        let state = &mut begun.blocks[block.1 as usize];
        let holders = match std::mem::replace(state, Block::Received(group)) {
            Block::Received(first) => {
                *state = Block::Received(first);
                return Arrival::Duplicate;
            }
            Block::Free => {
                begun.free -= 1;
                self.free -= 1;
                if begun.free == 0 {
                    self.open.retain(|open| *open != block.0);
                }
                Vec::new()
            }
            Block::Asked(holder) => vec![holder],
            Block::Shared(holders) => holders,
        };
        begun.received += 1;
        self.unverified += 1;
        let complete = begun.received as usize == begun.blocks.len();
        let cancel = self.call_off(conn, block, &holders);
        Arrival::New { cancel, complete }
    }

    /// Everybody but `conn` need not send `block` any more.
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

    /// Nothing asked for over `conn` is expected any more: it is free for others. What comes all
    /// the same is still taken. Returns what was asked for.
    pub fn release(&mut self, conn: ConnId) -> Vec<Request> {
        self.release_where(conn, |_, _| true)
    }

    /// The same for what `conn` was asked for of pieces that its peer has no more.
    pub fn release_missing(&mut self, conn: ConnId) -> Vec<Request> {
        self.release_where(conn, |has, asked| !has.has(asked.block.0))
    }

    /// The same for blocks that others asked for later overtook at `before` or earlier: the peer
    /// forgot them.
    pub fn release_passed(&mut self, conn: ConnId, before: Instant) -> Vec<Request> {
        let overdue = |asked: &Asked| asked.passed.is_some_and(|passed| passed <= before);
        let first = self.conns.get(&conn).and_then(|c| c.asked.front());
        if !first.is_some_and(overdue) {
            return Vec::new();
        }
        self.release_where(conn, |_, asked| overdue(asked))
    }

    /// A block that was once asked for over `conn`, never came, and is asked for nowhere now.
    pub fn unanswered(&self, conn: ConnId) -> Option<Request> {
        let known = self.conns.get(&conn)?;
        let is_free = |(piece, block): &&BlockRef| {
            let begun = self.begun.get(piece);
            begun.is_some_and(|begun| {
                begun.open_to(known.group) && begun.blocks[*block as usize] == Block::Free
            })
        };
        let block = known.late.keys().find(is_free)?;
        Some(request(self.pieces, *block))
    }

    fn release_where(
        &mut self,
        conn: ConnId,
        which: impl Fn(&Bitfield, &Asked) -> bool,
    ) -> Vec<Request> {
        let Some(known) = self.conns.get_mut(&conn) else {
            return Vec::new();
        };
        let group = known.group;
        let asked = std::mem::take(&mut known.asked);
        let (given, kept): (VecDeque<Asked>, VecDeque<Asked>) = asked
            .into_iter()
            .partition(|asked| which(&known.has, asked));
        known.asked = kept;
        // The last given back is the first taken again: keep the order they were asked in.
        for Asked {
            block: (piece, block),
            ..
        } in given.iter().rev().copied()
        {
            known.remember_late((piece, block));
            let Some(begun) = self.begun.get_mut(&piece) else {
                continue;
            };
            let free = begun.free;
            begun.give_back(conn, block);
            self.free += u64::from(begun.free - free);
            if begun.free > 0 && !self.open.contains(&piece) {
                self.open.push_front(piece);
            }
        }
        // What has to come from this peer alone, and is not asked for over its other paths, would
        // wait for it for ever: somebody else may begin it anew.
        for (piece, begun) in &mut self.begun {
            if begun.sole == Sole::By(group) && begun.free > 0 && !begun.is_asked() {
                self.unverified -= u64::from(begun.received);
                self.free -= u64::from(begun.free);
                begun.restart();
                self.free += u64::from(begun.free);
                if !self.open.contains(piece) {
                    self.open.push_front(*piece);
                }
            }
        }
        let given = given.into_iter();
        given
            .map(|asked| request(self.pieces, asked.block))
            .collect()
    }

    /// The piece's hash was right.
    pub fn verify(&mut self, piece: u32) {
        if let Some(begun) = self.begun.remove(&piece) {
            self.unverified -= u64::from(begun.received);
        }
        if self.verified.set(piece) {
            let had = self.conns.values_mut().filter(|c| c.has.has(piece));
            had.for_each(|conn| conn.wanted -= 1);
        }
    }

    /// The piece's hash was wrong: it is fetched again, from one peer. Returns who sent each block.
    pub fn fail(&mut self, piece: u32) -> Vec<GroupId> {
        let Some(begun) = self.begun.get_mut(&piece) else {
            return Vec::new();
        };
        let senders = begun.blocks.iter().filter_map(|block| match block {
            Block::Received(group) => Some(*group),
            _ => None,
        });
        let senders = senders.collect();
        self.unverified -= u64::from(begun.received);
        self.free -= u64::from(begun.free);
        begun.restart();
        self.free += u64::from(begun.free);
        if !self.open.contains(&piece) {
            self.open.push_front(piece);
        }
        senders
    }
}

impl Asked {
    fn new(block: BlockRef) -> Self {
        Self {
            block,
            passed: None,
        }
    }
}

impl Conn {
    /// The block at `place` arrived: all before it were overtaken, now or earlier.
    fn pass(&mut self, place: usize, now: Instant) {
        let before = self.asked.iter_mut().take(place).rev();
        before
            .take_while(|asked| asked.passed.is_none())
            .for_each(|asked| asked.passed = Some(now));
    }

    fn remember_late(&mut self, block: BlockRef) {
        if self.late.len() >= MOST_LATE {
            self.late.clear();
            self.forgot = true;
        }
        *self.late.entry(block).or_default() += 1;
    }

    /// Whether a copy of `block` may still come; it is here now.
    fn take_late(&mut self, block: BlockRef) -> bool {
        let Some(copies) = self.late.get_mut(&block) else {
            return false;
        };
        *copies -= 1;
        if *copies == 0 {
            self.late.remove(&block);
        }
        true
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
