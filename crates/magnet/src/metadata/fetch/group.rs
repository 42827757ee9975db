//! The peers that announced the same length, and whose turn it is among them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::peer::ConnectionId;

/// How long a length, and a peer that is asked alone, has its first turn while others wait. Each
/// further turn is twice as long, so that slow peers come to an end, too.
const TURN: Duration = Duration::from_secs(30);

/// Most times that a turn is doubled: it lasts a day then.
const MAX_DOUBLINGS: u32 = 12;

/// The length of turn number `turns`, from 0.
pub(super) fn turn(turns: u32) -> Duration {
    TURN * (1 << turns.min(MAX_DOUBLINGS))
}

/// The peers that announced one length.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// All of them. Those that are asked alone take their turns in this order.
    pub peers: VecDeque<ConnectionId>,
    /// Number of turns that the length has had.
    pub turns: u32,
    /// End of its turn, while it has one.
    pub until: Option<Instant>,
    /// Peers are asked one by one; set once pieces of several did not fit together.
    pub alone: Option<Alone>,
}

/// Whose turn it is among peers that are asked one by one.
#[derive(Debug, Default)]
pub(super) struct Alone {
    /// The peer, and the end of its turn.
    pub turn: Option<(ConnectionId, Instant)>,
    /// Number of turns of all peers.
    turns: usize,
}

impl Group {
    /// Ends the turn of a peer that is asked alone, if it is over and others wait.
    fn end_turn(&mut self, is_free: impl Fn(ConnectionId) -> bool, now: Instant) {
        let Some(alone) = &mut self.alone else {
            return;
        };
        let Some((peer, until)) = alone.turn else {
            return;
        };
        let others = self
            .peers
            .iter()
            .any(|other| *other != peer && is_free(*other));
        let is_over = until <= now || !is_free(peer);
        if until <= now && !others {
            // Nobody else can have the turn.
            alone.turn = Some((peer, now + TURN));
        }
        if !self.peers.contains(&peer) || (is_over && others) {
            alone.turn = None;
            alone.turns += 1;
            if let Some(at) = self.peers.iter().position(|other| *other == peer) {
                self.peers.remove(at);
                self.peers.push_back(peer);
            }
        }
    }

    /// Gives the turn to the next peer that is free, if nobody has it. Returns the peer if it is
    /// another one than before.
    pub fn next_alone(
        &mut self,
        is_free: impl Fn(ConnectionId) -> bool,
        now: Instant,
    ) -> Option<ConnectionId> {
        self.end_turn(&is_free, now);
        let alone = self.alone.as_mut().filter(|alone| alone.turn.is_none())?;
        let next = self.peers.iter().copied().find(|peer| is_free(*peer))?;
        let rounds = alone.turns / self.peers.len().max(1);
        let until = now + turn(u32::try_from(rounds).unwrap_or(u32::MAX));
        alone.turn = Some((next, until));
        Some(next)
    }

    /// The peers that may be asked now.
    pub fn askable(&self) -> Vec<ConnectionId> {
        match &self.alone {
            Some(alone) => alone.turn.iter().map(|(peer, _)| *peer).collect(),
            None => self.peers.iter().copied().collect(),
        }
    }

    /// Whether what a peer sends counts now.
    pub fn accepts(&self, peer: ConnectionId) -> bool {
        match &self.alone {
            Some(alone) => alone.turn.is_some_and(|(alone, _)| alone == peer),
            None => true,
        }
    }

    /// When the turn of a peer that is asked alone ends; `None` if no other waits.
    pub fn alone_until(&self) -> Option<Instant> {
        let (_, until) = self.alone.as_ref()?.turn?;
        (self.peers.len() > 1).then_some(until)
    }
}
