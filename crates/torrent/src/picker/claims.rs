//! Which leecher fetches which piece from seeders, without a message about it.
//!
//! What a slow seeder sends twice, it sends instead of something that no leecher has yet. Leechers that choose
//! at random among the pieces that only seeders have often request the same one. So leechers share these pieces
//! out: for each piece, each of them orders the leechers that it sees fetching from seeders, itself among
//! them, by a hash of the piece and of the peer's id (rendezvous hashing), which all compute alike. It begins the
//! pieces for which it comes first, then those of others. Near the end it leaves the rest to the others, whose share
//! of the seeders' uplink grows by that, and fetches it from them. It does so only while leechers deliver about
//! as much as seeders do, and new pieces keep coming from them.
//!
//! Only the order depends on what peers claim: a peer that announces pieces that it does not have, or
//! chooses its id, delays requests by [`MAX_HOLD`] at most. A peer whose id is another one for
//! each peer is fetched from like all others; some pieces are then requested twice.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::ConnId;

/// A leecher counts as fetching from seeders for this long after it came, or was the first to have a piece.
const ACTIVE: Duration = Duration::from_secs(10);

/// Time without a new piece of other leechers after which nothing is left to them any more.
const MAX_SILENCE: Duration = Duration::from_secs(1);

/// Longest time for which pieces are left to other leechers while this side begins none of its own.
const MAX_HOLD: Duration = Duration::from_millis(1500);

/// Pieces are left to other leechers while these deliver at least this part of what seeders deliver.
const MIN_PART: f64 = 0.75;

/// Pieces are left to other leechers once what only seeders have is at most this many times what was received lately,
/// which is what arrives in 1.4 seconds: while more is left, a leecher that is faster than others fetches theirs too.
const MAX_LEFT: f64 = 1.0;

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
    /// The id of this side.
    own: u64,
    /// The leechers by connection.
    leechers: HashMap<ConnId, Leecher>,
    /// The ids of those that fetch from seeders.
    active: BTreeSet<u64>,
    /// Bytes received lately from seeders and from leechers.
    received: [f64; 2],
    /// When another leecher last was the first to have a piece.
    news_at: Option<Instant>,
    /// Since when pieces are left to others.
    held_since: Option<Instant>,
    /// Whether they are at present.
    holds: bool,
    /// What has happened since the last review, and when that was.
    events: Events,
    reviewed: Option<Instant>,
}

/// A leecher at the other end of a connection.
#[derive(Debug)]
struct Leecher {
    id: u64,
    /// When it came, or last was the first to have a piece; `None` until the next review.
    active_at: Option<Instant>,
}

/// What has happened since the last review.
#[derive(Debug, Default)]
struct Events {
    /// Another leecher was the first to have a piece.
    news: bool,
    /// A piece was left to others.
    held: bool,
    /// A piece of its own was begun.
    began: bool,
}

impl Claims {
    /// Sets the id by which others know this side.
    pub fn set_own(&mut self, own: u64) {
        self.own = own;
    }

    /// Adds the peer of a connection.
    pub fn join(&mut self, conn: ConnId, id: u64) {
        let active_at = None;
        self.leechers.insert(conn, Leecher { id, active_at });
        self.active.insert(id);
    }

    /// Removes a connection: it has ended, or its peer has every piece.
    pub fn leave(&mut self, conn: ConnId) {
        if let Some(left) = self.leechers.remove(&conn)
            && self.leechers.values().all(|it| it.id != left.id)
        {
            self.active.remove(&left.id);
        }
    }

    /// Notes that the peer of a connection is the first leecher to have a piece.
    pub fn is_first(&mut self, conn: ConnId) {
        if let Some(leecher) = self.leechers.get_mut(&conn) {
            leecher.active_at = None;
            self.events.news = true;
        }
    }

    /// Counts bytes received.
    pub fn received(&mut self, from_seeder: bool, bytes: u32) {
        self.received[usize::from(!from_seeder)] += f64::from(bytes);
    }

