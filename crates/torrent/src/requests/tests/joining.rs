//! Connections that come and go near the end of a download: each newcomer is given work, nothing is
//! lost, and no more is requested twice than allowed.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A block: its piece, and where it begins.
type Key = (u32, u32);

/// Time after which a newcomer must have a request: three ticks.
const BOUND: Duration = Duration::from_millis(150);

/// The most connections of which each must be requested from at once; more are if that raises the rate.
const AT_ONCE: usize = 4;

/// The fewest missing blocks for which a newcomer must be given some: more than one connection of these
/// tests has under way.
const ENOUGH: u64 = 32;

/// What a seeder was asked for and has neither sent nor been told to forget, as the messages say.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    asked: BTreeMap<Key, BTreeSet<ConnId>>,
    /// Blocks of stalled connections: others may be asked for them.
    suspended: BTreeMap<Key, BTreeSet<ConnId>>,
    /// Requests for a block that another connection was expected to deliver.
    duplicates: u64,
    /// When each connection was first asked for something.
    first: BTreeMap<ConnId, Instant>,
    /// Connections that are still to come, and when.
    pub(super) coming: BTreeMap<ConnId, Instant>,
    /// Connections that leave, and when.
    leaving: BTreeMap<ConnId, Instant>,
    /// Connections that came while enough was left, and when.
    joined: BTreeMap<ConnId, Instant>,
}

impl Ledger {
    pub fn requested(&mut self, id: ConnId, request: Request, now: Instant) {
        let key = (request.piece, request.begin);
        let holders = self.asked.entry(key).or_default();
        self.duplicates += u64::from(!holders.is_empty());
        assert!(holders.insert(id), "{id} was asked again for {request:?}");
        self.first.entry(id).or_insert(now);
    }

    pub fn cancelled(&mut self, id: ConnId, request: Request) {
        let key = (request.piece, request.begin);
        for of in [&mut self.asked, &mut self.suspended] {
            if let Some(holders) = of.get_mut(&key) {
                holders.remove(&id);
            }
        }
    }

    pub fn received(&mut self, request: Request) {
        let key = (request.piece, request.begin);
        self.asked.remove(&key);
        self.suspended.remove(&key);
    }

    pub fn suspend(&mut self, id: ConnId) {
        for (key, holders) in &mut self.asked {
            if holders.remove(&id) {
                self.suspended.entry(*key).or_default().insert(id);
            }
        }
    }

    /// Blocks that others were asked for meanwhile are not expected again.
    pub fn resume(&mut self, id: ConnId) {
        for (key, holders) in &mut self.suspended {
            let others = self.asked.entry(*key).or_default();
            if holders.remove(&id) && others.is_empty() {
                others.insert(id);
            }
        }
    }

    fn leave(&mut self, id: ConnId) {
        for holders in self.asked.values_mut().chain(self.suspended.values_mut()) {
            holders.remove(&id);
        }
        self.joined.remove(&id);
        self.first.remove(&id);
    }

    /// Each block that the picker counts as requested is requested over a connection.
    pub fn check(&self, picker: &Picker) {
        let asked = self.asked.values().filter(|it| !it.is_empty()).count() as u64;
        assert_eq!(asked, picker.asked_blocks(), "a block is lost");
    }
}

impl Scene {
    /// Adds and removes the seeders that come and leave now.
    pub(super) fn connect_due(&mut self) {
        let now = self.now;
        let due = |times: &BTreeMap<ConnId, Instant>| -> Vec<ConnId> {
            let due = times.iter().filter(|(_, at)| **at <= now);
            due.map(|(id, _)| *id).collect()
        };
        for id in due(&self.ledger.coming) {
            self.ledger.coming.remove(&id);
            let left = self.picker.free_blocks() + self.picker.asked_blocks();
            self.picker.add_conn(id, id as u32);
            self.picker
                .set_has(id, Bitfield::full(pieces(self.size).count()));
            self.seeders.insert(id, Seeder::new(now));
            if left >= ENOUGH && self.seeders.len() <= AT_ONCE {
                self.ledger.joined.insert(id, now);
            }
        }
        for id in due(&self.ledger.leaving) {
            self.ledger.leaving.remove(&id);
            self.picker.remove_conn(id);
            self.seeders.remove(&id);
            self.ledger.leave(id);
        }
        for (id, at) in &self.ledger.joined {
            let first = self.ledger.first.get(id).copied().unwrap_or(now);
            let waited = first.saturating_duration_since(*at);
            assert!(waited <= BOUND, "{id} got no work for {waited:?}");
        }
        let at_once = ((self.size / u64::from(BLOCK)) as f64 / 160.0).max(8.0);
        let most = 1.0 + at_once * (1.0 + 2.0 * (now - self.start).as_secs_f64());
        let duplicates = self.ledger.duplicates;
        assert!(duplicates as f64 <= most, "{duplicates} of {most}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The first seeder stays, the others come and some leave while the rest is requested from it.
    #[test]
    fn newcomers_get_work_and_nothing_is_lost(
        seed: u64,
        uplink in 2.0..30.0_f64,
        others in prop::collection::vec((0_u32..12_000, prop::option::of(500_u32..4000)), 1..=3),
    ) {
        let mut scene = Scene::new(1, 30.0, uplink, seed);
        for (id, (comes, stays)) in (2..).zip(others) {
            let comes = scene.now + comes * MS;
            scene.ledger.coming.insert(id, comes);
            if let Some(stays) = stays {
                scene.ledger.leaving.insert(id, comes + stays * MS);
            }
        }
        let outcome = scene.run();
        prop_assert!(outcome.wasted <= SIZE / 50, "{outcome:?}");
    }
    /// All of a small torrent is requested over the connection that comes first, before its rate is
    /// known: others must be given some of it.
    #[test]
    fn newcomers_get_work_from_a_torrent_that_is_requested_whole(
        seed: u64,
        blocks in ENOUGH + 16..=INITIAL_DEPTH as u64,
        uplink in 2.0..30.0_f64,
        others in prop::collection::vec(0_u32..60, 1..=3),
    ) {
        let size = blocks * u64::from(BLOCK);
        let mut scene = Scene::with_size(size, 1, 1000.0, uplink, seed);
        for (id, comes) in (2..).zip(others) {
            scene.ledger.coming.insert(id, scene.now + comes * MS);
        }
        let outcome = scene.run();
        // Eight blocks may be wasted; those that may be requested twice at once, and meanwhile, may be under way
        // once they are.
        let most = 8.0 + 8.0 * (1.0 + 2.0 * outcome.seconds);
        let wasted = outcome.wasted as f64 / f64::from(BLOCK);
        prop_assert!(wasted <= most, "{outcome:?}");
    }
}
