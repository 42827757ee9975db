//! Assembling the info dictionary from the answers of many peers.
//!
//! Only the whole can be verified, and peers announce its length without proof. So what they send is
//! collected by length, for [`MAX_CANDIDATES`] lengths at once; other lengths wait for their turn.
//!
//! # The life of a candidate
//!
//! 1. *Shared*: its pieces are requested from all peers that announced its length. A request that
//!    is not answered in time goes to another peer; the late answer still counts.
//! 2. *Complete*: if it has the info-hash, all is done. If not, and one peer sent all of it, that
//!    peer is banned. If several did, any of them may have sent something false.
//! 3. *Alone*: from then on peers are asked one by one, each for all pieces. Each either sends the
//!    right bytes or is banned; one that is slow loses its turn to the next, and gets a longer one
//!    later.
//!
//! At the end those are banned as well whose pieces differed in 2.
//!
//! Banned are peers that sent false bytes, and those whose answer contradicts the length that they
//! announced; not those that are slow, reject, leave, or announce a length that nobody else does.

mod candidate;
mod group;
mod peer;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use sha1::{Digest, Sha1};

use self::candidate::Candidate;
use self::group::{Alone, Group, turn};
pub use self::peer::ConnectionId;
use self::peer::Peer;
use super::message::MetadataMessage;
use super::{MAX_METADATA_BYTES, METADATA_PIECE};
use crate::hashes::{Comparison, InfoHashes};

/// Most lengths for which pieces are kept at once. With [`MAX_METADATA_BYTES`] it bounds the memory.
const MAX_CANDIDATES: usize = 2;

/// Most peers that are asked; further ones are ignored until some leave.
const MAX_PEERS: usize = 256;

/// Most pieces of candidates that came to nothing whose senders are remembered.
const MAX_SUSPECTS: usize = 4096;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a [`MetadataMessage::Request`].
    Ask {
        /// To this peer.
        peer: ConnectionId,
        /// For this piece.
        piece: u32,
    },
    /// Drop this peer, which may have left already: it sent something false.
    Ban(ConnectionId),
    /// This is the info dictionary, verified. Nothing follows.
    Done(Vec<u8>),
    /// The two hashes are not those of one info dictionary. Nothing follows.
    Contradiction,
}

/// A piece of a candidate that had not the info-hash.
#[derive(Debug)]
struct Suspect {
    peer: ConnectionId,
    /// The length of the candidate.
    size: usize,
    piece: u32,
    digest: [u8; 20],
}

/// Fetches an info dictionary of which only the hash is known.
///
/// Report events, then call [`Self::advance`] and do what it returns; call it again at
/// [`Self::next_due`].
#[derive(Debug)]
pub struct Fetch {
    hashes: InfoHashes,
    peers: BTreeMap<ConnectionId, Peer>,
    /// Connected peers that were banned.
    banned: BTreeSet<ConnectionId>,
    /// By the length that its peers announced; also lengths without peers while they are candidates.
    groups: BTreeMap<usize, Group>,
    candidates: Vec<Candidate>,
    /// The lengths that wait for their turn.
    waiting: VecDeque<usize>,
    suspects: VecDeque<Suspect>,
    outputs: Vec<Output>,
    is_over: bool,
}

impl Fetch {
    /// For the info dictionary with these hashes.
    pub fn new(hashes: InfoHashes) -> Self {
        Self {
            hashes,
            peers: BTreeMap::new(),
            banned: BTreeSet::new(),
            groups: BTreeMap::new(),
            candidates: Vec::new(),
            waiting: VecDeque::new(),
            suspects: VecDeque::new(),
            outputs: Vec::new(),
            is_over: false,
        }
    }

    /// A peer supports `ut_metadata` and announced the length of the info dictionary in bytes
    /// (`metadata_size`). One that has none, or one that is too long, is not asked.
    pub fn on_peer(&mut self, id: ConnectionId, metadata_size: u64) {
        let size = usize::try_from(metadata_size).unwrap_or(usize::MAX);
        if self.is_over || self.banned.contains(&id) {
            return;
        }
        if self.peers.get(&id).is_some_and(|peer| peer.size == size) {
            return;
        }
        self.remove(id);
        if size == 0 || size > MAX_METADATA_BYTES || self.peers.len() >= MAX_PEERS {
            return;
        }
        self.peers.insert(id, Peer::new(size));
        let is_new = !self.groups.contains_key(&size);
        self.groups.entry(size).or_default().peers.push_back(id);
        if is_new {
            self.waiting.push_back(size);
        }
    }

