//! Pieces of torrents of version 2 that have the wrong hash with blocks of several peers, while peers are
//! asked for the hashes of their blocks (BEP 52).
//!
//! Events in, steps out; no I/O, no clock. The hashes are proven by the hash of the piece, so the peer that sends
//! them cannot accuse others: false ones show the peer that sent them. With the true ones, the wrong blocks
//! are known and their senders with them, and all other blocks are kept. A large piece has more blocks than a
//! request may name: its hashes come in parts, each proven alone and asked for alone, of any peers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::blame::Evidence;
use crate::merkle::Hash;
use crate::picker::{ConnId, GroupId};
use crate::wire::HashRequest;

/// Time after which another peer is asked for a part. A late answer is still taken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How much longer a peer has for each part of a piece after the first: it reads the whole piece.
const PER_MORE_PART: Duration = Duration::from_secs(2);

/// For how many times as long as an answer is awaited a piece is held: then it is fetched again as a whole.
const MAX_WAITS: u32 = 4;

/// Most peers that are asked for the same hashes at a time: one of them may be silent.
const MAX_ASKED: usize = 2;

/// Most pieces that are held at a time. The hashes of the blocks of a piece have 256 KiB at most.
const MAX_HELD: usize = 16;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Request a part of the hashes of the blocks of a piece of a peer.
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
    liars: BTreeSet<ConnId>,
    /// How many requests in a row a peer has left unanswered: those that answer are asked first.
    failures: BTreeMap<ConnId, u32>,
}

#[derive(Debug)]
struct Held {
    evidence: Evidence,
    /// The hashes of the blocks, in order.
    parts: Vec<Part>,
    /// The hash of the piece, to which each part leads.
    expected: Hash,
    /// How long an answer is awaited.
    patience: Duration,
    until: Instant,
}

/// The hashes of adjacent blocks, as many as one request may name.
#[derive(Debug)]
struct Part {
    request: HashRequest,
    /// The peers that are asked, and until when each is awaited.
    asked: BTreeMap<ConnId, Instant>,
    /// Those that were asked.
    tried: BTreeSet<ConnId>,
    /// The hashes, once they are there.
    right: Option<Vec<Hash>>,
}

impl Part {
    fn new(request: HashRequest) -> Self {
        Self {
            request,
            asked: BTreeMap::new(),
            tried: BTreeSet::new(),
            right: None,
        }
    }

    /// No longer awaits peers that are late. Returns them.
    fn expire(&mut self, now: Instant) -> Vec<ConnId> {
        let mut late = Vec::new();
        self.asked.retain(|conn, until| {
            let is_awaited = *until > now;
            if !is_awaited {
                late.push(*conn);
            }
            is_awaited
        });
        late
    }

    /// Whether another peer may be asked for it.
    fn has_room(&self) -> bool {
        self.right.is_none() && self.asked.len() < MAX_ASKED
    }

    /// Asks the first of `able` that were not asked, and awaits each `until`. Returns what to send.
    fn ask(&mut self, able: &[ConnId], until: Instant) -> Vec<Step> {
        let room = MAX_ASKED.saturating_sub(self.asked.len());
        let untried = able.iter().filter(|conn| !self.tried.contains(conn));
        let chosen: Vec<ConnId> = untried.take(room).copied().collect();
        self.tried.extend(&chosen);
        self.asked.extend(chosen.iter().map(|conn| (*conn, until)));
        let steps = chosen.iter().map(|conn| Step::Ask(*conn, self.request));
        steps.collect()
    }
}

impl Held {
    /// The hashes of all blocks, once all parts are there.
    fn right(&self) -> Option<Vec<Hash>> {
        let parts = self.parts.iter().map(|part| part.right.as_deref());
        let parts: Option<Vec<&[Hash]>> = parts.collect();
        parts.map(|parts| parts.concat())
    }
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

    /// Holds a piece with the wrong hash, of which `requests` name the hashes of its blocks in order.
    pub fn hold(
        &mut self,
        piece: u32,
        evidence: Evidence,
        (requests, expected): (Vec<HashRequest>, Hash),
        now: Instant,
    ) {
        let more = u32::try_from(requests.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let patience = ANSWER_TIMEOUT + PER_MORE_PART * more;
        let held = Held {
            evidence,
            parts: requests.into_iter().map(Part::new).collect(),
            expected,
            patience,
            until: now + patience * MAX_WAITS,
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
        for held in self.pieces.values_mut() {
            let mut parts = held.parts.iter_mut();
            let part = parts.find(|part| part.request == *request && part.tried.contains(&conn));
            let Some(part) = part else {
                continue;
            };
            part.asked.remove(&conn);
            self.failures.remove(&conn);
            if request.range.root(hashes) != Some(held.expected) {
                self.liars.insert(conn);
            } else if part.right.is_none() {
                // The proof is behind the hashes of the blocks.
                let blocks = hashes.iter().take(request.range.length as usize);
                part.right = Some(blocks.copied().collect());
                part.asked.clear();
            }
        }
    }

    /// A peer does not send what it was asked for.
    pub fn on_reject(&mut self, conn: ConnId, request: &HashRequest) {
        let parts = self.pieces.values_mut().flat_map(|held| &mut held.parts);
        for part in parts.filter(|part| part.request == *request) {
            if part.asked.remove(&conn).is_some() {
                *self.failures.entry(conn).or_default() += 1;
            }
        }
    }

    /// A peer has left.
    pub fn on_gone(&mut self, conn: ConnId) {
        for part in self.pieces.values_mut().flat_map(|held| &mut held.parts) {
            part.asked.remove(&conn);
        }
        self.failures.remove(&conn);
    }

    /// What is to be done now; `can_answer` says which peers may have the hashes of a piece.
    pub fn advance(&mut self, now: Instant, can_answer: impl Fn(u32) -> Vec<ConnId>) -> Vec<Step> {
        let liars = std::mem::take(&mut self.liars);
        let mut steps: Vec<Step> = liars.into_iter().map(Step::Ban).collect();
        let mut decided = Vec::new();
        for (piece, held) in &mut self.pieces {
            if let Some(right) = held.right() {
                // Else the disk computes the hashes of the wrong copy.
                if held.evidence.digests.is_some() {
                    steps.push(decide(&held.evidence, *piece, &right));
                    decided.push(*piece);
                }
                continue;
            }
            for conn in held.parts.iter_mut().flat_map(|part| part.expire(now)) {
                *self.failures.entry(conn).or_default() += 1;
            }
            if held.parts.iter().any(Part::has_room) && now < held.until {
                let mut able = can_answer(*piece);
                able.sort_by_key(|conn| self.failures.get(conn).copied());
                for part in held.parts.iter_mut().filter(|part| part.has_room()) {
                    steps.extend(part.ask(&able, now + held.patience));
                }
            }
            let mut parts = held.parts.iter();
            let is_stuck = parts.any(|part| part.right.is_none() && part.asked.is_empty());
            if is_stuck || now >= held.until {
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
