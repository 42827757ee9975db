//! What a connection does when time has passed.

use std::time::{Duration, Instant};

use super::{CloseReason, Connection, State};

/// Longest time without an acknowledgement of what has arrived (RFC 1122 allows 500 ms; BEP 29 does not say).
const ACK_DELAY: Duration = Duration::from_millis(25);
/// Longest time that a peer waits before it acknowledges a single packet (libutp).
const PEER_ACK_DELAY: Duration = Duration::from_millis(100);
/// Shortest time without an acknowledgement after which the last packet is sent again.
const MIN_TAIL_TIMEOUT: Duration = Duration::from_millis(10);
/// Longest silence: address translators forget what is silent for longer than 30 s.
const KEEP_ALIVE: Duration = Duration::from_secs(29);
/// How often a SYN is sent.
const MAX_SYNS: u32 = 4;
/// Timeouts in a row after which the peer counts as lost: at least a minute.
const MAX_TIMEOUTS: u32 = 9;
/// Longest wait for a packet of a peer that has sent a SYN, and nothing else.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the side that connects shows that it is there while neither side has sent bytes.
const CONFIRMATIONS: u8 = 3;
const CONFIRMATION_PAUSE: Duration = Duration::from_secs(1);
/// Longest time that a connection is kept after its user has closed it.
const LINGER: Duration = Duration::from_secs(30);
/// How long a connection is kept that both sides have ended, as the acknowledgement of the peer's end may be
/// lost: some of the peer's timeouts.
const REPEATS: Duration = Duration::from_secs(3);

/// When the last packet is sent again, because nothing was acknowledged since: the end of a burst may be lost,
/// which no later packet shows (RFC 8985, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TailProbe {
    Unset,
    Due(Instant),
    /// Once, until something is acknowledged.
    Sent,
}

#[derive(Debug)]
pub(super) struct Timers {
    /// When what was sent counts as lost, or a peer without room is asked again.
    pub retransmit: Option<Instant>,
    tail: TailProbe,
    /// Timeouts in a row, without those after which a peer without room has answered.
    timeouts: u32,
    /// When the last packet of the peer arrived.
    heard: Instant,
    has_heard: bool,
    idle_timeout: Duration,
    /// When the last packet was sent, and the last one with content.
    pub sent: Instant,
    pub sent_content: Instant,
    /// When an acknowledgement is due.
    pub ack: Option<Instant>,
    /// When the next packet is sent that shows that this side is there, and how many follow.
    pub confirmation: Option<(Instant, u8)>,
    /// When the connection ends that its user has closed.
    linger: Option<Instant>,
    /// The connection lingers only for what the peer repeats.
    waits_for_repeats: bool,
    /// One byte may be sent to a peer without room.
    pub probes: bool,
}

impl Timers {
    pub fn new(now: Instant, idle_timeout: Duration) -> Self {
        Self {
            retransmit: None,
            tail: TailProbe::Unset,
            timeouts: 0,
            heard: now,
            has_heard: false,
            idle_timeout,
            sent: now,
            sent_content: now,
            ack: None,
            confirmation: None,
            linger: None,
            waits_for_repeats: false,
            probes: false,
        }
    }

    pub fn on_heard(&mut self, now: Instant) {
        self.heard = now;
        self.has_heard = true;
    }

    /// Something was acknowledged.
    pub fn on_progress(&mut self) {
        self.retransmit = None;
        self.tail = TailProbe::Unset;
        self.timeouts = 0;
        self.probes = false;
    }

    pub fn begin_confirmations(&mut self, now: Instant) {
        self.confirmation = Some((now + CONFIRMATION_PAUSE, CONFIRMATIONS));
    }

    pub fn delay_ack(&mut self, now: Instant) {
        self.ack = Some(now + ACK_DELAY);
    }

    pub fn linger(&mut self, now: Instant) {
        self.linger.get_or_insert(now + LINGER);
    }

    pub fn wait_for_repeats(&mut self, now: Instant) {
        if !self.waits_for_repeats {
            self.waits_for_repeats = true;
            self.linger = Some(now + REPEATS);
        }
    }
}

