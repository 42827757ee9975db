//! Which paths an uploader gives to which of its downloaders.

#[cfg(test)]
mod brute;
mod chain;
mod links;
#[cfg(test)]
mod properties;
mod sensing;
mod share;
mod stuck;
mod table;
#[cfg(test)]
mod tests;
mod unavoidable;
mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest, Sha256};

use self::links::Links;
pub use self::sensing::SensingAssignment;
use self::stuck::{Class, Stuck};
use self::table::{Item, Seat, Table};
use self::unavoidable::Unavoidable;
use crate::{Decision, Fingerprint, Path, Reason, Verdict};

/// The paths an uploader gives to all its downloaders (001, section VI).
///
/// The uploader alone knows all its downloaders and the paths to them, so it shares them out: no
/// two paths in use cross the same interface, whomever they lead to, because they may share a
/// bottleneck there. What that leaves possible is shared out evenly: those with the fewest come
/// first, each with its best ranked free path, and a peer that has more gives one up for a peer
/// that has less, or takes another instead. A peer that comes with alternatives uses these.
///
/// Even means: nobody could have one path more, its `n`th, unless somebody who has at least `n` were
/// left with fewer than `n`. So
/// - nobody is made to wait by those who join, leave or have more to choose from, only by a turn
///   (or when paths begin to be in each other's way: a link counts from now on, or is forbidden);
/// - shares are the evenest there are (leximin) where each path is in the way of at most one other,
///   but not always elsewhere: a peer does not lose its only path so that another has two;
/// - small networks, of some twenty paths, are searched through. In larger intertwined ones the
///   search is bounded, to some milliseconds for each change and to chains of twelve paths, and
///   shares may be less even than that; later changes go on where the search ended.
///
/// What is in use moves only if that makes shares more even: setting the same paths again changes
/// nothing, unless the search had ended before all was even.
///
/// Two things are not counted as sharing: the link out of the uploader's AS when all paths of all
/// peers leave by it, and the link into a peer's AS when all paths into that AS arrive by it: no
/// choice could avoid them.
///
/// Where even one path for each peer is too much, the others wait, and [`Assignment::turn`] says
/// when it is their turn.
///
/// `K` names a peer, and is printed in reasons. Outcomes depend on nothing but the calls made.
#[derive(Debug, Clone)]
pub struct Assignment<K> {
    peers: BTreeMap<K, Peer>,
    /// What may be shared, each pair both ways round.
    allowed: BTreeMap<Offered<K>, BTreeSet<Offered<K>>>,
    /// Peers that were given a path in the last turn: nobody takes it before the next.
    turns: BTreeSet<K>,
    /// How many calls changed anything.
    clock: u64,
    links: Links,
    unavoidable: Unavoidable,
    stuck: Stuck,
    /// Numbers of peers that left, below the greatest.
    free: Vec<usize>,
    /// The outcome.
    table: Table,
    /// By seat in the table: whose it is.
    keys: Vec<K>,
}

/// A path of a peer. Two peers in one AS have paths of the same fingerprint.
type Offered<K> = (K, Fingerprint);

/// A path that is used from now on, or no longer, or whose use has a new reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<K> {
    /// Whom it leads to.
    pub peer: K,
    /// The path.
    pub path: Fingerprint,
    /// [`Verdict::Taken`] if it is used from now on; [`Verdict::Left`] or [`Verdict::Waiting`] if
    /// it no longer is.
    pub decision: Decision,
}

#[derive(Debug, Clone)]
struct Peer {
    /// Its number, which is a small one.
    number: usize,
    class: Class,
    /// Best first.
    offers: Vec<Offer>,
    most: usize,
    /// The clock when it came.
    joined: u64,
    /// The clock when it got its first path or lost its last.
    since: u64,
}

#[derive(Debug, Clone)]
struct Offer {
    path: Path,
    fingerprint: Fingerprint,
    /// The numbers of its interfaces.
    links: Vec<u32>,
    taken: bool,
}

impl<K: Copy + Ord + fmt::Display> Default for Assignment<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Ord + fmt::Display> Assignment<K> {
    /// Of an uploader without downloaders.
    pub fn new() -> Self {
        Self {
            peers: BTreeMap::new(),
            allowed: BTreeMap::new(),
            turns: BTreeSet::new(),
            clock: 0,
            links: Links::default(),
            unavoidable: Unavoidable::default(),
            stuck: Stuck::default(),
            free: Vec::new(),
            table: Table::default(),
            keys: Vec::new(),
        }
    }

