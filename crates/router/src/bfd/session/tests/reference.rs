//! A model of the BFD session of scionproto's router v0.15, as far as a neighbour can observe it.
//! It differs from RFC 5880 in two points that matter here: it never compares Your Discriminator,
//! and it keeps the first remote discriminator that it learns until no packet has arrived for the
//! detection time.

use std::time::{Duration, Instant};

use hawser_topology::Bfd;

use super::super::super::packet::{Control, SessionState};

const SLOW: Duration = Duration::from_secs(1);
/// The detection time until the first packet arrives.
const UNARMED: Duration = Duration::from_secs(60);

pub(super) struct Reference {
    config: Bfd,
    random: fastrand::Rng,
    discriminator: u32,
    state: SessionState,
    remote: u32,
    remote_min_rx: Duration,
    desired_min_tx: Duration,
    expires: Instant,
    send_at: Instant,
}

impl Reference {
    /// A session that sends for the first time a second after `now`.
    pub fn new(config: Bfd, seed: u64, now: Instant) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            config,
            discriminator: random.u32(1..),
            random,
            state: SessionState::Down,
            remote: 0,
            remote_min_rx: Duration::ZERO,
            desired_min_tx: SLOW,
            expires: now + UNARMED,
            send_at: now + SLOW,
        }
    }

    pub fn is_up(&self) -> bool {
        self.state == SessionState::Up
    }

    pub fn receive(&mut self, packet: &Control, now: Instant) {
        // Polls and their answers are not supported, and dropped.
        if packet.poll || packet.last {
            return;
        }
        let interval = self.config.required_min_rx.max(packet.desired_min_tx);
        self.expires = now + u32::from(packet.detect_mult) * interval;
        self.remote_min_rx = packet.required_min_rx;
        if self.remote == 0 {
            self.remote = packet.mine;
        }
        let before = self.state;
        self.state = match (before, packet.state) {
            // Only an administrator ends this state.
            (_, SessionState::AdminDown) | (SessionState::AdminDown, _) => SessionState::AdminDown,
            (SessionState::Down, SessionState::Down) => SessionState::Init,
            (SessionState::Down | SessionState::Init, SessionState::Init) => SessionState::Up,
            (SessionState::Init, SessionState::Up) => SessionState::Up,
            (SessionState::Up, SessionState::Down) => SessionState::Down,
            (state, _) => state,
        };
        if before == SessionState::Down && self.state != SessionState::Down {
            self.desired_min_tx = self.config.desired_min_tx;
            self.send_at = now + self.pause();
        }
    }

    pub fn expire(&mut self, now: Instant) {
        if now < self.expires {
            return;
        }
        self.expires = now + UNARMED;
        self.remote = 0;
        if matches!(self.state, SessionState::Init | SessionState::Up) {
            self.state = SessionState::Down;
        }
        if self.state == SessionState::Down {
            self.desired_min_tx = SLOW;
        }
    }

    /// The packet that is due at `now`. A change of state does not make a packet due earlier.
    pub fn send(&mut self, now: Instant) -> Option<Control> {
        if now < self.send_at {
            return None;
        }
        self.send_at = now + self.pause();
        Some(Control {
            diagnostic: 0,
            state: self.state,
            poll: false,
            last: false,
            detect_mult: self.config.detect_mult,
            mine: self.discriminator,
            yours: self.remote,
            desired_min_tx: self.desired_min_tx,
            required_min_rx: self.config.required_min_rx,
        })
    }

    pub fn next_due(&self) -> Instant {
        self.expires.min(self.send_at)
    }

    fn pause(&mut self) -> Duration {
        let latest = if self.config.detect_mult == 1 {
            90
        } else {
            100
        };
        let interval = self.desired_min_tx.max(self.remote_min_rx);
        interval * self.random.u32(75..latest) / 100
    }
}
