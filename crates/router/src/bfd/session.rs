//! One BFD session: a state machine without I/O or clock (RFC 5880, section 6.8), asynchronous mode
//! only.
//!
//! It begins *down*. A packet that says Down takes it to *Init*, one that says Init to *Up*. From
//! Init one that says Init or Up takes it to Up, and from Up one that says Down takes it down.
//! AdminDown takes it down from every state, as does a detection time without a packet; while it is
//! up, any other packet over the link makes that longer. This side never announces AdminDown. Each
//! change makes the next packet due at once; otherwise it is due after 75 to 100 % of the interval,
//! which is a second at least while the session is down, and while its link is at rest ([`Pace`]).
//!
//! The first thread of the router drives it by `Neighbours`: it passes packets in, and calls
//! [`Session::expire`] and [`Session::take`] when [`Session::next_due`] has come. The session has
//! no lock of its own; that of the thread's switch is held meanwhile. It takes a fixed amount of
//! memory. It never ends by itself, and is dropped with its neighbour; a reload keeps it where the
//! neighbour, its link and the intervals stay the same.

use std::time::{Duration, Instant};

use hawser_topology::Bfd;

use super::pace::Pace;
use super::packet::{Control, SessionState};

/// Shortest interval to announce while the session is down (RFC 5880, section 6.8.3).
const MIN_DOWN_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest interval between packets: a wrong unit in a file must not cost all CPU time.
const FAST: Duration = Duration::from_millis(1);
/// Longest detection time, whatever the neighbour announces: a wrong interval there must not keep a
/// dead link in use for days.
const LONGEST_DETECTION: Duration = Duration::from_secs(30);

/// The time between packets is 75 to 100 % of the interval, and at most 90 % if the detection
/// multiplier is 1 (RFC 5880, section 6.8.7).
const EARLIEST: u32 = 75;
const LATEST: u32 = 100;
const LATEST_OF_ONE: u32 = 90;

/// Diagnostic codes (RFC 5880, section 4.1).
const TIME_EXPIRED: u8 = 1;
const NEIGHBOUR_DOWN: u8 = 3;

/// A session with one neighbour.
pub(crate) struct Session {
    pace: Pace,
    random: fastrand::Rng,
    discriminator: u32,
    state: SessionState,
    diagnostic: u8,
    /// The last non-zero Your Discriminator received: this session's, or that of the router's
    /// previous run.
    known_as: u32,
    /// The neighbour's discriminator, as last announced.
    remote: u32,
    remote_min_rx: Duration,
    announced: Announced,
    /// When the detection time ends.
    expires: Option<Instant>,
    /// When the last packet was sent.
    sent: Instant,
    /// The next packet is due after this percentage of the interval.
    jitter: u32,
    /// The next packet is due at once.
    is_urgent: bool,
    answers_poll: bool,
}

/// What the neighbour announces of its packets.
#[derive(Debug, Clone, Copy, Default)]
struct Announced {
    detect_mult: u8,
    /// The longest time between two, if this end takes as many.
    interval: Duration,
}

impl Session {
    /// The intervals that it was made with, as far as they count.
    pub fn config(&self) -> Bfd {
        self.pace.config()
    }