    /// A peer joined, or its paths or its wish changed. `paths` are all paths to it that may be
    /// used, as seen from the uploader, best first; of copies only the first counts. `most` is how
    /// many it takes at once; 0 counts as 1. Returns what changed, for this and for other peers.
    pub fn set_peer(&mut self, peer: K, paths: Vec<Path>, most: usize) -> Vec<Change<K>> {
        let before = self.in_use();
        let joined = self.clock + 1;
        let mut seen = BTreeSet::new();
        let mut offers = Vec::with_capacity(paths.len());
        let mut class = Sha256::new();
        let mut others_count = false;
        for path in paths {
            let fingerprint = path.fingerprint();
            if seen.insert(fingerprint) {
                class.update(fingerprint.as_bytes());
                others_count |= self.unavoidable.add(&path);
                offers.push(Offer {
                    links: self.links.number(&path.interfaces),
                    taken: before.contains(&(peer, fingerprint)),
                    path,
                    fingerprint,
                });
            }
        }
        let next = self.peers.len();
        let entry = self.peers.entry(peer).or_insert_with(|| Peer {
            number: self.free.pop().unwrap_or(next),
            class: Class::default(),
            offers: Vec::new(),
            most: 1,
            joined,
            since: joined,
        });
        entry.most = most.max(1);
        entry.class = class.finalize().into();
        self.stuck.peer_changed(entry.number);
        let gone = std::mem::replace(&mut entry.offers, offers);
        self.withdraw(peer, &gone);
        if others_count {
            self.stuck.clear();
        }
        self.settle(&before)
    }

    /// A peer left. Returns what changed for it and for those who get what it had.
    pub fn remove_peer(&mut self, peer: K) -> Vec<Change<K>> {
        let before = self.in_use();
        let Some(gone) = self.peers.remove(&peer) else {
            return Vec::new();
        };
        self.turns.remove(&peer);
        self.stuck.peer_changed(gone.number);
        self.free.push(gone.number);
        self.withdraw(peer, &gone.offers);
        self.settle(&before)
    }

    /// It is the next ones' turn: peers that wait for a path take over from those who have had
    /// theirs longest, and keep it at least until the next turn. For the owner to call every
    /// choking period (10 s, BEP 3). The peer that has waited longest always gets a path, so each
    /// waits for at most as many turns as there are peers.
    pub fn turn(&mut self) -> Vec<Change<K>> {
        let before = self.in_use();
        self.turns.clear();
        let mut table = std::mem::take(&mut self.table);
        for (seat, peer) in table.seats.iter_mut().zip(self.peers.values()) {
            seat.turn = false;
            // The last change came after the table was laid out.
            seat.order = (peer.since, peer.joined);
        }
        let mut waiting = table.in_order();
        // Not those who give up their path now: their turn comes.
        waiting.retain(|&seat| table.seats[seat].count == 0);
        for seat in waiting {
            if let Some(item) = Self::take_over(&table, seat) {
                for blocker in table.blockers(item) {
                    table.drop(blocker);
                    table.changed(blocker, &mut self.stuck);
                }
                table.take(item);
                table.changed(item, &mut self.stuck);
                table.seats[seat].turn = true;
                self.turns.insert(self.keys[seat]);
            }
        }
        for (peer, seat) in self.peers.values_mut().zip(&table.seats) {
            for (offer, item) in peer.offers.iter_mut().zip(seat.items.clone()) {
                offer.taken = table.taken[item];
            }
        }
        self.settle(&before)
    }

    /// Sensing found that these two paths do not slow each other: they may be used together
    /// although they share interfaces. Nothing happens when either is not on offer; it is forgotten
    /// when either no longer is.
    pub fn allow(&mut self, one: (K, Fingerprint), other: (K, Fingerprint)) -> Vec<Change<K>> {
        if one == other || !self.offers(one) || !self.offers(other) {
            return Vec::new();
        }
        let before = self.in_use();
        self.allowed.entry(one).or_default().insert(other);
        self.allowed.entry(other).or_default().insert(one);
        self.pair_changed(one, other);
        self.settle(&before)
    }