impl Connection {
    /// Sets the time after which what is outstanding counts as lost, unless it is set.
    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        let has_no_room = self.peer_window == 0 && self.sender.is_waiting();
        let is_syn = matches!(self.state, State::SynSent { .. });
        if !self.is_connected() && !is_syn {
            self.timers.retransmit = None;
        } else if self.sender.is_outstanding() || has_no_room || is_syn {
            let due = now + self.rtt.timeout();
            self.timers.retransmit.get_or_insert(due);
        } else {
            self.timers.retransmit = None;
        }
    }

    /// Sets the time after which the last packet is sent again, counted from `now`.
    pub(super) fn arm_tail_probe(&mut self, now: Instant) {
        if self.timers.tail == TailProbe::Sent {
            return;
        }
        let is_usual = self.timers.timeouts == 0 && self.sender.is_in_flight();
        let rtt = self.rtt.smoothed().filter(|_| is_usual);
        let timeout = rtt.map(|rtt| {
            let delayed = match self.sender.is_single() {
                true => PEER_ACK_DELAY,
                false => Duration::ZERO,
            };
            (rtt * 2 + delayed).max(MIN_TAIL_TIMEOUT)
        });
        let timeout = timeout.filter(|timeout| *timeout < self.rtt.timeout());
        self.timers.tail = timeout.map_or(TailProbe::Unset, |it| TailProbe::Due(now + it));
    }

    /// When the last packet is sent again.
    fn tail_probe(&self) -> Option<Instant> {
        match self.timers.tail {
            TailProbe::Due(due) => Some(due),
            TailProbe::Unset | TailProbe::Sent => None,
        }
    }

    /// When [`Self::advance`] is to be called; `None` if never.
    pub fn due(&self) -> Option<Instant> {
        let timers = &self.timers;
        if self.closed().is_some() {
            return None;
        }
        let confirmation = timers.confirmation.map(|(due, _)| due);
        let keep_alive = self.keep_alive();
        let due = [timers.retransmit, timers.ack, confirmation, timers.linger];
        let others = [keep_alive, self.idle_end(), self.tail_probe()];
        let due = due.into_iter().chain(others);
        due.flatten().min()
    }

    /// When the silence of this side has lasted too long.
    fn keep_alive(&self) -> Option<Instant> {
        let is_open = self.state == State::Established && !self.has_ended();
        // An acknowledgement that waits to be sent ends it.
        (is_open && !self.acks.is_due).then_some(self.timers.sent + KEEP_ALIVE)
    }

    /// When the silence of the peer has lasted too long.
    fn idle_end(&self) -> Option<Instant> {
        match self.state {
            State::SynReceived => Some(self.timers.heard + CONFIRMATION_TIMEOUT),
            State::Established if !self.has_ended() => {
                Some(self.timers.heard + self.timers.idle_timeout)
            }
            _ => None,
        }
    }

    /// Whether both directions have ended, so that nothing is to come.
    fn has_ended(&self) -> bool {
        self.sender.is_done() && self.receiver.has_ended()
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Instant) {
        if self.closed().is_some() {
            return;
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.timers.linger) {
            match self.timers.waits_for_repeats {
                true => self.close_for(CloseReason::Closed),
                false => self.close_with_reset(CloseReason::Closed),
            }
            return;
        }
        if is_due(self.idle_end()) {
            return self.close_with_reset(CloseReason::TimedOut);
        }
        if is_due(self.timers.retransmit) {
            self.timers.retransmit = None;
            self.on_timeout(now);
        } else if is_due(self.tail_probe()) {
            self.timers.tail = TailProbe::Sent;
            self.sender.repeat_last();
        }
        if is_due(self.timers.ack) {
            self.timers.ack = None;
            self.acks.is_due = true;
        }
        if let Some((due, rest)) = self.timers.confirmation
            && due <= now
        {
            let next = rest.checked_sub(1).filter(|rest| *rest > 0);
            self.timers.confirmation = next.map(|rest| (now + CONFIRMATION_PAUSE, rest));
            self.acks.is_due = true;
        }
        if is_due(self.keep_alive()) {
            self.acks.is_due = true;
            self.sender.shrink();
            self.receiver.shrink();
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        if let State::SynSent { attempts, .. } = self.state {
            if attempts >= MAX_SYNS {
                return self.close_for(CloseReason::TimedOut);
            }
            self.rtt.on_timeout();
            let is_due = true;
            self.state = State::SynSent { attempts, is_due };
            return;
        }
        if !self.sender.is_outstanding() {
            // The peer has no room; whether it still has none is asked by a byte.
            self.timers.probes = true;
            return;
        }
        // A peer that answers that it has no room is there.
        let answers = self.peer_window == 0 && self.timers.has_heard;
        self.timers.has_heard = false;
        if !answers {
            self.timers.timeouts += 1;
        }
        if self.timers.timeouts >= MAX_TIMEOUTS {
            return self.close_with_reset(CloseReason::TimedOut);
        }
        self.timers.tail = TailProbe::Unset;
        self.rtt.on_timeout();
        self.sender.on_timeout();
        self.control.on_timeout();
        self.arm_retransmission(now);
    }
}
