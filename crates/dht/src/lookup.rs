//! The way to a target: which node is asked next, and when the nearest ones have been found.
//!
//! The candidates are sorted by their distance. At each step the best ones are *selected*, and
//! those asked that have not been yet, [`PARALLEL`] at once; the lookup is done once all selected
//! ones have answered. A candidate whose answer is late is not selected, until it answers after
//! all.
//!
//! Selected are the [`K`] nearest, one of a network, and of those whose ids do not follow from
//! their addresses at most [`MAX_UNVERIFIED`] besides: nodes with chosen ids do not displace
//! the others. If these are fewer than `K`, others are selected too, and at last *doubtful* ones:
//! candidates nearer than plausible, nodes most of whose candidates failed, and candidates that
//! only such nodes named.

mod candidate;
#[cfg(test)]
mod tests;

pub(crate) use self::candidate::Via;
use self::candidate::{Candidate, State};
use crate::address::Address;
use crate::id::Id;
use crate::message::Node;
use crate::secure::Standing;
use crate::table::{K, MAX_UNVERIFIED};

/// Nodes asked at once (alpha of Kademlia), without those whose answers are late.
const PARALLEL: usize = 4;
/// Most nodes asked, so that each lookup ends.
const MAX_ASKED: usize = 128;
/// Most candidates kept.
const MAX_CANDIDATES: usize = 200;
/// How many bits more than expected a node may share with the target: one of 256 lookups meets such
/// a node by chance.
const PLAUSIBLE_EXTRA: u32 = 8;
/// How many candidates of a node may fail before it is doubted, beyond 2 for each that answered.
const FALSE_ALLOWANCE: u32 = 2;

/// A lookup of the nodes nearest to a target.
#[derive(Debug)]
pub(crate) struct Lookup<A> {
    target: Id,
    /// Sorted by distance.
    candidates: Vec<Candidate<A>>,
    /// What became of the candidates that each node named, by the number of the node.
    credits: Vec<Credit>,
    /// The numbers of the nodes that named false ones only, as bits.
    doubted: u128,
    /// How many bits a node may share with the target though its id does not follow from its
    /// address.
    plausible_bits: u32,
    asked: usize,
    answered: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Credit {
    answered: u32,
    failed: u32,
}

/// A node to be announced to: its address and token.
pub(crate) type Announcee<A> = (A, Vec<u8>);

impl<A: Address> Lookup<A> {
    /// A lookup in a DHT whose nodes share about `expected_bits` bits with the nearest id; `None`
    /// if that is not known.
    pub fn new(target: Id, expected_bits: Option<u32>) -> Self {
        let plausible = |bits: u32| (bits + PLAUSIBLE_EXTRA).min(Id::BITS);
        Self {
            target,
            candidates: Vec::new(),
            credits: Vec::new(),
            doubted: 0,
            plausible_bits: expected_bits.map_or(Id::BITS, plausible),
            asked: 0,
            answered: 0,
        }
    }

    /// The target.
    pub fn target(&self) -> Id {
        self.target
    }

    /// Number of nodes asked, and of those that answered.
    pub fn counts(&self) -> (usize, usize) {
        (self.asked, self.answered)
    }

    /// Adds a candidate; the id is not known where only an address was given.
    pub fn add(&mut self, id: Option<Id>, addr: A, via: Via) {
        let distance = id.map_or(Id::MAX, |id| id.distance(self.target));
        if let Some(at) = self.candidates.iter().position(|known| known.addr == addr) {
            let known = &mut self.candidates[at];
            known.named_by |= via.bits();
            known.is_own |= via == Via::Own;
            // Somebody may have named it with a false id, so that it is not asked.
            if known.state == State::New && distance < known.distance {
                let mut known = self.candidates.remove(at);
                known.set_id(id, self.target);
                self.insert(known);
            }
            return;
        }
        if self.candidates.len() >= MAX_CANDIDATES && !self.drop_worst(distance) {
            return;
        }
        let mut new = Candidate::new(addr, via);
        new.set_id(id, self.target);
        self.insert(new);
    }

    fn insert(&mut self, candidate: Candidate<A>) {
        let nearer = |known: &Candidate<A>| known.distance <= candidate.distance;
        let at = self.candidates.partition_point(nearer);
        self.candidates.insert(at, candidate);
    }

    /// Drops a candidate that was not asked: a doubtful one, or one farther away than `distance`.
    fn drop_worst(&mut self, distance: Id) -> bool {
        let new = |candidate: &Candidate<A>| candidate.state == State::New;
        let doubtful = |one: &Candidate<A>| new(one) && self.is_doubtful(one);
        let far = |one: &Candidate<A>| new(one) && one.distance > distance;
        let worst = self.candidates.iter().rposition(doubtful);
        let worst = worst.or_else(|| self.candidates.iter().rposition(far));
        worst.map(|at| self.candidates.remove(at)).is_some()
    }

    fn is_doubtful(&self, candidate: &Candidate<A>) -> bool {
        let implausible = candidate.standing != Some(Standing::Verified)
            && candidate.shared_bits() > self.plausible_bits;
        let doubted = match candidate.state {
            State::Answered { number, .. } => self.doubted & 1 << number != 0,
            _ => !candidate.is_own && candidate.named_by & !self.doubted == 0,
        };
        implausible || doubted
    }

