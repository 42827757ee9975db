//! Whether a peer answers at all while it delivers nothing of what was requested.

use std::time::{Duration, Instant};

use crate::requests::Silence;

/// A peer whose packets keep arriving is late; one from which none arrived for this long, or for this
/// many round trips if that is longer, may be unreachable. QUIC sends a packet, which the other side
/// acknowledges, after a quarter of a second without any.
const ANSWER_TIMEOUT: (Duration, u32) = (Duration::from_millis(750), 3);

/// What arrives of a peer over one connection, of any kind.
#[derive(Debug)]
pub(super) struct Answers {
    /// Bytes of packets received when last observed; `None` where that is unknown.
    received: Option<u64>,
    /// How long no packet has arrived.
    silence: Silence,
    /// Whether the peer was last reported as late; `None` while it delivers.
    reported: Option<bool>,
}

impl Answers {
    pub fn new(now: Instant) -> Self {
        Self {
            received: Some(0),
            silence: Silence::new(now),
            reported: None,
        }
    }

    /// Takes note of the bytes of packets received so far; `None` where that is unknown.
    pub fn observe(&mut self, received: Option<u64>, now: Instant) {
        let before = std::mem::replace(&mut self.received, received);
        self.silence.observe(before != received, now);
    }

    /// While the peer delivers nothing: whether it is late, if that is not what was returned last. It is
    /// if it answers, so that another connection over the same path would not be faster.
    pub fn report(&mut self, rtt: Duration) -> Option<bool> {
        let most = ANSWER_TIMEOUT.0.max(rtt * ANSWER_TIMEOUT.1);
        let is_late = self.received.is_some() && self.silence.time() <= most;
        (self.reported.replace(is_late) != Some(is_late)).then_some(is_late)
    }

    /// Whether it was reported since the peer delivered last.
    pub fn is_reported(&self) -> bool {
        self.reported.is_some()
    }

    /// The peer delivers again.
    pub fn recover(&mut self) {
        self.reported = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);
    const TICK: Duration = Duration::from_millis(50);

    /// Ticks for this long, in each of which `received` returns what has arrived by then.
    fn pass(answers: &mut Answers, now: &mut Instant, ticks: u32, received: Option<u64>) {
        for _ in 0..ticks {
            *now += TICK;
            answers.observe(received, *now);
        }
    }

    #[test]
    fn a_peer_is_late_while_packets_arrive_and_each_change_is_reported_once() {
        let mut now = Instant::now();
        let mut answers = Answers::new(now);
        pass(&mut answers, &mut now, 15, Some(0));
        assert_eq!(answers.report(RTT), Some(true));
        assert_eq!(answers.report(RTT), None);
        pass(&mut answers, &mut now, 1, Some(0));
        assert_eq!(answers.report(RTT), Some(false));
        pass(&mut answers, &mut now, 100, Some(0));
        assert_eq!(answers.report(RTT), None);
        // Over a long path, a packet may take longer.
        assert_eq!(answers.report(Duration::from_secs(2)), Some(true));
        pass(&mut answers, &mut now, 1, Some(40));
        assert_eq!(answers.report(RTT), None);
        answers.recover();
        assert_eq!(answers.report(RTT), Some(true));
    }

    #[test]
    fn a_pause_of_this_program_is_no_silence_of_the_peer() {
        let mut now = Instant::now();
        let mut answers = Answers::new(now);
        pass(&mut answers, &mut now, 2, Some(9));
        now += Duration::from_secs(30);
        answers.observe(Some(9), now);
        assert_eq!(answers.report(RTT), Some(true));
    }

    #[test]
    fn a_peer_is_not_late_where_nothing_is_known_of_packets() {
        let mut now = Instant::now();
        let mut answers = Answers::new(now);
        pass(&mut answers, &mut now, 1, None);
        assert_eq!(answers.report(Duration::MAX / 4), Some(false));
    }
}
