//! An assignment that lets paths share interfaces if that costs nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use super::assignment::{Assignment, Change, Offered};
use crate::{Decision, Fingerprint, Path, Sense, SenseOptions, Verdict};

/// Most paths that are considered for a trial at a time; more would not be tried for minutes.
const MAX_CONSIDERED: usize = 256;

/// An [`Assignment`] whose paths are tried, one at a time, beside others with which they share
/// interfaces, and stay in use while those lose nothing ([`Sense`]; 001, section VIII).
#[derive(Debug)]
pub struct SensingAssignment<K> {
    assignment: Assignment<K>,
    sense: Option<Sense<Offered<K>>>,
    /// The paths beside which each path on trial, or kept, may be used.
    beside: BTreeMap<Offered<K>, Vec<Offered<K>>>,
    /// The decisions of trials.
    found: BTreeMap<Offered<K>, Decision>,
}

impl<K: Copy + Ord + fmt::Display> SensingAssignment<K> {
    /// An assignment without peers. With `None`, nothing is tried.
    pub fn new(sensing: Option<SenseOptions>) -> Self {
        Self {
            assignment: Assignment::new(),
            sense: sensing.map(Sense::new),
            beside: BTreeMap::new(),
            found: BTreeMap::new(),
        }
    }

    /// As [`Assignment::set_peer`].
    pub fn set_peer(&mut self, peer: K, paths: Vec<Path>, most: usize) -> Vec<Change<K>> {
        let changes = self.assignment.set_peer(peer, paths, most);
        self.forget();
        changes
    }

    /// As [`Assignment::remove_peer`].
    pub fn remove_peer(&mut self, peer: K) -> Vec<Change<K>> {
        let changes = self.assignment.remove_peer(peer);
        self.forget();
        changes
    }

    /// As [`Assignment::turn`].
    pub fn turn(&mut self) -> Vec<Change<K>> {
        self.assignment.turn()
    }

    /// Ends a time slot, a second for example: tries one more path, keeps it or gives it up.
    ///
    /// `rates` has the rate of each path in use during the slot, in bit/s; paths that were not used
    /// for the whole slot must be left out.
    pub fn slot(
        &mut self,
        rates: &BTreeMap<(K, Fingerprint), f64>,
        now: Instant,
    ) -> Vec<Change<K>> {
        let Some(mut sense) = self.sense.take() else {
            return Vec::new();
        };
        let action = sense.tick(now, rates, &self.candidates(), true);
        let (used, paused) = (sense.used(), sense.paused());
        self.sense = Some(sense);
        let mut changes = Vec::new();
        if let Some((given, decision)) = action {
            self.act(given, decision, &mut changes);
        }
        // Sensing forgets paths that are no longer offered, without an action.
        let ended = |given: &&Offered<K>| !used.contains(given) && paused != Some(**given);
        let ended: Vec<Offered<K>> = self.beside.keys().filter(ended).copied().collect();
        for given in ended {
            changes.extend(self.forbid(given));
        }
        changes
    }

    /// The paths that a peer uses, best first, without one that is paused.
    pub fn assigned(&self, peer: K) -> Vec<Fingerprint> {
        let mut assigned = self.assignment.assigned(peer);
        if let Some((_, path)) = self.paused().filter(|(whose, _)| *whose == peer) {
            assigned.retain(|one| *one != path);
        }
        assigned
    }

    /// The decision about one of a peer's paths; `None` for one that is not offered.
    pub fn decision(&self, peer: K, path: Fingerprint) -> Option<Decision> {
        let assigned = self.assignment.decision(peer, path)?;
        match self.found.get(&(peer, path)) {
            Some(found) if holds(found, &assigned) => Some(found.clone()),
            _ => Some(assigned),
        }
    }

    /// The path that is paused for some slots, while sensing checks it; `None` if there is none.
    pub fn paused(&self) -> Option<Offered<K>> {
        self.sense.as_ref()?.paused()
    }

    fn act(&mut self, given: Offered<K>, decision: Decision, changes: &mut Vec<Change<K>>) {
        let before = changes.len();
        match decision.verdict {
            Verdict::Taken if !self.beside.contains_key(&given) => {
                let beside = self.assignment.sharing(given.0, given.1);
                for other in &beside {
                    changes.extend(self.assignment.allow(given, *other));
                }
                self.beside.insert(given, beside);
            }
            Verdict::Taken | Verdict::Waiting => {}
            Verdict::Left => changes.extend(self.forbid(given)),
        }
        let ((peer, path), verdict) = (given, decision.verdict);
        // The decision of the trial is the reason, even if the assignment has another.
        for change in &mut changes[before..] {
            let same = (change.peer, change.path) == given;
            if same && holds(&decision, &change.decision) {
                change.decision = decision.clone();
            }
        }
        let reported = changes[before..].iter();
        let mut reported = reported.map(|change| (change.peer, change.path));
        let assigned = || self.assignment.assigned(peer).contains(&path);
        // A path given up but still assigned conflicts with no path any more.
        if verdict != Verdict::Left && !reported.any(|one| one == given) && assigned() {
            changes.push(Change {
                peer,
                path,
                decision: decision.clone(),
            });
        }
        self.found.insert(given, decision);
    }

