//! Which leecher fetches which piece from seeders, without a message about it.
//!
//! What a slow seeder sends twice, it sends instead of something that no leecher has yet. Leechers that choose
//! at random among the pieces that only seeders have often request the same one. So leechers share these pieces
//! out: for each piece, each of them orders the leechers that it sees fetching from seeders, itself among
//! them, by a hash of the piece and of the peer's id (rendezvous hashing), which all compute alike. The hash is weighted
//! by how often each has lately been the first to have a piece, so that all are done with their parts at about the same
//! time. A leecher begins the pieces for which it comes first, then those of others, beginning with what these take last.
//!
//! Leechers on plain IP alone and leechers on SCION alone know nothing of each other but through leechers on both.
//! So all take pieces in one order, over plain IP from its beginning and over SCION from its end: what one side is about
//! to fetch, the other side does not fetch for long.
//!
//! It leaves to another what that one will soon have, and fetches it from there: the other's share of the
//! seeders' uplink grows by that. It does so only while leechers deliver about as much as seeders do, and new pieces
//! keep coming from them.
//!
//! Only the order depends on what peers claim: a peer that announces pieces that it does not have, or
//! chooses its id, delays requests by [`MAX_HOLD`] at most. A peer whose id is another one for
//! each peer is fetched from like all others; some pieces are then requested twice.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::firsts::Firsts;
use super::{AddressFamily, ConnId};

/// Time without a new piece of other leechers after which nothing is left to them any more.
const MAX_SILENCE: Duration = Duration::from_secs(1);

/// Longest time for which pieces are left to other leechers while this side begins none.
const MAX_HOLD: Duration = Duration::from_millis(1500);

/// Pieces are left to other leechers while these deliver at least this part of what seeders deliver.
const MIN_PART: f64 = 0.75;

/// Pieces are left to another leecher that has all of its own within this time, in seconds: most likely it has
/// requested them.
const MAX_LEFT: f64 = 2.0;

/// Pieces are left to others, too, once all together have everything within this time, in seconds: the part of a
/// leecher is no more exact.
const MAX_LEFT_OF_ALL: f64 = 1.4;

/// While others are late, pieces are left only to a leecher whose weight is at least this part of the own one. What
/// a slower one would fetch last, this side fetches sooner itself, over a path that nobody uses then. Where all
/// share one link, others are not late: they get the part of this side.
const MIN_WEIGHT: f64 = 0.8;

/// Others are late if the estimated time to the end falls by less than this part of the time for which pieces
/// are left to them, with a margin in seconds.
const EXPECTED_PROGRESS: f64 = 0.75;
const PROGRESS_MARGIN: f64 = 0.1;

/// Time for which others count as late from then on.
const LATE_FOR: Duration = Duration::from_millis(1500);

/// All leechers count alike once they have everything together within this time, in seconds. Each sees other
/// weights: a leecher on both networks looks to either side as if it were the first to have what comes from the
/// other side. So each may see another one come first, and all would leave the last pieces to each other.
const MAX_LEFT_ALIKE: f64 = 1.0;

/// Time after which received bytes count half.
const HALF_LIFE: Duration = Duration::from_secs(1);

/// Most other leechers with which pieces are shared out. Among more of them, two seldom choose the same piece.
const MAX_LEECHERS: usize = 15;

/// Most pieces that are compared for a choice. Even with [`MAX_LEECHERS`] others, one of its own is nearly always
/// among so many.
const SAMPLES: usize = 64;

/// The leechers that fetch from seeders, as far as it shows.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The id of this side, and the pieces that it was the first to have.
    own: u64,
    own_firsts: Firsts,
    /// The ids of the leechers at the other ends of connections.
    conns: HashMap<ConnId, u64>,
    leechers: BTreeMap<u64, Firsts>,
    /// Those that fetch from seeders.
    active: BTreeMap<u64, Active>,
    /// The seconds after which they and this side will have everything.
    left: f64,
    /// Bytes received lately from seeders and from leechers.
    received: [f64; 2],
    /// When another leecher last was the first to have a piece.
    news_at: Option<Instant>,
    /// Since when pieces are left to others, and the value of `left` then.
    held_since: Option<(Instant, f64)>,
    /// When others were seen to be late.
    late_at: Option<Instant>,
    /// Whether they may be at present.
    holds: bool,
    /// What has happened since the last review, and when that was.
    events: Events,
    reviewed: Option<Instant>,
}