    /// Sensing found that these two paths slow each other after all: takes an
    /// [`allow`](Self::allow) back.
    pub fn forbid(&mut self, one: (K, Fingerprint), other: (K, Fingerprint)) -> Vec<Change<K>> {
        let mut known = false;
        for (one, other) in [(one, other), (other, one)] {
            if let Some(others) = self.allowed.get_mut(&one) {
                known |= others.remove(&other);
            }
        }
        if !known {
            return Vec::new();
        }
        let before = self.in_use();
        self.pair_changed(one, other);
        self.settle(&before)
    }

    /// The paths in use, to this peer or others, that share an interface with one of a peer's
    /// paths, whether or not they may; without those interfaces that do not count. In order.
    pub fn sharing(&self, peer: K, path: Fingerprint) -> Vec<(K, Fingerprint)> {
        let Some(item) = self.item_in(&self.table, (peer, path)) else {
            return Vec::new();
        };
        let mut sharing: Vec<Item> = self.table.sharing(item).collect();
        sharing.sort_unstable();
        sharing.dedup();
        let named = |one: Item| {
            let seat = self.table.items[one].seat;
            let rank = one - self.table.seats[seat].items.start;
            let peer = self.keys[seat];
            (peer, self.peers[&peer].offers[rank].fingerprint)
        };
        sharing.into_iter().map(named).collect()
    }

    /// The paths that a peer uses, best first.
    pub fn assigned(&self, peer: K) -> Vec<Fingerprint> {
        let offers = self.peers.get(&peer).into_iter().flat_map(|it| &it.offers);
        offers
            .filter(|offer| offer.taken)
            .map(|offer| offer.fingerprint)
            .collect()
    }

    /// What was decided about one of a peer's paths; `None` for one that is not on offer.
    pub fn decision(&self, peer: K, path: Fingerprint) -> Option<Decision> {
        let item = self.item_in(&self.table, (peer, path))?;
        Some(self.decision_on(item))
    }

    /// What was decided about each of a peer's paths, best first.
    pub fn decisions(&self, peer: K) -> Vec<(Fingerprint, Decision)> {
        let Ok(seat) = self.keys.binary_search(&peer) else {
            return Vec::new();
        };
        let items = self.table.seats[seat].items.clone();
        let offers = self.peers[&peer].offers.iter();
        offers
            .zip(items)
            .map(|(offer, item)| (offer.fingerprint, self.decision_on(item)))
            .collect()
    }

    /// Only who looked at what one of the two peers could have saw this pair.
    fn pair_changed(&mut self, one: Offered<K>, other: Offered<K>) {
        for offered in [one, other] {
            if let Some(peer) = self.peers.get(&offered.0) {
                self.stuck.peer_changed(peer.number);
            }
        }
    }

    fn offers(&self, (peer, fingerprint): Offered<K>) -> bool {
        self.peers.get(&peer).is_some_and(|it| {
            let mut offers = it.offers.iter();
            offers.any(|offer| offer.fingerprint == fingerprint)
        })
    }

    /// Forgets what hung on paths that may now be gone.
    fn withdraw(&mut self, peer: K, gone: &[Offer]) {
        let mut others_count = false;
        for offer in gone {
            others_count |= self.unavoidable.remove(&offer.path);
            if offer.taken {
                for &link in &offer.links {
                    self.stuck.link_changed(link);
                }
            }
            self.links.release(&offer.path.interfaces);
            let one = (peer, offer.fingerprint);
            if self.offers(one) {
                continue;
            }
            for other in self.allowed.remove(&one).unwrap_or_default() {
                if let Some(others) = self.allowed.get_mut(&other) {
                    others.remove(&one);
                }
            }
        }
        if others_count {
            self.stuck.clear();
        }
    }

    /// The paths in use.
    fn in_use(&self) -> BTreeSet<Offered<K>> {
        let all = self.peers.iter();
        all.flat_map(|(&key, peer)| {
            let taken = peer.offers.iter().filter(|offer| offer.taken);
            taken.map(move |offer| (key, offer.fingerprint))
        })
        .collect()
    }