    /// A session whose first packet is due at `now`.
    pub fn new(config: Bfd, seed: u64, now: Instant) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let config = Bfd {
            desired_min_tx: config.desired_min_tx.max(FAST),
            ..config
        };
        Self {
            pace: Pace::new(config, now),
            discriminator: random.u32(1..),
            random,
            state: SessionState::Down,
            diagnostic: 0,
            known_as: 0,
            remote: 0,
            remote_min_rx: Duration::ZERO,
            announced: Announced::default(),
            expires: None,
            sent: now,
            jitter: LATEST,
            is_urgent: true,
            answers_poll: false,
        }
    }

    pub fn is_up(&self) -> bool {
        self.state == SessionState::Up
    }

    /// Whether the link carries nothing, and both ends send seldom.
    pub fn is_resting(&self) -> bool {
        self.pace.is_resting()
    }

    /// Learns when the link last carried a packet other than BFD.
    pub fn observe(&mut self, last_use: Option<Instant>, now: Instant) {
        let before = self.detection_time();
        if self.is_up() && self.pace.observe(last_use, now) {
            self.is_urgent = true;
            // With the next packet the neighbour sends as seldom as that announces.
            let longer = self.detection_time().saturating_sub(before);
            self.expires = self.expires.map(|expires| expires + longer);
        }
    }

    /// Time without a packet after which the neighbour counts as down.
    fn detection_time(&self) -> Duration {
        let Announced {
            detect_mult,
            interval,
        } = self.announced;
        let interval = interval.max(self.pace.expected_rx());
        (u32::from(detect_mult) * interval).min(LONGEST_DETECTION)
    }

    /// Whether `packet` belongs to this session. While the session is up, the packet's Your
    /// Discriminator decides (RFC 5880, section 6.8.6). Until then any packet on the link belongs
    /// to it, as a link has only one session: after a restart of this router, a neighbour may
    /// continue to address the previous session. scionproto's router does so while it receives any
    /// packets, so that no session with it would ever come up.
    pub fn accepts(&self, packet: &Control) -> bool {
        !self.is_up() || [0, self.discriminator, self.known_as].contains(&packet.yours)
    }

    /// Processes a packet (RFC 5880, section 6.8.6), if the session accepts it. Returns whether the
    /// state has changed; then the next packet is due at once.
    pub fn receive(&mut self, packet: &Control, now: Instant) -> bool {
        if !self.accepts(packet) {
            return false;
        }
        let mut state = packet.state;
        if packet.yours != 0 {
            self.known_as = packet.yours;
            // An Init for another session shows that the neighbour sends, but not that it receives:
            // only an Up that follows this session's Init does.
            if state == SessionState::Init && !self.is_up() && packet.yours != self.discriminator {
                state = SessionState::Down;
            }
        }
        self.remote = packet.mine;
        self.remote_min_rx = packet.required_min_rx;
        if packet.last {
            self.pace.on_answer();
        }
        let mut interval = packet.desired_min_tx;
        // A system whose session is down announces at least a second (RFC 5880, section 6.8.3).
        // scionproto's router may announce less, and restarts its interval when it leaves Down:
        // with a multiplier of 1 its next packet would always be late.
        if packet.state == SessionState::Down {
            interval = interval.max(MIN_DOWN_INTERVAL);
        }
        self.announced = Announced {
            detect_mult: packet.detect_mult,
            interval,
        };
        self.expires = Some(now + self.detection_time());
        if packet.poll {
            self.answers_poll = true;
            self.is_urgent = true;
        }
        let next = match (self.state, state) {
            (_, SessionState::AdminDown) => SessionState::Down,
            (SessionState::Down, SessionState::Down) => SessionState::Init,
            (SessionState::Down, SessionState::Init) => SessionState::Up,
            (SessionState::Init, SessionState::Init | SessionState::Up) => SessionState::Up,
            (SessionState::Up, SessionState::Down) => SessionState::Down,
            (state, _) => state,
        };
        if next == SessionState::Down && self.state != next {
            self.diagnostic = NEIGHBOUR_DOWN;
        }
        self.set_state(next, now)
    }

    /// Goes down if the detection time has passed at `now`; returns whether it did. Any packet from
    /// the neighbour, the last at `last_arrival`, shows that the link works: on a congested link
    /// BFD packets may be lost.
    pub fn expire(&mut self, now: Instant, last_arrival: Option<Instant>) -> bool {
        if self.expires.is_none_or(|expires| now < expires) {
            return false;
        }
        let alive_until = last_arrival
            .filter(|_| self.is_up())
            .map(|at| at + self.detection_time());
        if let Some(later) = alive_until
            && later > now
        {
            self.expires = Some(later);
            return false;
        }
        self.expires = None;
        (self.remote, self.remote_min_rx) = (0, Duration::ZERO);
        self.diagnostic = TIME_EXPIRED;
        self.set_state(SessionState::Down, now)
    }

    /// Whether a packet must be sent.
    pub fn must_send(&self, now: Instant) -> bool {
        now >= self.send_at(self.jitter)
    }

    /// The packet to send at `now`; `None` if it is too early to send one.
    pub fn take(&mut self, now: Instant) -> Option<Control> {
        if now < self.send_at(EARLIEST) {
            return None;
        }
        let detect_mult = self.pace.config().detect_mult;
        let latest = match detect_mult {
            1 => LATEST_OF_ONE,
            _ => LATEST,
        };
        self.sent = now;
        self.jitter = self.random.u32(EARLIEST..=latest);
        self.is_urgent = false;
        let last = std::mem::take(&mut self.answers_poll);
        Some(Control {
            diagnostic: self.diagnostic,
            state: self.state,
            // No packet has both bits (RFC 5880, section 6.8.7).
            poll: !last && self.pace.on_sent(),
            last,
            detect_mult,
            mine: self.discriminator,
            yours: self.remote,
            desired_min_tx: self.desired_min_tx(),
            required_min_rx: self.pace.required_min_rx(),
        })
    }

    /// When the detection time ends or a packet is due, whichever is first.
    pub fn next_due(&self) -> Instant {
        let send_at = self.send_at(self.jitter);
        self.expires.map_or(send_at, |at| at.min(send_at))
    }

    /// The time at which `percent` of the interval have passed since the last packet. A changed
    /// interval takes effect at once (RFC 5880, section 6.8.6), also for the packet that is
    /// scheduled.
    fn send_at(&self, percent: u32) -> Instant {
        if self.is_urgent {
            return self.sent;
        }
        let interval = match self.state {
            SessionState::Up => self.pace.interval(),
            _ => self.desired_min_tx(),
        };
        let interval = interval.max(self.remote_min_rx);
        self.sent + interval * percent / 100
    }

    /// Like scionproto's, the session uses the configured interval as soon as it receives packets
    /// (Init), not only once both ends do (Up); that brings links up a second earlier.
    fn desired_min_tx(&self) -> Duration {
        match self.state {
            SessionState::Down | SessionState::AdminDown => {
                self.pace.config().desired_min_tx.max(MIN_DOWN_INTERVAL)
            }
            SessionState::Init | SessionState::Up => self.pace.desired_min_tx(),
        }
    }

    fn set_state(&mut self, next: SessionState, now: Instant) -> bool {
        let changed = self.state != next;
        if changed {
            self.pace.reset(now);
        }
        self.state = next;
        self.is_urgent |= changed;
        changed
    }
}

#[cfg(test)]
mod tests;
