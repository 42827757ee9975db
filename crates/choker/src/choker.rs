//! Giving slots to peers, and taking them back.

mod draw;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::peer::{Peer, Slot};
use crate::waiting::Waiting;
use crate::{Action, Counters, Goal, Order, RECHOKE, TURN};

/// The peers of a torrent, and which of them hold a slot.
///
/// `P` names an address-level peer. Outcomes depend on nothing but the calls made, the times given
/// and the seed. A tick looks at the peers that hold a slot and those with which something was exchanged;
/// it goes through those that wait only to draw one of them.
#[derive(Debug, Clone)]
pub struct Choker<P> {
    goal: Goal,
    slots: usize,
    peers: BTreeMap<P, Peer>,
    /// Those that hold a slot.
    holders: BTreeSet<P>,
    /// Those with which something was exchanged.
    traded: BTreeSet<P>,
    /// Those that want a slot and hold none.
    waiting: Waiting<P>,
    /// Number of peers that may get or keep a slot.
    candidates: usize,
    rng: Rng,
    review_at: Instant,
    /// Whether slots may have become free, or wanted, since the last tick.
    has_changes: bool,
}

/// The peers that are to hold slots, before the free slots are given.
struct Holders<P> {
    earned: BTreeSet<P>,
    /// Those that keep an optimistic slot.
    kept: BTreeSet<P>,
    /// Those that have had their turn, and keep the slot if no other peer wants it.
    over: BTreeSet<P>,
}

impl<P: Ord + Copy> Choker<P> {
    /// Without peers, with this many slots; 0 counts as 1.
    pub fn new(goal: Goal, slots: usize, seed: u64, now: Instant) -> Self {
        Self {
            goal,
            slots: slots.max(1),
            peers: BTreeMap::new(),
            holders: BTreeSet::new(),
            traded: BTreeSet::new(),
            waiting: Waiting::new(),
            candidates: 0,
            rng: Rng::with_seed(seed),
            review_at: now + RECHOKE,
            has_changes: false,
        }
    }

    /// Sets the number of slots; 0 counts as 1.
    pub fn set_slots(&mut self, slots: usize) {
        self.slots = slots.max(1);
        self.has_changes = true;
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Sets what this side wants; it counts from the next review on.
    pub fn set_goal(&mut self, goal: Goal) {
        self.goal = goal;
    }

    /// Adds a peer, without interest so far. A known one stays as it is.
    pub fn join(&mut self, peer: P) {
        self.peers.entry(peer).or_insert_with(Peer::new);
    }

    /// Forgets a peer. There is no order for it.
    pub fn leave(&mut self, peer: P) {
        self.change(peer, |known| {
            known.interested = false;
            known.slot = None;
        });
        if self.peers.remove(&peer).is_some() {
            self.has_changes = true;
            self.holders.remove(&peer);
            self.traded.remove(&peer);
        }
    }

    /// Sets whether a peer wants blocks (BEP 3).
    pub fn set_interested(&mut self, peer: P, interested: bool) {
        let known = self.peers.get(&peer);
        if known.is_some_and(|known| known.interested != interested) {
            self.change(peer, |known| {
                known.interested = interested;
                known.waited = 0;
            });
            self.has_changes = true;
        }
    }

    /// Sets whether a peer downloads nothing (BEP 21).
    pub fn set_upload_only(&mut self, peer: P, upload_only: bool) {
        let known = self.peers.get(&peer);
        if known.is_some_and(|known| known.upload_only != upload_only) {
            self.change(peer, |known| known.upload_only = upload_only);
            self.has_changes = true;
        }
    }

    /// Adds what was exchanged over a connection to a peer that has ended, since the connection
    /// began.
    pub fn ended(&mut self, peer: P, counters: Counters) {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.end(counters);
            self.traded.insert(peer);
        }
    }