/// A leecher that fetches from seeders.
#[derive(Debug)]
struct Active {
    /// Its part, compared with others.
    weight: f64,
    /// The seconds after which it will have all of its pieces.
    left: f64,
    /// Whether it is likely to have one of them soon.
    is_awaited: bool,
}

/// What has happened since the last review.
#[derive(Debug, Default)]
struct Events {
    /// Another leecher was the first to have a piece.
    news: bool,
    /// A piece was left to others.
    held: bool,
    /// A piece was begun: one of its own, or another one although some may be left to others.
    began: bool,
}

/// The leechers before this side in the order for a piece.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    /// How many they are.
    before: usize,
    /// The first leecher in the order, its score, and its weight.
    first: u64,
    score: f64,
    weight: f64,
}

impl Claims {
    /// Sets the id by which others know this side.
    pub fn set_own(&mut self, own: u64) {
        self.own = own;
    }

    /// Adds the peer of a connection.
    pub fn join(&mut self, conn: ConnId, id: u64) {
        self.conns.insert(conn, id);
        let firsts = self.leechers.entry(id).or_default();
        self.active.entry(id).or_insert(Active {
            weight: firsts.weight(),
            left: f64::INFINITY,
            is_awaited: false,
        });
    }

    /// Removes a connection: it has ended, or its peer has every piece.
    pub fn leave(&mut self, conn: ConnId) {
        if let Some(left) = self.conns.remove(&conn)
            && self.conns.values().all(|id| *id != left)
        {
            self.leechers.remove(&left);
            self.active.remove(&left);
        }
    }

    /// Notes that the peer of a connection is the first leecher to have a piece.
    pub fn is_first(&mut self, conn: ConnId) {
        let id = self.conns.get(&conn);
        if let Some(firsts) = id.and_then(|id| self.leechers.get_mut(id)) {
            firsts.add();
            self.events.news = true;
        }
    }

    /// Notes that this side is the first leecher to have a piece.
    pub fn is_first_itself(&mut self) {
        self.own_firsts.add();
    }

    /// Counts bytes received.
    pub fn received(&mut self, from_seeder: bool, bytes: u32) {
        self.received[usize::from(!from_seeder)] += f64::from(bytes);
    }

    /// Takes note of what has happened since the last call; to be called about every 50 ms.
    /// `left` are the pieces that no leecher has and that are not begun here, `count` of them.
    pub fn review(&mut self, left: impl Iterator<Item = u32>, count: usize, now: Instant) {
        let age = |at: Instant| now.saturating_duration_since(at);
        let elapsed = self.reviewed.replace(now).map_or(Duration::ZERO, age);
        self.review_leechers(left, count, elapsed, now);
        let Events { news, held, began } = std::mem::take(&mut self.events);
        if news {
            self.news_at = Some(now);
        }
        if began {
            self.held_since = None;
        }
        if held {
            self.held_since.get_or_insert((now, self.left));
        }
        let is_late = self.held_since.is_some_and(|(at, left)| {
            let progress = EXPECTED_PROGRESS * age(at).as_secs_f64() - PROGRESS_MARGIN;
            self.left > left - progress
        });
        if is_late {
            self.late_at = Some(now);
        } else if self.late_at.is_some_and(|at| age(at) > LATE_FOR) {
            self.late_at = None;
        }
        let kept = (-elapsed.div_duration_f64(HALF_LIFE)).exp2();
        self.received = self.received.map(|bytes| bytes * kept);
        let [from_seeders, from_leechers] = self.received;
        self.holds = self.news_at.is_some_and(|at| age(at) <= MAX_SILENCE)
            && self.held_since.is_none_or(|(at, _)| age(at) <= MAX_HOLD)
            && from_leechers > MIN_PART * from_seeders;
    }

    /// Finds out anew which leechers fetch from seeders, and how long each takes for its part of the pieces `left`.
    fn review_leechers(
        &mut self,
        left: impl Iterator<Item = u32>,
        count: usize,
        elapsed: Duration,
        now: Instant,
    ) {
        self.own_firsts.review(elapsed, now);
        self.active.clear();
        let mut rate = 1.0 / self.own_firsts.interval();
        for (id, firsts) in &mut self.leechers {
            firsts.review(elapsed, now);
            if firsts.is_active(now) {
                let active = Active {
                    weight: firsts.weight(),
                    left: 0.0,
                    is_awaited: firsts.is_awaited(now),
                };
                self.active.insert(*id, active);
                rate += 1.0 / firsts.interval();
            }
        }
        self.left = count as f64 / rate;
        let each = (count as f64 / SAMPLES as f64).max(1.0);
        for piece in left.take(SAMPLES) {
            let first = self.place(piece).first;
            if let Some(active) = self.active.get_mut(&first)
                && let Some(firsts) = self.leechers.get(&first)
            {
                active.left += each * firsts.interval();
            }
        }
    }