    /// Takes note of what has happened since the last call; to be called about every 50 ms.
    /// `left` bytes are in pieces that no leecher has and that are not begun here.
    pub fn review(&mut self, left: u64, now: Instant) {
        let age = |at: Instant| now.saturating_duration_since(at);
        let Events { news, held, began } = std::mem::take(&mut self.events);
        let mut active = BTreeSet::new();
        for leecher in self.leechers.values_mut() {
            if age(*leecher.active_at.get_or_insert(now)) <= ACTIVE {
                active.insert(leecher.id);
            }
        }
        self.active = active;
        if news {
            self.news_at = Some(now);
        }
        if began {
            self.held_since = None;
        }
        if held {
            self.held_since.get_or_insert(now);
        }
        let elapsed = self.reviewed.replace(now).map_or(Duration::ZERO, age);
        let kept = (-elapsed.div_duration_f64(HALF_LIFE)).exp2();
        self.received = self.received.map(|bytes| bytes * kept);
        let [from_seeders, from_leechers] = self.received;
        self.holds = self.news_at.is_some_and(|at| age(at) <= MAX_SILENCE)
            && self.held_since.is_none_or(|at| age(at) <= MAX_HOLD)
            && from_leechers > MIN_PART * from_seeders
            && left as f64 <= (from_leechers + from_seeders) * MAX_LEFT;
    }

    /// How many others come before this side for a piece.
    fn before(&self, piece: u32) -> usize {
        if self.active.len() > MAX_LEECHERS {
            return 0;
        }
        let own = score(self.own, piece);
        let others = self.active.iter();
        others.filter(|id| score(**id, piece) > own).count()
    }

    /// The piece to begin: of the first ones among `pieces`, one for which the fewest others come before this side.
    pub fn choose(&self, mut pieces: impl Iterator<Item = u32>) -> Option<u32> {
        let first = pieces.next()?;
        let mut best = (self.before(first), first);
        for piece in pieces.take(SAMPLES - 1) {
            if best.0 == 0 {
                break;
            }
            best = best.min((self.before(piece), piece));
        }
        Some(best.1)
    }

    /// Whether nothing is requested from a seeder now. `sole` is the piece that would be begun, if no
    /// leecher has it; without one, this side would request what others have.
    pub fn leaves(&mut self, sole: Option<u32>) -> bool {
        let is_own = sole.is_some_and(|piece| self.before(piece) == 0);
        let leaves = !is_own && self.holds;
        self.events.began |= is_own;
        self.events.held |= leaves;
        leaves
    }
}