    /// The candidates selected, the best first.
    fn selected(&self) -> Vec<usize> {
        let mut selected = Vec::with_capacity(K + MAX_UNVERIFIED);
        let mut networks = Vec::with_capacity(K + MAX_UNVERIFIED);
        let (mut surplus, mut doubtful) = (Vec::new(), Vec::new());
        let mut unverified = 0;
        for (at, candidate) in self.candidates.iter().enumerate() {
            if selected.len() - unverified == K {
                break;
            }
            if matches!(candidate.state, State::Late { .. } | State::Failed) {
                continue;
            }
            if self.is_doubtful(candidate) {
                doubtful.push(at);
                continue;
            }
            let network = candidate.addr.network();
            let is_unverified = candidate.standing == Some(Standing::Unverified);
            let too_many = is_unverified && unverified == MAX_UNVERIFIED;
            if too_many || networks.contains(&network) {
                surplus.push(at);
                continue;
            }
            unverified += usize::from(is_unverified);
            networks.push(network);
            selected.push(at);
        }
        let missing = K.saturating_sub(selected.len());
        let rest = surplus.into_iter().chain(doubtful);
        selected.extend(rest.take(missing));
        selected
    }

    /// The node to be asked next; it counts as asked.
    pub fn next(&mut self) -> Option<A> {
        let waiting = |candidate: &&Candidate<A>| matches!(candidate.state, State::Asked { .. });
        let waiting = self.candidates.iter().filter(waiting).count();
        if waiting >= PARALLEL || self.asked >= MAX_ASKED {
            return None;
        }
        let selected = self.selected();
        let new = |at: &usize| self.candidates[*at].state == State::New;
        let at = selected.into_iter().find(new)?;
        let candidate = &mut self.candidates[at];
        candidate.state = State::Asked {
            number: self.asked as u32,
        };
        self.asked += 1;
        self.credits.push(Credit::default());
        Some(candidate.addr)
    }

    fn position(&self, addr: A) -> Option<usize> {
        self.candidates.iter().position(|known| known.addr == addr)
    }

    /// An answer is late: others are asked in the meantime.
    pub fn stalled(&mut self, addr: A) {
        if let Some(at) = self.position(addr)
            && let State::Asked { number } = self.candidates[at].state
        {
            self.candidates[at].state = State::Late { number };
            self.credit(self.candidates[at].named_by, |credit| credit.failed += 1);
        }
    }

    /// A node has not answered, or with an error.
    pub fn failed(&mut self, addr: A) {
        let Some(at) = self.position(addr) else {
            return;
        };
        match self.candidates[at].state {
            State::Asked { .. } => {
                self.credit(self.candidates[at].named_by, |credit| credit.failed += 1);
            }
            State::Late { .. } => {}
            _ => return,
        }
        self.candidates[at].state = State::Failed;
    }

    /// A node has answered. `nodes` are those that it names.
    pub fn answered(&mut self, addr: A, id: Id, token: Option<Vec<u8>>, nodes: &[Node<A>]) {
        let Some(at) = self.position(addr) else {
            return;
        };
        let (number, late) = match self.candidates[at].state {
            State::Asked { number } => (number, false),
            State::Late { number } => (number, true),
            _ => return,
        };
        let mut candidate = self.candidates.remove(at);
        let as_named = candidate.id.is_none_or(|named| named == id);
        candidate.set_id(Some(id), self.target);
        candidate.state = State::Answered { number, token };
        self.answered += 1;
        self.credit(candidate.named_by, |credit| {
            credit.failed -= u32::from(late && credit.failed > 0);
            match as_named {
                true => credit.answered += 1,
                false => credit.failed += 1,
            }
        });
        if candidate.standing == Some(Standing::Verified) {
            let seen = (candidate.shared_bits() + PLAUSIBLE_EXTRA).min(Id::BITS);
            self.plausible_bits = self.plausible_bits.max(seen);
        }
        let via = Via::Node {
            number,
            depth: candidate.depth,
        };
        let names_local = candidate.addr.is_local();
        self.insert(candidate);
        for (id, addr) in nodes.iter().take(K) {
            if addr.is_reachable() && (names_local || !addr.is_local()) {
                self.add(Some(*id), *addr, via);
            }
        }
    }

    /// Changes the credit of the nodes with these numbers.
    fn credit(&mut self, numbers: u128, change: impl Fn(&mut Credit)) {
        for (number, credit) in self.credits.iter_mut().enumerate() {
            let bit = 1 << number;
            if numbers & bit != 0 {
                change(credit);
                let doubted = credit.failed > 2 * credit.answered + FALSE_ALLOWANCE;
                self.doubted = if doubted {
                    self.doubted | bit
                } else {
                    self.doubted & !bit
                };
            }
        }
    }

    /// Whether the nearest nodes have been found, or nobody is left to be asked.
    pub fn is_done(&self) -> bool {
        let selected = self.selected();
        let state = |at: &usize| &self.candidates[*at].state;
        let answered = |at: &usize| matches!(state(at), State::Answered { .. });
        if selected.len() >= K && selected.iter().all(answered) {
            return true;
        }
        let at_limit = self.asked >= MAX_ASKED;
        let waits =
            |one: &Candidate<A>| matches!(one.state, State::Asked { .. } | State::Late { .. });
        let new = |at: &usize| *state(at) == State::New;
        !self.candidates.iter().any(waits) && (at_limit || !selected.iter().any(new))
    }

    /// The selected nodes that gave a token.
    pub fn announcees(&self) -> Vec<Announcee<A>> {
        let selected = self.selected().into_iter();
        let with_token = |at: usize| match &self.candidates[at] {
            Candidate {
                addr,
                state:
                    State::Answered {
                        token: Some(token), ..
                    },
                ..
            } => Some((*addr, token.clone())),
            _ => None,
        };
        selected.filter_map(with_token).collect()
    }

    /// Steps from the first candidates to the farthest of the selected ones, which are 1.
    pub fn hops(&self) -> u32 {
        let selected = self.selected().into_iter();
        selected
            .map(|at| self.candidates[at].depth)
            .max()
            .unwrap_or(0)
    }
}
