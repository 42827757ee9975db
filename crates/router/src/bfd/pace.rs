//! How often a session sends: as configured where its link carries packets, once a second where it has
//! carried nothing for a while. At the usual intervals of 200 ms each end of a link would otherwise wake about
//! ten times a second, also in a network of a thousand links that carry nothing.
//!
//! The intervals are changed by a poll sequence (RFC 5880, sections 6.5 and 6.8.3): packets announce the new
//! ones, and the poll bit asks for an answer. Only after the answer does this end send less often, or expect the
//! neighbour to send more often, so that neither end misses packets that the other does not send. At rest a link
//! that fails is detected after seconds instead of a part of one. The first packet that crosses it brings the
//! configured intervals back.
//!
//! scionproto's router drops packets with either bit. So only one packet of several polls, which it does not
//! notice, and a neighbour that never answers is left with the configured intervals.

use std::time::{Duration, Instant};

use hawser_topology::Bfd;

/// Time without packets other than BFD after which a link is at rest.
const REST_AFTER: Duration = Duration::from_secs(30);

/// Interval between packets at rest.
const REST_INTERVAL: Duration = Duration::from_secs(1);

/// One packet of this many polls: with the usual multiplier of 3 a neighbour that drops them misses one of
/// the packets that it waits for, not all.
const PACKETS_PER_POLL: u8 = 4;

/// Packets of a poll sequence after which a neighbour counts as one that does not answer.
const MAX_PACKETS: u8 = 10 * PACKETS_PER_POLL;

/// The pace of a session that is up.
#[derive(Debug)]
pub(super) struct Pace {
    /// The configured intervals.
    config: Bfd,
    phase: Phase,
    /// When the link last carried a packet other than BFD, or the session came up.
    last_use: Instant,
    /// Whether the neighbour answers polls, as far as known.
    is_answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The configured intervals.
    Busy,
    /// Announces those of rest, until that is answered; with the number of packets sent.
    Slowing(u8),
    /// Those of rest.
    Resting,
    /// Announces the configured ones, until that is answered; with the number of packets sent.
    Waking(u8),
}

impl Pace {
    pub fn new(config: Bfd, now: Instant) -> Self {
        Self {
            config,
            phase: Phase::Busy,
            last_use: now,
            is_answered: true,
        }
    }

    pub fn config(&self) -> Bfd {
        self.config
    }

    /// Starts over, when the session has come up or gone down.
    pub fn reset(&mut self, now: Instant) {
        *self = Self::new(self.config, now);
    }

    pub fn is_resting(&self) -> bool {
        self.phase == Phase::Resting
    }

    /// Learns that the link last carried a packet at `last_use`. Returns whether the next packet is due at
    /// once, since intervals change.
    pub fn observe(&mut self, last_use: Option<Instant>, now: Instant) -> bool {
        self.last_use = last_use.map_or(self.last_use, |at| at.max(self.last_use));
        let is_quiet = now >= self.last_use + REST_AFTER;
        let next = match self.phase {
            Phase::Busy if is_quiet && self.can_rest() => Phase::Slowing(0),
            // A sequence must end before the next one (RFC 5880, section 6.8.3).
            Phase::Resting if !is_quiet => Phase::Waking(0),
            phase => phase,
        };
        let changed = next != self.phase;
        self.phase = next;
        changed
    }

    /// The neighbour has answered a poll.
    pub fn on_answer(&mut self) {
        self.phase = match self.phase {
            Phase::Slowing(_) => Phase::Resting,
            Phase::Waking(_) => Phase::Busy,
            phase => phase,
        };
    }

    /// Counts a packet that is sent; returns whether it polls.
    pub fn on_sent(&mut self) -> bool {
        let (Phase::Slowing(sent) | Phase::Waking(sent)) = &mut self.phase else {
            return false;
        };
        *sent += 1;
        if *sent <= MAX_PACKETS {
            return *sent % PACKETS_PER_POLL == 1;
        }
        // It may have taken the announced intervals all the same, so that they are announced back.
        self.phase = match self.phase {
            Phase::Slowing(_) => Phase::Waking(1),
            _ => Phase::Busy,
        };
        self.is_answered = false;
        self.phase != Phase::Busy
    }

    /// The interval at which this end sends, if the neighbour takes as many.
    pub fn interval(&self) -> Duration {
        match self.phase {
            Phase::Resting => self.rest(self.config.desired_min_tx),
            _ => self.config.desired_min_tx,
        }
    }

    /// Desired Min TX Interval to announce.
    pub fn desired_min_tx(&self) -> Duration {
        self.announced(self.config.desired_min_tx)
    }

    /// Required Min RX Interval to announce.
    pub fn required_min_rx(&self) -> Duration {
        self.announced(self.config.required_min_rx)
    }

    /// The longest interval at which the neighbour may send, by what was announced to it so far.
    pub fn expected_rx(&self) -> Duration {
        match self.phase {
            Phase::Busy => self.config.required_min_rx,
            _ => self.rest(self.config.required_min_rx),
        }
    }

    fn announced(&self, configured: Duration) -> Duration {
        match self.phase {
            Phase::Busy | Phase::Waking(_) => configured,
            Phase::Slowing(_) | Phase::Resting => self.rest(configured),
        }
    }

    fn rest(&self, configured: Duration) -> Duration {
        configured.max(REST_INTERVAL)
    }

    /// Whether rest would be slower, and the neighbour may take part. With a multiplier below 3 it could
    /// lose one packet and count the link as down when another one polls.
    fn can_rest(&self) -> bool {
        let Bfd {
            desired_min_tx,
            required_min_rx,
            detect_mult,
            ..
        } = self.config;
        self.is_answered && detect_mult >= 3 && desired_min_tx.min(required_min_rx) < REST_INTERVAL
    }
}

#[cfg(test)]
mod tests;
