use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::assignment::{Offer, Offered};
use super::stuck::Stuck;
use super::*;
use crate::testing::path;
use crate::{Interface, Path, Reason, Verdict};

#[derive(Debug, Clone)]
enum Step {
    Set(u64, Vec<Links>, usize),
    Remove(u64),
    Turn,
    Pair(bool, u64, usize, u64, usize),
}

/// A path by its three links: out of the uploader's AS, in the middle, into the peer's AS.
type Links = (u16, u16, u16);

fn links() -> impl Strategy<Value = Vec<Links>> {
    prop::collection::vec((1..6u16, 1..4u16, 1..4u16), 0..5)
}

const PEERS: u64 = 8;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let peer = 1..=PEERS;
    let step = prop_oneof![
        6 => (peer.clone(), links(), 0..4usize)
            .prop_map(|(peer, links, most)| Step::Set(peer, links, most)),
        2 => peer.clone().prop_map(Step::Remove),
        2 => Just(Step::Turn),
        2 => (any::<bool>(), peer.clone(), 0..4usize, peer, 0..4usize)
            .prop_map(|(allow, a, i, b, j)| Step::Pair(allow, a, i, b, j)),
    ];
    prop::collection::vec(step, 1..24)
}

/// The paths to a peer; each AS has two peers.
fn paths(peer: u64, links: &[Links]) -> Vec<Path> {
    let path = |(out, middle, into): &Links| {
        let to = peer / 2 + 1;
        path(&format!(
            "99 {out}>{out} 98 1{middle}>{middle} 97 {to}{into}>{into} {to}"
        ))
    };
    links.iter().map(path).collect()
}

fn take(assignment: &mut Assignment<u64>, step: &Step) -> Vec<Change<u64>> {
    match *step {
        Step::Set(peer, ref links, most) => assignment.set_peer(peer, paths(peer, links), most),
        Step::Remove(peer) => assignment.remove_peer(peer),
        Step::Turn => assignment.turn(),
        Step::Pair(allow, a, i, b, j) => {
            let one = assignment.decisions(a).get(i).map(|it| (a, it.0));
            let other = assignment.decisions(b).get(j).map(|it| (b, it.0));
            match (one, other, allow) {
                (Some(one), Some(other), true) => assignment.allow(one, other),
                (Some(one), Some(other), false) => assignment.forbid(one, other),
                _ => Vec::new(),
            }
        }
    }
}

fn after(steps: &[Step]) -> Assignment<u64> {
    let mut assignment = Assignment::new();
    for step in steps {
        take(&mut assignment, step);
    }
    assignment
}

type Shares = BTreeMap<u64, usize>;

fn shares(assignment: &Assignment<u64>) -> Shares {
    let peers = assignment.peers.keys();
    peers
        .map(|peer| (*peer, assignment.assigned(*peer).len()))
        .collect()
}

/// Peers with offered paths, none of which is in use.
fn waiting(assignment: &Assignment<u64>) -> BTreeSet<u64> {
    let peers = assignment.peers.iter();
    peers
        .filter(|(peer, it)| !it.offers.is_empty() && assignment.assigned(**peer).is_empty())
        .map(|(peer, _)| *peer)
        .collect()
}

/// The interfaces of an offered path that count as shared.
fn counted(assignment: &Assignment<u64>, (peer, fingerprint): Offered<u64>) -> &[Interface] {
    let mut offers = assignment.peers[&peer].offers.iter();
    let offer = offers.find(|one| one.fingerprint == fingerprint).unwrap();
    &offer.path.interfaces[assignment.unavoidable.without(&offer.path)]
}

fn allowed(assignment: &Assignment<u64>, one: Offered<u64>, other: Offered<u64>) -> bool {
    let others = assignment.allowed.get(&one);
    others.is_some_and(|others| others.contains(&other))
}

fn shared(assignment: &Assignment<u64>, one: Offered<u64>, other: Offered<u64>) -> Vec<Interface> {
    let theirs = counted(assignment, other);
    let ours = counted(assignment, one).iter().copied();
    ours.filter(|interface| theirs.contains(interface))
        .collect()
}

