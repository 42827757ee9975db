//! Giving out paths although they share interfaces with others given out, where that costs those
//! nothing (001, section VIII).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_path::{Decision, Fingerprint, Sense, SenseAction, SenseOptions, Verdict};

use super::{Swarm, Who};
use crate::transport::{Connection, Transport};

/// How long the rates are measured that are compared.
const SLOT: Duration = Duration::from_secs(1);

/// A path to a peer.
type Given = (Who, Fingerprint);

/// What is tried, and what was found.
pub(super) struct Sensing {
    sense: Sense<Given>,
    /// The paths beside which each that is tried or kept may be used.
    beside: BTreeMap<Given, Vec<Given>>,
    found: BTreeMap<Given, Decision>,
    /// Bytes sent over each connection in use when last looked, and when that was.
    marks: BTreeMap<Given, u64>,
    looked_at: Instant,
}

impl Sensing {
    pub fn new(now: Instant) -> Sensing {
        Sensing {
            sense: Sense::new(SenseOptions::default()),
            beside: BTreeMap::new(),
            found: BTreeMap::new(),
            marks: BTreeMap::new(),
            looked_at: now,
        }
    }

    /// The path to a peer over which nothing is sent for some slots.
    pub fn paused(&self, who: Who) -> Option<Fingerprint> {
        let (peer, path) = self.sense.paused()?;
        (peer == who).then_some(path)
    }

    /// What was found out about a path, where that is why it is used or not.
    pub fn decision(&self, given: Given, shared_out: &Decision) -> Option<Decision> {
        let found = self.found.get(&given)?;
        let used = |decision: &Decision| decision.verdict == Verdict::Taken;
        let holds = match found.verdict {
            Verdict::Waiting => used(shared_out),
            _ => used(found) == used(shared_out),
        };
        holds.then(|| found.clone())
    }
}

impl<T: Transport> Swarm<T> {
    /// Ends a slot if it is over, and tries a path more, keeps it or gives it up.
    pub(super) fn sense_uploads(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.uploads.sensing.looked_at);
        if !self.goal.weights.sensing || elapsed < SLOT {
            return;
        }
        let sent = self.sent();
        let sensing = &mut self.uploads.sensing;
        sensing.looked_at = now;
        let before = std::mem::replace(&mut sensing.marks, sent);
        let rate = |(given, sent): (&Given, &u64)| {
            let bytes = sent.checked_sub(*before.get(given)?)?;
            Some((*given, bytes as f64 * 8.0 / elapsed.as_secs_f64()))
        };
        let rates: BTreeMap<Given, f64> = sensing.marks.iter().filter_map(rate).collect();
        let candidates = self.candidates();
        let sensing = &mut self.uploads.sensing;
        let actions = sensing.sense.tick(now, &rates, &candidates, true);
        for action in actions {
            self.act(action);
        }
        let sensing = &mut self.uploads.sensing;
        let used: BTreeSet<Given> = sensing.sense.used();
        let paused = sensing.sense.paused();
        // Sensing forgets without a word what is no longer on offer.
        let ended = |given: &&Given| !used.contains(given) && paused != Some(**given);
        let ended: Vec<Given> = sensing.beside.keys().filter(ended).copied().collect();
        ended.into_iter().for_each(|given| self.forbid(given));
        let peers = &self.uploads.peers;
        let known = |(who, path): &Given| {
            let peer = peers.get(&who.group);
            peer.is_some_and(|(peer, _)| peer.ways.contains_key(path))
        };
        self.uploads.sensing.found.retain(|given, _| known(given));
    }

    fn act(&mut self, action: SenseAction<Given>) {
        let (given, decision) = match action {
            SenseAction::Try(given, why) => {
                let (who, path) = given;
                let beside = self.uploads.assignment.sharing(who, path);
                for other in &beside {
                    self.uploads.assignment.allow(given, *other);
                }
                self.uploads.sensing.beside.insert(given, beside);
                (given, Decision::taken(why))
            }
            SenseAction::Keep(given, why) => (given, Decision::taken(why)),
            SenseAction::Pause(given, why) => (given, Decision::waiting(why)),
            SenseAction::Drop(given, why) => {
                self.forbid(given);
                (given, Decision::left(why))
            }
            _ => return,
        };
        let (who, path) = given;
        tracing::debug!(peer = %who, %path, %decision, "sensed");
        self.uploads.sensing.found.insert(given, decision);
    }

    /// A path may no longer be used beside those with which it shares.
    fn forbid(&mut self, given: Given) {
        let beside = self.uploads.sensing.beside.remove(&given);
        for other in beside.unwrap_or_default() {
            self.uploads.assignment.forbid(given, other);
        }
    }

    /// Bytes sent so far over each path in use that the peer may ask for blocks over.
    fn sent(&self) -> BTreeMap<Given, u64> {
        let mut sent = BTreeMap::new();
        for conn in self.conns.values().filter(|conn| !conn.terms.choked) {
            if let Some(who) = self.uploads.who(conn.group) {
                let uploaded = conn.counts.uploaded.load(Ordering::Relaxed);
                sent.insert((who, conn.connection.fingerprint()), uploaded);
            }
        }
        sent
    }

    /// The paths that are left for others, and those used all the same: to those who have the
    /// fewest first, each with the paths that it shares interfaces with.
    fn candidates(&self) -> Vec<(Given, Vec<Given>)> {
        let uploads = &self.uploads;
        let mut candidates = Vec::new();
        for group in uploads.peers.keys() {
            let (Some(who), Some((peer, _))) = (uploads.who(*group), uploads.peers.get(group))
            else {
                continue;
            };
            let used = uploads.assignment.assigned(who);
            let room = used.len() < peer.most;
            for (rank, (path, _)) in uploads.assignment.decisions(who).into_iter().enumerate() {
                let given = (who, path);
                let kept = uploads.sensing.beside.contains_key(&given);
                if kept || (room && !used.contains(&path)) {
                    let with = uploads.assignment.sharing(who, path);
                    candidates.push((used.len(), rank, (given, with)));
                }
            }
        }
        candidates.sort_by_key(|(count, rank, (given, _))| (*count, *rank, *given));
        let named = candidates.into_iter().map(|(_, _, candidate)| candidate);
        named.collect()
    }
}