    /// Changes a peer, and keeps what is known of those that wait in step with it.
    fn change(&mut self, peer: P, change: impl FnOnce(&mut Peer)) {
        let Some(known) = self.peers.get_mut(&peer) else {
            return;
        };
        let (waited, was_candidate) = (known.waits(), known.is_candidate());
        if waited {
            known.waited += self.waiting.draws() - known.since;
        }
        change(known);
        match (waited, known.waits()) {
            (true, false) => self.waiting.remove(peer),
            (false, true) => self.waiting.insert(peer, !known.is_known),
            _ => {}
        }
        known.since = self.waiting.draws();
        self.candidates += usize::from(known.is_candidate());
        self.candidates -= usize::from(was_candidate);
    }

    /// Leaves out a time in which this program did not run: nothing could have arrived.
    pub fn skip(&mut self, pause: Duration) {
        self.review_at += pause;
        self.peers.values_mut().for_each(|peer| peer.skip(pause));
    }

    /// The peers, in their order.
    pub fn peers(&self) -> impl Iterator<Item = P> {
        self.peers.keys().copied()
    }

    /// The peers that hold a slot, in their order.
    pub fn unchoked(&self) -> impl Iterator<Item = P> {
        self.holders.iter().copied()
    }

    /// Whether a peer holds a slot.
    pub fn is_unchoked(&self, peer: P) -> bool {
        self.holders.contains(&peer)
    }

    /// When [`Self::tick`] must be called even if nothing happens; `None` for never.
    pub fn next_due(&self) -> Option<Instant> {
        (self.candidates > 0).then_some(self.review_at)
    }

    /// When the peers are reviewed next.
    pub fn next_review(&self) -> Instant {
        self.review_at
    }

    /// The orders due now. `report` gives what was exchanged over the open connections, since each
    /// began; entries of one peer are added up. It is called for a review only.
    pub fn tick<I>(&mut self, report: impl FnOnce() -> I, now: Instant) -> Vec<Order<P>>
    where
        I: IntoIterator<Item = (P, Counters)>,
    {
        let is_due = self.review_at <= now;
        if !is_due && !self.has_changes {
            return Vec::new();
        }
        self.has_changes = false;
        if is_due {
            self.review_at = now + RECHOKE;
            self.observe(report(), now);
        }
        let holders = self.judge(is_due, now);
        self.give(holders, now)
    }

    fn observe(&mut self, report: impl IntoIterator<Item = (P, Counters)>, now: Instant) {
        let mut open: BTreeMap<P, Counters> = BTreeMap::new();
        for (peer, counters) in report {
            let sum = open.entry(peer).or_default();
            *sum = *sum + counters;
        }
        self.traded
            .extend(open.keys().filter(|peer| self.peers.contains_key(peer)));
        for peer in &self.traded {
            if let Some(known) = self.peers.get_mut(peer) {
                known.review(open.remove(peer).unwrap_or_default(), now);
            }
        }
    }

    /// Fewest slots that are optimistic.
    fn optimistic(&self) -> usize {
        match self.goal {
            Goal::Fetching => (self.slots / 5).max(1),
            Goal::Seeding => self.slots.div_ceil(2),
        }
    }

    /// The peers that are to hold slots by merit as of the last review, and by turn. Turns end at a
    /// review, if `is_due`.
    fn judge(&self, is_due: bool, now: Instant) -> Holders<P> {
        let merits = self.candidates_of(&self.traded).filter_map(|(key, peer)| {
            let merit = peer.merit(self.goal, now)?;
            // Of equals, those that are served stay.
            Some((Reverse(merit), peer.slot.is_none(), key))
        });
        let mut merits: Vec<_> = merits.collect();
        merits.sort_unstable();
        merits.truncate(self.slots - self.optimistic());
        let earned: BTreeSet<P> = merits.into_iter().map(|(_, _, key)| key).collect();
        let (mut kept, mut over) = (BTreeSet::new(), BTreeSet::new());
        let holders = self.candidates_of(&self.holders);
        for (key, peer) in holders.filter(|(key, _)| !earned.contains(key)) {
            // A peer that takes nothing shall not keep others waiting.
            let turn = match peer.takes_nothing() {
                true => RECHOKE,
                false => TURN,
            };
            match peer.slot {
                Some(Slot::Optimistic { since })
                    if !is_due || now.saturating_duration_since(since) < turn =>
                {
                    kept.insert(key)
                }
                Some(_) => over.insert(key),
                None => false,
            };
        }
        Holders { earned, kept, over }
    }