proptest! {
    #[test]
    fn paths_in_use_share_nothing_unless_allowed(steps in steps()) {
        let assignment = after(&steps);
        let used = assignment.in_use();
        for (at, &one) in used.iter().enumerate() {
            for &other in used.iter().skip(at + 1) {
                let shared = shared(&assignment, one, other);
                prop_assert!(shared.is_empty() || allowed(&assignment, one, other), "{:?}", shared);
            }
        }
        for (peer, it) in &assignment.peers {
            let assigned: BTreeSet<_> = assignment.assigned(*peer).into_iter().collect();
            prop_assert!(assigned.len() <= it.most);
            let full = assigned.len() == it.most;
            for offer in it.offers.iter().filter(|one| !full && !assigned.contains(&one.fingerprint)) {
                let one = (*peer, offer.fingerprint);
                let in_the_way = |other: &Offered<u64>| {
                    !shared(&assignment, one, *other).is_empty() && !allowed(&assignment, one, *other)
                };
                prop_assert!(used.iter().any(in_the_way), "left although nothing is in the way");
            }
        }
    }

    #[test]
    fn every_reason_is_true(steps in steps()) {
        let assignment = after(&steps);
        let used = assignment.in_use();
        for (peer, it) in &assignment.peers {
            let decisions = assignment.decisions(*peer);
            let offered: Vec<_> = it.offers.iter().map(|one| one.fingerprint).collect();
            let decided: Vec<_> = decisions.iter().map(|one| one.0).collect();
            prop_assert_eq!(decided, offered);
            for (fingerprint, decision) in decisions {
                let one = (*peer, fingerprint);
                let beside: Vec<_> = used
                    .iter()
                    .filter(|other| **other != one && !shared(&assignment, one, **other).is_empty())
                    .collect();
                prop_assert_eq!(decision.verdict == Verdict::Taken, used.contains(&one));
                prop_assert!(!decision.reason.to_string().is_empty());
                let share = assignment.assigned(*peer).len();
                match (decision.verdict, decision.reason) {
                    (Verdict::Taken, Reason::Apart { but_unavoidable }) => {
                        prop_assert!(beside.is_empty());
                        let offer = it.offers.iter().find(|offer| offer.fingerprint == fingerprint);
                        let whole = offer.unwrap().path.interfaces.len();
                        prop_assert_eq!(but_unavoidable, counted(&assignment, one).len() < whole);
                    }
                    (Verdict::Taken, Reason::SharesAtNoCost(overlap)) => {
                        let other = (overlap.peer.parse().unwrap(), overlap.with);
                        prop_assert!(beside.contains(&&other) && allowed(&assignment, one, other));
                        prop_assert_eq!(overlap.interface, shared(&assignment, one, other)[0]);
                    }
                    (Verdict::Left, Reason::SharesWithPeer(overlap)) => {
                        let other = (overlap.peer.parse().unwrap(), overlap.with);
                        prop_assert!(beside.contains(&&other) && !allowed(&assignment, one, other));
                        prop_assert_eq!(overlap.interface, shared(&assignment, one, other)[0]);
                    }
                    (Verdict::Left, Reason::PeerLimit { peer: owner, max }) => {
                        prop_assert_eq!(owner, peer.to_string());
                        prop_assert_eq!((share, max), (it.most, it.most));
                    }
                    (Verdict::Waiting, Reason::NextTurn) => prop_assert_eq!(share, 0),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
    }

    #[test]
    fn changes_are_exactly_the_differences(steps in steps()) {
        let mut assignment = Assignment::new();
        let mut followed = BTreeSet::new();
        for step in &steps {
            for change in take(&mut assignment, step) {
                let path = (change.peer, change.path);
                let new = match change.decision.verdict {
                    Verdict::Taken => followed.insert(path),
                    _ => followed.remove(&path),
                };
                prop_assert!(new);
            }
            prop_assert_eq!(&followed, &assignment.in_use());
        }
    }

    #[test]
    fn the_same_calls_have_the_same_outcome(steps in steps()) {
        let (mut one, mut other) = (Assignment::new(), Assignment::new());
        for step in &steps {
            prop_assert_eq!(take(&mut one, step), take(&mut other, step));
        }
        for peer in 1..=PEERS {
            prop_assert_eq!(one.decisions(peer), other.decisions(peer));
        }
    }

    // A new search that does not know which peers are stuck finds no further chain.
    #[test]
    fn nothing_is_left_to_even_out(steps in steps()) {
        let mut assignment = Assignment::new();
        for step in &steps {
            take(&mut assignment, step);
            let table = &assignment.table;
            let mut again = table.clone();
            let (mut stuck, mut budget) = (Stuck::default(), chain::Budget::default());
            chain::even_out(&mut again, &table.in_order(), &mut stuck, &mut budget);
            prop_assert_eq!(&again.taken, &table.taken);
        }
    }

    // No path can be given to a peer without leaving a peer that gives one up for it with fewer
    // than the first then has. In particular, no peer waits for a path that others could give up.
    #[test]
    fn no_path_could_move_to_a_peer_with_fewer_paths(steps in steps()) {
        let assignment = after(&steps);
        let table = &assignment.table;
        for seat in table.seats.iter().filter(|seat| seat.count < seat.most) {
            for item in seat.items.clone().filter(|item| !table.taken[*item]) {
                let mut left: Vec<_> = table.seats.iter().map(|seat| seat.count).collect();
                let blockers = table.blockers(item);
                let owners = || blockers.iter().map(|one| table.items[*one].seat);
                owners().for_each(|owner| left[owner] -= 1);
                prop_assert!(owners().any(|owner| left[owner] <= seat.count), "{:?}", blockers);
            }
        }
    }

    #[test]
    fn setting_the_same_paths_again_changes_nothing(steps in steps()) {
        let mut assignment = after(&steps);
        for (peer, it) in assignment.peers.clone() {
            let paths = it.offers.into_iter().map(|offer| offer.path).collect();
            prop_assert_eq!(assignment.set_peer(peer, paths, it.most), []);
        }
    }

    #[test]
    fn a_leaving_peer_costs_others_a_path_only_to_even_out(steps in steps(), peer in 1..=PEERS) {
        let mut assignment = after(&steps);
        let mut before = shares(&assignment);
        before.remove(&peer);
        let changes = assignment.remove_peer(peer);
        let now = shares(&assignment);
        let sorted = |shares: &Shares| {
            let mut shares: Vec<_> = shares.values().copied().collect();
            shares.sort_unstable();
            shares
        };
        if changes.iter().any(|change| change.peer != peer) {
            prop_assert!(sorted(&now) > sorted(&before), "{:?} {:?}", before, now);
        }
        prop_assert!(before.iter().all(|(peer, had)| *had == 0 || now[peer] > 0));
    }

    #[test]
    fn a_joining_peer_makes_no_other_wait(steps in steps(), links in links(), most in 1..4usize) {
        let mut assignment = after(&steps);
        let before = assignment.clone();
        let newcomer = PEERS + 2;
        let changes = assignment.set_peer(newcomer, paths(newcomer, &links), most);
        // Unless a link counts that did not before, because there is another beside it.
        let offers = before.peers.values().flat_map(|it| &it.offers);
        let count = |it: &Assignment<u64>, offer: &Offer| it.unavoidable.without(&offer.path);
        if offers.clone().any(|offer| count(&before, offer) != count(&assignment, offer)) {
            return Ok(());
        }
        for (peer, had) in shares(&before) {
            prop_assert!(had == 0 || !assignment.assigned(peer).is_empty());
        }
        if assignment.assigned(newcomer).is_empty() {
            prop_assert_eq!(changes, []);
        }
    }

    #[test]
    fn the_longest_waiting_peer_always_gets_its_turn(steps in steps()) {
        let mut assignment = after(&steps);
        let peers = assignment.peers.len();
        let mut waiting = waiting(&assignment);
        for _ in 0..peers {
            let since = |peer: &&u64| {
                let it = &assignment.peers[*peer];
                (it.since, it.joined)
            };
            let first = self::waiting(&assignment).iter().min_by_key(since).copied();
            assignment.turn();
            prop_assert!(first.is_none_or(|peer| !assignment.assigned(peer).is_empty()));
            waiting.retain(|peer| assignment.assigned(*peer).is_empty());
        }
        prop_assert_eq!(waiting, BTreeSet::new());
    }
}