/// The place of a leecher in the order for a piece, the greatest first: the mixing steps of SplitMix64.
fn score(id: u64, piece: u32) -> u64 {
    let mut mixed = id ^ u64::from(piece).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The claims of `own` among other leechers, each with a connection of its number.
    fn claims(own: u64, others: impl IntoIterator<Item = u64>) -> Claims {
        let mut claims = Claims::default();
        claims.set_own(own);
        for (conn, id) in (1..).zip(others) {
            claims.join(conn, id);
        }
        claims
    }

    #[test]
    fn a_leecher_that_is_first_with_no_piece_no_longer_counts() {
        let start = Instant::now();
        let mut claims = claims(1, [2, 3]);
        for ms in (0..=10_000).step_by(50) {
            claims.is_first(2);
            claims.review(0, start + ms * MS);
        }
        // The second connection is that of the leecher 3.
        assert_eq!(claims.active, BTreeSet::from([2, 3]));
        claims.review(0, start + 10_050 * MS);
        assert_eq!(claims.active, BTreeSet::from([3]));
        claims.leave(2);
        assert_eq!(claims.active, BTreeSet::new());
    }

    #[test]
    fn nothing_is_left_to_leechers_that_deliver_less_than_seeders() {
        let now = Instant::now();
        let mut claims = claims(1, [2]);
        let of_other = (0..100).find(|piece| claims.before(*piece) > 0);
        for (from_leechers, left, leaves) in [
            (700, 0, false),
            (800, 0, true),
            (800, 1800, true),
            // While much is left, all fetch what they can.
            (800, 1900, false),
        ] {
            claims.received = [0.0; 2];
            claims.received(true, 1000);
            claims.received(false, from_leechers);
            claims.is_first(1);
            claims.review(left, now);
            assert_eq!(claims.leaves(of_other), leaves);
            assert_eq!(claims.leaves(None), leaves);
        }
    }

    #[test]
    fn among_many_leechers_every_piece_is_its_own() {
        let claims = claims(1, 2..100);
        assert!((0..1000).all(|piece| claims.before(piece) == 0));
    }

    /// An event of the leecher that `nothing_is_left_for_long` tests.
    #[derive(Debug, Clone)]
    enum Event {
        First(ConnId),
        Received(bool, u32),
        Leaves(u32),
        Pass(u32),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            (1..5u64).prop_map(Event::First),
            (any::<bool>(), 0..20_000u32)
                .prop_map(|(seeder, bytes)| Event::Received(seeder, bytes)),
            (0..50u32).prop_map(Event::Leaves),
            (0..500u32).prop_map(Event::Pass),
        ];
        vec(event, 0..400)
    }

    proptest! {
        /// Each piece is for exactly one leecher, and none has far more than its part.
        #[test]
        fn pieces_are_shared_out_evenly(ids in btree_set(any::<u64>(), 1..=MAX_LEECHERS)) {
            let pieces = 2000;
            let mut own = vec![0u32; pieces];
            for id in &ids {
                let claims = claims(*id, ids.iter().copied().filter(|other| other != id));
                let firsts: Vec<u32> = (0..pieces as u32).filter(|it| claims.before(*it) == 0).collect();
                let part = pieces / ids.len();
                prop_assert!((part / 3..=part * 2).contains(&firsts.len()), "{} of {pieces}", firsts.len());
                firsts.into_iter().for_each(|piece| own[piece as usize] += 1);
            }
            prop_assert!(own.iter().all(|count| *count == 1));
        }

        /// Whatever the others do, nothing is left to them for longer than [`MAX_HOLD`], unless
        /// a piece of its own is begun.
        #[test]
        fn nothing_is_left_for_long(events in events()) {
            let start = Instant::now();
            let (mut now, mut since) = (start, None);
            let mut claims = claims(1, 2..6);
            for event in events {
                match event {
                    Event::First(conn) => claims.is_first(conn),
                    Event::Received(seeder, bytes) => claims.received(seeder, bytes),
                    Event::Leaves(piece) => match claims.leaves(Some(piece)) {
                        true => {
                            let since = *since.get_or_insert(now);
                            let held = now - since;
                            // The last review was up to half a second ago.
                            prop_assert!(held <= MAX_HOLD + 1000 * MS, "{held:?}");
                        }
                        false if claims.before(piece) == 0 => since = None,
                        false => {}
                    },
                    Event::Pass(ms) => {
                        now += ms * MS;
                        claims.review(0, now);
                    }
                }
            }
        }

        /// A choice is one of the pieces, and if any of the first ones is its own, it is one of these.
        #[test]
        fn its_own_pieces_come_first(pieces in vec(any::<u32>(), 0..100), others in 0..10u64) {
            let claims = claims(1, (0..others).map(|other| other + 2));
            let chosen = claims.choose(pieces.iter().copied());
            prop_assert_eq!(chosen.is_some(), !pieces.is_empty());
            if let Some(chosen) = chosen {
                prop_assert!(pieces.contains(&chosen));
                let any_own = pieces.iter().take(SAMPLES).any(|it| claims.before(*it) == 0);
                prop_assert_eq!(claims.before(chosen) == 0, any_own);
            }
        }
    }
}