    /// Those of `keys` that may get a slot.
    fn candidates_of(&self, keys: &BTreeSet<P>) -> impl Iterator<Item = (P, &Peer)> {
        let known = keys
            .iter()
            .filter_map(|key| Some((*key, self.peers.get(key)?)));
        known.filter(|(_, peer)| peer.is_candidate())
    }

    /// Gives the slots to `holders`, then those that are left to peers that wait.
    fn give(&mut self, holders: Holders<P>, now: Instant) -> Vec<Order<P>> {
        let Holders { earned, kept, over } = holders;
        let mut next: BTreeMap<P, Slot> = BTreeMap::new();
        let earned = earned.into_iter().take(self.slots);
        next.extend(earned.map(|key| (key, Slot::Earned)));
        let mut turns: Vec<(Instant, P)> = kept
            .into_iter()
            .filter_map(|key| match self.peers.get(&key)?.slot? {
                Slot::Optimistic { since } => Some((since, key)),
                Slot::Earned => None,
            })
            .collect();
        // Those that came last were given what others had earned, and give way to these.
        turns.sort_unstable();
        turns.truncate(self.slots - next.len());
        let turns = turns.into_iter();
        next.extend(turns.map(|(since, key)| (key, Slot::Optimistic { since })));
        let free = self.slots - next.len();
        let drawn = match free {
            0 => Vec::new(),
            _ => {
                let open = self.open_to(&next, &over);
                self.draw(open, free)
            }
        };
        let since = now;
        next.extend(
            drawn
                .into_iter()
                .map(|key| (key, Slot::Optimistic { since })),
        );
        let rest = over.into_iter().take(self.slots - next.len());
        let rest: Vec<P> = rest.collect();
        next.extend(
            rest.into_iter()
                .map(|key| (key, Slot::Optimistic { since })),
        );
        // One that wants nothing now may be interested again in a moment. Its turn continues
        // meanwhile.
        let idle = self.holders.iter().filter_map(|key| {
            let peer = self.peers.get(key)?;
            let slot = peer
                .slot
                .filter(|_| !peer.interested && !peer.upload_only)?;
            Some((
                *key,
                match slot {
                    Slot::Earned => Slot::Optimistic { since },
                    slot => slot,
                },
            ))
        });
        next.extend(idle.take(self.slots - next.len()));
        self.order(&next)
    }

    /// Sets which peers hold a slot. Returns the orders for those for which that is new.
    fn order(&mut self, next: &BTreeMap<P, Slot>) -> Vec<Order<P>> {
        let (mut chokes, mut unchokes) = (Vec::new(), Vec::new());
        let before = std::mem::replace(&mut self.holders, next.keys().copied().collect());
        let peers: Vec<P> = before.union(&self.holders).copied().collect();
        for peer in peers {
            let slot = next.get(&peer).copied();
            self.change(peer, |known| {
                if known.slot.is_none() {
                    known.is_known = true;
                    known.waited = 0;
                }
                known.slot = slot;
            });
            match (before.contains(&peer), slot) {
                (false, Some(_)) => {
                    let action = Action::Unchoke;
                    unchokes.push(Order { peer, action });
                }
                (true, None) => {
                    let action = Action::Choke;
                    chokes.push(Order { peer, action });
                }
                _ => {}
            }
        }
        // At no time are more served than there are slots.
        chokes.extend(unchokes);
        chokes
    }
}