    /// Forbids to use a path beside those that it shares interfaces with.
    fn forbid(&mut self, given: Offered<K>) -> Vec<Change<K>> {
        let beside = self.beside.remove(&given).unwrap_or_default();
        let mut changes = Vec::new();
        for other in beside {
            changes.extend(self.assignment.forbid(given, other));
        }
        changes
    }

    /// Forgets the decisions about paths that are no longer offered.
    fn forget(&mut self) {
        let assignment = &self.assignment;
        self.found.retain(|given, _| assignment.offers(*given));
    }

    /// The paths left because they conflict with others, and those used in spite of that, each with
    /// the paths it shares interfaces with: peers with the fewest paths first.
    fn candidates(&self) -> Vec<(Offered<K>, Vec<Offered<K>>)> {
        let mut open = Vec::new();
        for (key, peer) in &self.assignment.peers {
            let count = peer.offers.iter().filter(|offer| offer.taken).count();
            for (rank, offer) in peer.offers.iter().enumerate() {
                let given = (*key, offer.fingerprint);
                let tried = self.beside.contains_key(&given);
                if tried || (count < peer.most && !offer.taken) {
                    open.push((!tried, count, rank, given));
                }
            }
        }
        open.sort_unstable();
        open.truncate(MAX_CONSIDERED);
        open.into_iter()
            .map(|(.., given)| (given, self.assignment.sharing(given.0, given.1)))
            .collect()
    }
}

/// Whether the decision of a trial still explains what the assignment decided.
fn holds(found: &Decision, assigned: &Decision) -> bool {
    let used = |decision: &Decision| decision.verdict == Verdict::Taken;
    match found.verdict {
        // A paused path stays assigned.
        Verdict::Waiting => used(assigned),
        _ => used(found) == used(assigned),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::path;
    use crate::{Reason, Sensed};

    /// Two peers over a common link of `link` Mbit/s, and a third over another link, so that the
    /// common one counts as shared.
    struct Scene {
        assignment: SensingAssignment<u8>,
        now: Instant,
        link: f64,
    }

    impl Scene {
        fn new(link: f64) -> Self {
            let mut assignment = SensingAssignment::new(Some(SenseOptions::default()));
            for (peer, via) in [(1, 1), (2, 1), (3, 2)] {
                let text = format!("1 {via}>9 {} {peer}>1 {}", via + 1, peer + 10);
                assignment.set_peer(peer, vec![path(&text)], 4);
            }
            Self {
                assignment,
                now: Instant::now(),
                link,
            }
        }

        fn users(&self) -> Vec<u8> {
            let uses = |peer: &u8| !self.assignment.assigned(*peer).is_empty();
            [1, 2].into_iter().filter(uses).collect()
        }

        /// Each path alone carries 10 Mbit/s, both together no more than the link.
        fn slot(&mut self) -> Vec<Change<u8>> {
            self.now += Duration::from_secs(1);
            let users = self.users();
            let rate = 10f64.min(self.link / users.len() as f64) * 1e6;
            let mut rates = BTreeMap::new();
            for peer in users {
                rates.insert((peer, self.assignment.assigned(peer)[0]), rate);
            }
            self.assignment.slot(&rates, self.now)
        }

        fn reason(&self, peer: u8) -> (Verdict, Reason) {
            let (path, _) = self.assignment.assignment.decisions(peer).remove(0);
            let decision = self.assignment.decision(peer, path).unwrap();
            (decision.verdict, decision.reason)
        }
    }

    #[test]
    fn a_wide_link_carries_both_until_it_is_too_narrow() {
        let mut scene = Scene::new(20.0);
        assert_eq!(scene.users().len(), 1);
        let first = scene.users()[0];
        let second = 3 - first;
        assert_eq!(scene.reason(second), (Verdict::Waiting, Reason::NextTurn));
        (0..30).for_each(|_| drop(scene.slot()));
        assert_eq!(scene.users(), [1, 2]);
        let (verdict, reason) = scene.reason(second);
        assert_eq!(verdict, Verdict::Taken);
        assert!(
            matches!(reason, Reason::Sensed(Sensed::Gain { .. })),
            "{reason}"
        );
        scene.link = 10.0;
        let mut least = 2;
        (0..120).for_each(|_| {
            scene.slot();
            least = least.min(scene.users().len());
        });
        assert_eq!(least, 1, "{}", scene.reason(second).1);
    }

    #[test]
    fn a_bottleneck_stays_with_its_first_user_and_is_reported() {
        let mut scene = Scene::new(10.0);
        let first = scene.users();
        let mut tried = false;
        let mut last = Vec::new();
        (0..30).for_each(|_| {
            let changes = scene.slot();
            tried |= scene.users().len() == 2;
            if !changes.is_empty() {
                last = changes;
            }
        });
        assert!(tried);
        assert_eq!(scene.users(), first);
        let second = 3 - first[0];
        let (verdict, reason) = scene.reason(second);
        assert_ne!(verdict, Verdict::Taken);
        assert!(
            matches!(reason, Reason::Sensed(Sensed::Bottleneck { .. })),
            "{reason}"
        );
        let reported = last.iter().find(|change| change.peer == second).unwrap();
        assert_eq!(reported.decision.reason, reason);
    }

    #[test]
    fn without_options_nothing_is_tried() {
        let mut scene = Scene::new(20.0);
        scene.assignment.sense = None;
        (0..30).for_each(|_| assert_eq!(scene.slot(), []));
        assert_eq!(scene.users().len(), 1);
    }
}