    /// The place of this side in the order for a piece.
    fn place(&self, piece: u32) -> Place {
        let are_alike = self.left <= MAX_LEFT_ALIKE;
        let counted = |weight: f64| if are_alike { 1.0 } else { weight };
        let weight = counted(self.own_firsts.weight());
        let own = score(self.own, piece, weight);
        let mut place = Place {
            before: 0,
            first: self.own,
            score: own,
            weight,
        };
        if self.active.len() > MAX_LEECHERS {
            return place;
        }
        for (id, active) in &self.active {
            let weight = counted(active.weight);
            let other = score(*id, piece, weight);
            place.before += usize::from(other > own);
            if other > place.score {
                (place.first, place.score, place.weight) = (*id, other, weight);
            }
        }
        place
    }

    /// Whether a leecher most likely has all of its own pieces soon.
    fn is_soon(&self, id: u64) -> bool {
        let is_little = self.left <= MAX_LEFT_OF_ALL;
        let least = match self.late_at {
            Some(_) => MIN_WEIGHT * self.own_firsts.weight(),
            None => 0.0,
        };
        let active = self.active.get(&id);
        active.is_some_and(|it| {
            it.is_awaited && (it.left <= MAX_LEFT || is_little && it.weight >= least)
        })
    }

    /// The piece to begin with a peer: of the first ones among `pieces`, one for which the fewest others come before
    /// this side, preferably one that the first does not have soon. Of its own it takes the last in the order of all
    /// pieces first, of those of others the first, which these take last: so both seldom request the same piece. The
    /// smaller the weight of another, the sooner what it takes last.
    pub fn choose(&self, pieces: impl Iterator<Item = u32>, family: AddressFamily) -> Option<u32> {
        let shares = self.active.len() <= MAX_LEECHERS;
        let order = |piece: u32| {
            let place = self.place(piece);
            let rank = weighted(family.rank(piece), place.weight);
            match place.before {
                0 if shares => (false, 0, -rank),
                // Every piece is its own, and that of all others: at random.
                0 => (false, 0, -place.score),
                before => (self.is_soon(place.first), before, rank),
            }
        };
        let ordered = pieces.take(SAMPLES).map(|piece| (order(piece), piece));
        let first = ordered.min_by(|(one, _), (other, _)| {
            let order = (one.0, one.1).cmp(&(other.0, other.1));
            order.then(one.2.total_cmp(&other.2))
        });
        first.map(|(_, piece)| piece)
    }

    /// Whether nothing is requested from a seeder now. `sole` is the piece that would be begun, if no
    /// leecher has it; without one, this side would request what others have.
    pub fn leaves(&mut self, sole: Option<u32>) -> bool {
        let first = sole.map(|piece| self.place(piece).first);
        let is_own = first == Some(self.own);
        let are_soon = match first {
            Some(first) => self.is_soon(first),
            None => self.active.values().all(|it| it.left <= MAX_LEFT),
        };
        let leaves = self.holds && !is_own && are_soon;
        self.events.began |= sole.is_some() && !leaves && (is_own || self.holds);
        self.events.held |= leaves;
        leaves
    }
}

impl AddressFamily {
    /// The rank of a piece in the order in which leechers take pieces of such peers, between 0 and 1: the greatest
    /// comes first.
    fn rank(self, piece: u32) -> f64 {
        let rank = hash(0, piece);
        match self {
            Self::Scion => rank,
            Self::Ip => 1.0 - rank,
        }
    }
}

/// The score of a leecher for a piece: the leecher with the greatest comes first. Each comes first for a part of all
/// pieces that is in proportion to its weight.
fn score(id: u64, piece: u32, weight: f64) -> f64 {
    weighted(hash(id, piece), weight)
}

/// Of evenly distributed numbers, each is the greatest as often as its weight says.
fn weighted(number: f64, weight: f64) -> f64 {
    -weight / number.ln()
}

/// A number for a leecher and a piece, evenly distributed between 0 and 1, neither of them included.
fn hash(id: u64, piece: u32) -> f64 {
    // The mixing steps of SplitMix64.
    let mut mixed = id ^ u64::from(piece).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((mixed >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}