    /// Shares out anew, and says what is different from `before`.
    fn settle(&mut self, before: &BTreeSet<Offered<K>>) -> Vec<Change<K>> {
        self.clock += 1;
        self.keys = self.peers.keys().copied().collect();
        self.table = self.lay_out();
        share::share_out(&mut self.table, &mut self.stuck);
        if self.stuck.leaders() > 2 * self.peers.len() {
            let classes: BTreeSet<Class> = self.peers.values().map(|peer| peer.class).collect();
            self.stuck.forget_leaders(|class| classes.contains(class));
        }
        let (least, greatest) = ([0; 32].into(), [u8::MAX; 32].into());
        for ((key, peer), seat) in self.peers.iter_mut().zip(&self.table.seats) {
            let had_any = before
                .range((*key, least)..=(*key, greatest))
                .next()
                .is_some();
            for (offer, item) in peer.offers.iter_mut().zip(seat.items.clone()) {
                offer.taken = self.table.taken[item];
            }
            if had_any != (seat.count > 0) {
                peer.since = self.clock;
            }
        }
        self.changes(before)
    }

    /// The table of what is on offer, with nothing in use.
    fn lay_out(&self) -> Table {
        let mut table = Table::new(self.links.end());
        for (key, peer) in &self.peers {
            table.seat(Seat {
                peer: peer.number,
                class: Some(peer.class),
                items: 0..0,
                most: peer.most,
                count: 0,
                turn: self.turns.contains(key),
                order: (peer.since, peer.joined),
            });
            for offer in &peer.offers {
                let counted = self.unavoidable.without(&offer.path);
                table.offer(&offer.links[counted], offer.taken);
            }
        }
        if self.allowed.is_empty() {
            return table;
        }
        let mut pairs = BTreeSet::new();
        for (one, others) in &self.allowed {
            let Some(first) = self.item_in(&table, *one) else {
                continue;
            };
            let seconds = others.iter().filter(|other| *other > one);
            let seconds = seconds.filter_map(|other| self.item_in(&table, *other));
            // Names and places differ in their order.
            pairs.extend(seconds.map(|second| (first.min(second), first.max(second))));
            if !others.is_empty() {
                let seat = table.items[first].seat;
                table.seats[seat].class = None;
            }
        }
        table.allowed = pairs;
        table
    }

    /// Where a path stands in a table of what is on offer.
    fn item_in(&self, table: &Table, (peer, fingerprint): Offered<K>) -> Option<Item> {
        let seat = self.keys.binary_search(&peer).ok()?;
        let mut offers = self.peers.get(&peer)?.offers.iter();
        let rank = offers.position(|offer| offer.fingerprint == fingerprint)?;
        Some(table.seats[seat].items.start + rank)
    }

    /// The path that a waiting peer gets when it is its turn: the one whose users have had theirs
    /// longest, of these the one with the fewest users, of these the best.
    fn take_over(table: &Table, seat: usize) -> Option<Item> {
        let items = table.seats[seat].items.clone();
        let open = items.filter_map(|item| {
            let blockers = table.blockers(item);
            let users = || {
                blockers
                    .iter()
                    .map(|&one| &table.seats[table.items[one].seat])
            };
            if users().any(|user| user.turn) {
                return None;
            }
            let newest = users().map(|user| user.order).max();
            Some(((newest, blockers.len(), item), item))
        });
        open.min_by_key(|(key, _)| *key).map(|(_, item)| item)
    }

    fn changes(&self, before: &BTreeSet<Offered<K>>) -> Vec<Change<K>> {
        let after = self.in_use();
        let mut changes = Vec::new();
        // What is no longer used comes first, so that who follows the list never has too much.
        for &(peer, path) in before.difference(&after) {
            let gone = Decision {
                verdict: Verdict::Left,
                reason: Reason::Withdrawn {
                    peer: peer.to_string(),
                },
            };
            let decision = self
                .item_in(&self.table, (peer, path))
                .map(|item| self.decision_on(item));
            changes.push(Change {
                peer,
                path,
                decision: decision.unwrap_or(gone),
            });
        }
        for &(peer, path) in after.difference(before) {
            if let Some(item) = self.item_in(&self.table, (peer, path)) {
                let decision = self.decision_on(item);
                changes.push(Change {
                    peer,
                    path,
                    decision,
                });
            }
        }
        changes
    }
}