    /// A peer sent a message.
    pub fn on_message(&mut self, id: ConnectionId, message: MetadataMessage<'_>, now: Instant) {
        let (MetadataMessage::Data { piece, .. } | MetadataMessage::Reject { piece }) = message
        else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        if !peer.answer(piece) {
            return;
        }
        let size = peer.size;
        let candidate = self.candidates.iter_mut().find(|it| it.size == size);
        let MetadataMessage::Data { total, bytes, .. } = message else {
            peer.fail(now);
            if let Some(candidate) = candidate {
                candidate.release(piece, id);
            }
            return;
        };
        let has_length = bytes.len() == super::piece_length(size, piece);
        if !has_length || total.is_some_and(|total| total != size as u64) {
            return self.ban(id);
        }
        peer.succeed();
        let accepts = self
            .groups
            .get(&size)
            .is_some_and(|group| group.accepts(id));
        if let Some(candidate) = candidate.filter(|_| accepts) {
            candidate.receive(piece, bytes, id);
            if candidate.is_complete() {
                self.complete(size);
            }
        }
    }

    /// A peer has left. What it sent is kept.
    pub fn on_gone(&mut self, id: ConnectionId) {
        self.remove(id);
        self.banned.remove(&id);
    }

    /// Returns what is to be done now.
    pub fn advance(&mut self, now: Instant) -> Vec<Output> {
        if !self.is_over {
            self.expire(now);
            self.begin(now);
            self.retire(now);
            self.begin(now);
            self.ask(now);
        }
        std::mem::take(&mut self.outputs)
    }

    /// When [`Self::advance`] is due although nothing happens.
    pub fn next_due(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        let peers = self.peers.values().filter_map(Peer::next_due);
        let candidates = self.candidates.iter();
        let groups = candidates.filter_map(|it| self.groups.get(&it.size));
        let alone = groups.clone().filter_map(Group::alone_until);
        let turns = groups.filter_map(|group| group.until);
        let turns = turns.filter(|_| !self.waiting.is_empty());
        peers.chain(alone).chain(turns).min()
    }

