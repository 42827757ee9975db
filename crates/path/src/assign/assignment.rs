//! The downloaders of an uploader, the paths to them, and what changes when one joins or leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest, Sha256};

use super::links::Links;
use super::stuck::{Class, Stuck};
use super::table::{Item, Table};
use super::unavoidable::Unavoidable;
use crate::{Decision, Fingerprint, Path};

/// The paths an uploader gives to all its downloaders (001, section VI).
///
/// The uploader alone knows all its downloaders and the paths to them, so it assigns the paths: no
/// two paths in use cross the same interface, whichever peers they lead to, because they may share
/// a bottleneck there. Within that limit shares are even: peers with the fewest paths come first,
/// each with its best ranked free path, and a peer with more paths gives one up for a peer with
/// fewer, or takes another instead. A new peer first uses paths that no other peer uses.
///
/// Shares are even if no peer could have one more path, its `n`th, unless a peer that has at least
/// `n` were left with fewer than `n`. It follows that
/// - a peer never has to wait because others join, leave or have more paths to choose from. It
///   waits only for a turn, or because paths begin to conflict: a link that was ignored counts, or
///   sharing it is forbidden;
/// - shares are the most even possible (leximin) where each path conflicts with at most one other,
///   but not always elsewhere: a peer does not lose its only path so that another has two;
/// - the search is exhaustive in networks of up to about twenty paths. In larger ones with many
///   conflicts it is bounded, to some milliseconds for each change and to chains of twelve paths,
///   and shares may be less even; later changes continue where the search ended.
///
/// Paths in use change only if that makes shares more even: setting the same paths again changes
/// nothing, unless the search had ended early.
///
/// Two links do not count as shared, since no choice can avoid them: the link out of the uploader's
/// AS when all paths of all peers leave by it, and the link into a peer's AS when all paths into
/// that AS arrive by it.
///
/// If there are not enough paths for all peers to have one, the others wait until
/// [`Assignment::turn`] gives them a turn.
///
/// `K` names a peer, and is printed in reasons. Outcomes depend on nothing but the calls made.
#[derive(Debug, Clone)]
pub struct Assignment<K> {
    pub(super) peers: BTreeMap<K, Peer>,
    /// Pairs of paths that may share interfaces, each pair in both orders.
    pub(super) allowed: BTreeMap<Offered<K>, BTreeSet<Offered<K>>>,
    /// Peers that got a path in the last turn: they keep it until the next.
    pub(super) turns: BTreeSet<K>,
    /// Number of calls that changed anything.
    pub(super) clock: u64,
    pub(super) links: Links,
    pub(super) unavoidable: Unavoidable,
    pub(super) stuck: Stuck,
    /// Numbers of peers that left, to be reused.
    pub(super) free: Vec<usize>,
    /// The current outcome.
    pub(super) table: Table,
    /// The peer at each seat of the table.
    pub(super) keys: Vec<K>,
}

/// A path of a peer. Two peers in one AS have paths of the same fingerprint.
pub(super) type Offered<K> = (K, Fingerprint);

/// A path that is now used, or no longer, or whose use has a new reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<K> {
    /// The peer it leads to.
    pub peer: K,
    /// The path.
    pub path: Fingerprint,
    /// [`Taken`](crate::Verdict::Taken) if it is used now; [`Left`](crate::Verdict::Left) or [`Waiting`](crate::Verdict::Waiting) if it no
    /// longer is.
    pub decision: Decision,
}

#[derive(Debug, Clone)]
pub(super) struct Peer {
    /// Its number: small, and reused when it leaves.
    pub number: usize,
    pub class: Class,
    /// Best first.
    pub offers: Vec<Offer>,
    pub most: usize,
    /// The clock when it joined.
    pub joined: u64,
    /// The clock when it got its first path or lost its last.
    pub since: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Offer {
    pub path: Path,
    pub fingerprint: Fingerprint,
    /// The numbers of its interfaces.
    pub links: Vec<u32>,
    pub taken: bool,
}

impl<K: Copy + Ord + fmt::Display> Default for Assignment<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Ord + fmt::Display> Assignment<K> {
    /// The assignment of an uploader without downloaders.
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

    /// Adds a peer, or changes its paths or limit. `paths` are all paths to it that may be used, as
    /// seen from the uploader, best first; of copies only the first counts. `most` is the most
    /// paths that it accepts at once; 0 counts as 1. Returns what changed, for this and for other
    /// peers.
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

    /// Removes a peer. Returns what changed for it and for the peers that get its paths.
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

    /// Starts the next turn: peers that wait for a path take over from the peers that have had one
    /// longest, and keep it at least until the turn after. Must be called once per period, such as
    /// the choking period of BEP 3 (10 s). The peer that has waited longest always gets a path, so
    /// none waits for more turns than there are peers.
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
        // Peers that give up their path now wait for the next turn.
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

    /// Lets two paths be used together although they share interfaces, because sensing found that
    /// they do not slow each other. Has no effect if either is not offered, and ends when either no
    /// longer is.
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

    /// Revokes [`allow`](Self::allow), because sensing found that the two paths slow each other.
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
    /// paths, whether or not that is allowed, in order. Links that no choice can avoid do not
    /// count.
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

    /// The decision about one of a peer's paths; `None` for one that is not offered.
    pub fn decision(&self, peer: K, path: Fingerprint) -> Option<Decision> {
        let item = self.item_in(&self.table, (peer, path))?;
        Some(self.decision_on(item))
    }

    /// The decision about each of a peer's paths, best first.
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

    /// Only searches that looked at the paths of one of the two peers depend on this pair.
    fn pair_changed(&mut self, one: Offered<K>, other: Offered<K>) {
        for offered in [one, other] {
            if let Some(peer) = self.peers.get(&offered.0) {
                self.stuck.peer_changed(peer.number);
            }
        }
    }

    pub(super) fn offers(&self, (peer, fingerprint): Offered<K>) -> bool {
        self.peers.get(&peer).is_some_and(|it| {
            let mut offers = it.offers.iter();
            offers.any(|offer| offer.fingerprint == fingerprint)
        })
    }

    /// Forgets what depended on paths that may no longer be offered.
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
}
