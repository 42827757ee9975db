//! Pieces of torrents of version 2 that have the wrong hash with blocks of several peers, while peers are
//! asked for the hashes of their blocks (BEP 52).
//!
//! Events in, steps out; no I/O, no clock. The hashes are proven by the hash of the piece, so the peer that sends
//! them cannot accuse others: false ones show the peer that sent them. With the true ones, the wrong blocks
//! are known and their senders with them, and all other blocks are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::blame::Evidence;
use crate::merkle::Hash;
use crate::picker::{ConnId, GroupId};
use crate::wire::HashRequest;

/// Time after which another peer is asked. A late answer is still taken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time for which a piece is held: then it is fetched again as a whole.
const MAX_HELD_FOR: Duration = Duration::from_secs(20);

/// Most peers that are asked for the same hashes at a time: one of them may be silent.
const MAX_ASKED: usize = 2;

/// Most pieces that are held at a time.
const MAX_HELD: usize = 16;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Request the hashes of the blocks of a piece of a peer.
    Ask(ConnId, HashRequest),
    /// Drop a peer: it sent hashes that do not lead to the hash of the piece.
    Ban(ConnId),
    /// These blocks of a piece are wrong, and these peers sent them; the others are right.
    Refetch {
        piece: u32,
        blocks: Vec<u32>,
        senders: Vec<GroupId>,
    },
    /// No peer has sent the hashes: fetch the whole piece again.
    GiveUp(u32, Evidence),
}

/// The pieces that are held.
#[derive(Debug, Default)]
pub(super) struct HeldPieces {
    pieces: BTreeMap<u32, Held>,
    /// Peers that sent false hashes.
    liars: Vec<ConnId>,
    /// How many requests in a row a peer has left unanswered: those that answer are asked first.
    failures: BTreeMap<ConnId, u32>,
}

#[derive(Debug)]
struct Held {
    evidence: Evidence,
    request: HashRequest,
    /// The hash of the piece, to which those of its blocks lead.
    expected: Hash,
    /// The peers that are asked, and until when each is awaited.
    asked: BTreeMap<ConnId, Instant>,
    /// Those that were asked.
    tried: BTreeSet<ConnId>,
    /// The hashes of the blocks, once they are there.
    right: Option<Vec<Hash>>,
    until: Instant,
}

impl HeldPieces {
    /// Whether another piece can be held.
    pub fn has_room(&self) -> bool {
        self.pieces.len() < MAX_HELD
    }

    /// Whether no piece is held.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.liars.is_empty()
    }

    /// Holds a piece with the wrong hash, of which `request` names the hashes of its blocks.
    pub fn hold(
        &mut self,
        piece: u32,
        evidence: Evidence,
        (request, expected): (HashRequest, Hash),
        now: Instant,
    ) {
        let held = Held {
            evidence,
            request,
            expected,
            asked: BTreeMap::new(),
            tried: BTreeSet::new(),
            right: None,
            until: now + MAX_HELD_FOR,
        };
        self.pieces.insert(piece, held);
    }

    /// The hashes of the blocks of the wrong copy are computed. Returns whether the piece is held.
    pub fn on_digests(&mut self, piece: u32, digests: &[Hash]) -> bool {
        let held = self.pieces.get_mut(&piece);
        held.map(|held| held.evidence.digests = Some(digests.to_vec()))
            .is_some()
    }

    /// A peer has sent hashes. What was not requested changes nothing.
    pub fn on_hashes(&mut self, conn: ConnId, request: &HashRequest, hashes: &[Hash]) {
        let mut held = self.pieces.values_mut();
        let held = held.find(|held| held.request == *request && held.tried.contains(&conn));
        let Some(held) = held else {
            return;
        };
        held.asked.remove(&conn);
        self.failures.remove(&conn);
        match request.range.root(hashes) == Some(held.expected) {
            true => held.right = Some(hashes.to_vec()),
            false => self.liars.push(conn),
        }
    }

    /// A peer does not send what it was asked for.
    pub fn on_reject(&mut self, conn: ConnId, request: &HashRequest) {
        let asked = self.pieces.values_mut();
        for held in asked.filter(|held| held.request == *request) {
            if held.asked.remove(&conn).is_some() {
                *self.failures.entry(conn).or_default() += 1;
            }
        }
    }

    /// A peer has left.
    pub fn on_gone(&mut self, conn: ConnId) {
        for held in self.pieces.values_mut() {
            held.asked.remove(&conn);
        }
        self.failures.remove(&conn);
    }

    /// What is to be done now; `can_answer` says which peers may have the hashes of a piece.
    pub fn advance(&mut self, now: Instant, can_answer: impl Fn(u32) -> Vec<ConnId>) -> Vec<Step> {
        let mut steps: Vec<Step> = self.liars.drain(..).map(Step::Ban).collect();
        let mut decided = Vec::new();
        for (piece, held) in &mut self.pieces {
            if let (Some(right), Some(_)) = (&held.right, &held.evidence.digests) {
                steps.push(decide(&held.evidence, *piece, right));
                decided.push(*piece);
                continue;
            }
            if held.right.is_some() {
                // The disk computes the hashes of the wrong copy.
                continue;
            }
            held.asked.retain(|conn, until| {
                let is_late = *until <= now;
                if is_late {
                    *self.failures.entry(*conn).or_default() += 1;
                }
                !is_late
            });
            if held.asked.len() < MAX_ASKED && now < held.until {
                let untried = can_answer(*piece).into_iter();
                let untried = untried.filter(|conn| !held.tried.contains(conn));
                let mut untried: Vec<ConnId> = untried.collect();
                untried.sort_by_key(|conn| self.failures.get(conn).copied());
                for conn in untried.into_iter().take(MAX_ASKED - held.asked.len()) {
                    held.tried.insert(conn);
                    held.asked.insert(conn, now + ANSWER_TIMEOUT);
                    steps.push(Step::Ask(conn, held.request));
                }
            }
            if held.asked.is_empty() || now >= held.until {
                let evidence = std::mem::take(&mut held.evidence);
                steps.push(Step::GiveUp(*piece, evidence));
                decided.push(*piece);
            }
        }
        decided
            .iter()
            .for_each(|piece| drop(self.pieces.remove(piece)));
        steps
    }
}

/// What follows from the hashes of the right blocks of a piece.
fn decide(evidence: &Evidence, piece: u32, right: &[Hash]) -> Step {
    let blocks: Vec<u32> = evidence.wrong(right).map(|block| block as u32).collect();
    let is_sent = |block: &u32| matches!(evidence.senders.get(*block as usize), Some(Some(_)));
    // The two hashes of a hybrid may contradict each other.
    if blocks.is_empty() || !blocks.iter().all(is_sent) {
        return Step::GiveUp(piece, evidence.clone());
    }
    Step::Refetch {
        piece,
        blocks,
        senders: evidence.guilty(right),
    }
}

#[cfg(test)]
mod tests;