    /// Number of pieces received, and of all, of the candidate that is nearest to its end; `None`
    /// while there is none.
    pub fn progress(&self) -> Option<(usize, usize)> {
        let progress = self.candidates.iter().map(Candidate::progress);
        progress.max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)))
    }

    /// Requests what is late from others.
    fn expire(&mut self, now: Instant) {
        for (id, peer) in &mut self.peers {
            let late = peer.advance(now);
            let mut candidates = self.candidates.iter_mut();
            if let Some(candidate) = candidates.find(|it| it.size == peer.size) {
                late.into_iter()
                    .for_each(|piece| candidate.release(piece, *id));
            }
        }
    }

    /// Ends the turns of lengths that have had them or have no peers, for others that wait.
    fn retire(&mut self, now: Instant) {
        let mut wanted = self.waiting.len();
        let mut at = 0;
        while at < self.candidates.len() && wanted > 0 {
            match self.retires(self.candidates[at].size, now) {
                true => {
                    self.candidates.remove(at);
                    wanted -= 1;
                }
                false => at += 1,
            }
        }
        // Those whose turn is over, too, keep it until those that have just had theirs may be next.
        for candidate in &self.candidates {
            if let Some(group) = self.groups.get_mut(&candidate.size)
                && group.until.is_some_and(|until| until <= now)
            {
                group.until = Some(now + turn(0));
            }
        }
    }

    /// Ends the turn of a length if it is over.
    fn retires(&mut self, size: usize, now: Instant) -> bool {
        let Some(group) = self.groups.get_mut(&size) else {
            return true;
        };
        if group.peers.is_empty() {
            self.groups.remove(&size);
            return true;
        }
        if group.until.is_none_or(|until| now < until) {
            return false;
        }
        group.until = None;
        if let Some(alone) = &mut group.alone {
            alone.turn = None;
        }
        self.waiting.push_back(size);
        self.release(size);
        true
    }

    /// Gives the next lengths their turns.
    fn begin(&mut self, now: Instant) {
        while self.candidates.len() < MAX_CANDIDATES
            && let Some(size) = self.waiting.pop_front()
        {
            let Some(group) = self.groups.get_mut(&size) else {
                continue;
            };
            group.until = Some(now + turn(group.turns));
            group.turns = group.turns.saturating_add(1);
            self.candidates.push(Candidate::new(size));
        }
    }

    /// Requests pieces.
    fn ask(&mut self, now: Instant) {
        for candidate in &mut self.candidates {
            let Some(group) = self.groups.get_mut(&candidate.size) else {
                continue;
            };
            let peers = &mut self.peers;
            let is_free = |id| peers.get(&id).is_some_and(|peer| !peer.is_backed_off());
            if let Some(next) = group.next_alone(is_free, now) {
                candidate.keep_only(next);
                for id in &group.peers {
                    peers.entry(*id).and_modify(Peer::release);
                }
            }
            let askable = group.askable();
            for piece in candidate.missing() {
                let free = askable.iter().filter_map(|id| Some((id, peers.get(id)?)));
                let free = free.filter(|(_, peer)| peer.is_free());
                let best = free.min_by_key(|(_, peer)| peer.rank(piece));
                let Some(id) = best.map(|(id, _)| *id) else {
                    break;
                };
                peers.entry(id).and_modify(|peer| peer.ask(piece, now));
                candidate.ask(piece, id);
                self.outputs.push(Output::Ask { peer: id, piece });
            }
        }
    }

    /// Verifies the candidate of a length, all of whose pieces are there.
    fn complete(&mut self, size: usize) {
        let Some(at) = self.candidates.iter().position(|it| it.size == size) else {
            return;
        };
        let candidate = self.candidates.swap_remove(at);
        let parts = candidate.pieces().map(|(_, _, bytes)| bytes);
        match self.hashes.compare(parts.clone()) {
            Comparison::Right => {
                let mut info = Vec::with_capacity(size);
                parts.for_each(|part| info.extend_from_slice(part));
                self.ban_suspects(&info);
                self.end(Output::Done(info));
            }
            Comparison::Contradictory => self.end(Output::Contradiction),
            Comparison::Wrong => {
                let senders = candidate.senders();
                self.candidates.push(Candidate::new(size));
                self.release(size);
                if let Some(liar) = senders.first().filter(|_| senders.len() == 1) {
                    return self.ban(*liar);
                }
                for (piece, peer, bytes) in candidate.pieces() {
                    self.suspects.push_back(Suspect {
                        peer,
                        size,
                        piece,
                        digest: Sha1::digest(bytes).into(),
                    });
                }
                let surplus = self.suspects.len().saturating_sub(MAX_SUSPECTS);
                self.suspects.drain(..surplus);
                if let Some(group) = self.groups.get_mut(&size) {
                    group.alone = Some(Alone::default());
                }
            }
        }
    }

    /// Bans the peers that sent pieces which differ from those of `info`.
    fn ban_suspects(&mut self, info: &[u8]) {
        let right: Vec<[u8; 20]> = info
            .chunks(METADATA_PIECE)
            .map(|piece| Sha1::digest(piece).into())
            .collect();
        let suspects = self.suspects.iter();
        let liars = suspects
            .filter(|it| it.size != info.len() || right.get(it.piece as usize) != Some(&it.digest));
        let liars: BTreeSet<_> = liars.map(|it| it.peer).collect();
        liars.into_iter().for_each(|liar| self.ban(liar));
    }

    fn end(&mut self, output: Output) {
        self.outputs
            .retain(|output| matches!(output, Output::Ban(_)));
        self.outputs.push(output);
        self.is_over = true;
        self.candidates.clear();
        self.suspects.clear();
        self.peers.clear();
        self.groups.clear();
        self.waiting.clear();
    }

    fn ban(&mut self, id: ConnectionId) {
        if self.remove(id) {
            self.banned.insert(id);
        }
        self.suspects.retain(|suspect| suspect.peer != id);
        let candidates = self.candidates.iter_mut();
        candidates.for_each(|candidate| candidate.drop_all(id));
        self.outputs.push(Output::Ban(id));
    }

    /// Forgets a peer. Returns whether it was known.
    fn remove(&mut self, id: ConnectionId) -> bool {
        let Some(peer) = self.peers.remove(&id) else {
            return false;
        };
        let mut candidates = self.candidates.iter_mut();
        let candidate = candidates.find(|it| it.size == peer.size);
        let is_candidate = candidate.is_some();
        if let Some(candidate) = candidate {
            candidate.release_all(id);
        }
        if let Some(group) = self.groups.get_mut(&peer.size) {
            group.peers.retain(|other| *other != id);
            if group.peers.is_empty() && !is_candidate {
                self.groups.remove(&peer.size);
                self.waiting.retain(|size| *size != peer.size);
            }
        }
        true
    }

    /// Gives up waiting for the answers of all peers of a length.
    fn release(&mut self, size: usize) {
        let peers = self.peers.values_mut();
        peers
            .filter(|peer| peer.size == size)
            .for_each(Peer::release);
    }
}
