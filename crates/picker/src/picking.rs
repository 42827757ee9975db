//! Which blocks are requested next over a connection.

use std::collections::HashSet;

use super::piece::BlockRef;
use super::rarity::Choice;
use super::{ConnId, Picked, Picker, Placed, request};
use hawser_wire::BLOCK;

/// Blocks requested first over a connection, which are most likely under way.
const COMMITTED: usize = 4;

impl Picker {
    /// Chooses up to `most` blocks to request over `conn`, and counts them as requested. Blocks
    /// requested over stalled connections come last: those may recover and deliver them.
    pub fn pick(&mut self, conn: ConnId, most: usize) -> Picked {
        let mut picked = Picked::default();
        if !self.is_interesting(conn) {
            return picked;
        }
        while picked.requests.len() < most {
            let Some(piece) = self.next_piece(conn) else {
                break;
            };
            let Some(known) = self.conns.get_mut(&conn) else {
                break;
            };
            while picked.requests.len() < most
                && let Some(block) = self.begun.take(piece, conn, known.group)
            {
                let request = request(self.pieces, &self.padding, (piece, block));
                known.ask((piece, block), request.length);
                picked.requests.push(request);
            }
        }
        self.pick_suspended(conn, most, &mut picked);
        picked
    }

    /// Begins a wanted piece.
    pub(super) fn begin(&mut self, piece: u32) {
        self.rarity.remove(piece, &self.wanted);
        let size = self.pieces.size(piece);
        let padding = self.padding.blocks(self.pieces, piece);
        self.untouched -= u64::from(size.div_ceil(BLOCK)) - padding.len() as u64;
        self.begun.begin(piece, size, &padding);
    }

    /// Adds blocks requested over stalled connections to `picked`, up to `most` in all.
    fn pick_suspended(&mut self, conn: ConnId, most: usize, picked: &mut Picked) {
        while picked.requests.len() < most
            && let Some(known) = self.conns.get(&conn)
            && let Some(piece) = self.begun.first_suspended(&known.has, known.group)
            && let Some((block, holder)) = self.begun.take_suspended(piece, conn, known.group)
        {
            let block = (piece, block);
            let request = request(self.pieces, &self.padding, block);
            picked.cancel.extend(self.withdraw(holder, block));
            picked.requests.push(request);
            if let Some(known) = self.conns.get_mut(&conn) {
                known.ask(block, request.length);
            }
        }
    }

    /// The piece of which blocks are requested next over `conn`: one that is begun, or a new one, which is
    /// begun.
    ///
    /// Pieces already begun come before new ones. But a seeder is asked first for what no leecher has, so that it
    /// does not spend its uplink on what others can send.
    fn next_piece(&mut self, conn: ConnId) -> Option<u32> {
        let known = self.conns.get_mut(&conn)?;
        let (wanted, rarity) = (&self.wanted, &self.rarity);
        let is_seeder = known.is_seeder() && wanted.is_rarest_first();
        let is_sole = |piece: u32| rarity.availability(piece) == 0;
        let open = match is_seeder {
            true => self.begun.first_open_of(&known.has, known.group, is_sole),
            false => None,
        };
        if open.is_some() {
            return open;
        }
        let open = self.begun.first_open(&known.has, known.group, wanted);
        let above = open.map(|open| wanted.rank(open));
        let may_begin = open.is_none() || is_seeder || !wanted.is_uniform();
        let choice = Choice {
            has: &known.has,
            counted: known.counted,
            is_first: self.verified.is_empty(),
            claims: known
                .family
                .filter(|_| is_seeder)
                .map(|it| (&self.claims, it)),
        };
        let rng = &mut self.rng;
        let above = above.filter(|_| !is_seeder);
        let new = (may_begin && !known.exhausted)
            .then(|| rarity.choose(choice, wanted, above, rng))
            .flatten()
            .filter(|new| open.is_none() || !is_seeder || is_sole(*new));
        if is_seeder && self.claims.leaves(new.filter(|new| is_sole(*new))) {
            return None;
        }
        if let Some(new) = new {
            self.begin(new);
        } else if open.is_none() {
            known.exhausted = true;
        }
        new.or(open)
    }

    /// Takes back requests to seeders for a piece that a leecher has now, if seeders have others that nobody else
    /// has. What is under way already stays.
    pub(super) fn spare_seeders(&mut self, piece: u32) -> Vec<Placed> {
        if self.rarity.unavailable() == 0 {
            return Vec::new();
        }
        let seeders = self
            .conns
            .iter()
            .filter(|(_, known)| known.is_seeder() && !self.begun.is_bound_to(piece, known.group));
        let holders = seeders.filter(|(_, known)| {
            let mut asked = known.asked.iter().skip(COMMITTED);
            asked.any(|asked| asked.block.0 == piece)
        });
        let holders: Vec<ConnId> = holders.map(|(id, _)| *id).collect();
        let mut cancel = Vec::new();
        for id in holders {
            let Some(known) = self.conns.get(&id) else {
                continue;
            };
            let first: HashSet<BlockRef> = known
                .asked
                .iter()
                .take(COMMITTED)
                .map(|it| it.block)
                .collect();
            let released = self.release_where(id, |_, asked| {
                asked.block.0 == piece && !first.contains(&asked.block)
            });
            cancel.extend(released.into_iter().map(|request| (id, request)));
        }
        cancel
    }
}
