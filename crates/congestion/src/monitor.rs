//! Monitor intervals: what became of the packets that were sent at one rate.
//!
//! An interval is a range of packet numbers. Its result is known when all of its packets are
//! acknowledged or lost, a round trip after its end; other intervals follow meanwhile.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::line::{Line, Slope};

/// Fewest packets of an interval (NSDI 2015, 3.1).
const MIN_PACKETS: u64 = 10;
/// An interval in which less than this part of its rate was sent shows little: there was not enough
/// to send, or no time to send it.
const SENT: f64 = 0.9;

/// The intervals of a subflow that are not judged yet. `S` says what an interval is for.
#[derive(Debug)]
pub(crate) struct Monitor<S> {
    /// By packet number. Packets are being sent in the last one; there is always one.
    intervals: VecDeque<Interval<S>>,
    /// The number after the last packet.
    next: u64,
    /// The newest packet of the present acknowledgement, and when it was sent. Older ones have
    /// waited for the acknowledgement, so that their round-trip times say little.
    newest: Option<(u64, Instant)>,
    /// Smoothed as RFC 9002, 5.3 does.
    rtt: Option<Duration>,
}

#[derive(Debug)]
struct Interval<S> {
    step: S,
    /// Bytes per second.
    rate: f64,
    /// Time after which it may end; `None` until the round-trip time is known.
    length: Option<Duration>,
    /// The first packet number.
    first: u64,
    /// When its first packet was sent.
    began: Option<Instant>,
    ended: Option<Instant>,
    packets: u64,
    /// Packets whose fate is not known.
    open: u64,
    sent: u64,
    acked: u64,
    lost: u64,
    app_limited: bool,
    /// Round-trip times by the time of sending, both in seconds.
    rtts: Line,
}

/// What an interval has shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome<S> {
    /// What it was for.
    pub(crate) step: S,
    /// The rate at which packets were sent, in bytes per second.
    pub(crate) rate: f64,
    /// The rate at which they were to be sent.
    pub(crate) planned: f64,
    /// Less was sent than the interval's rate.
    pub(crate) limited: bool,
    /// The part of its bytes that was lost.
    pub(crate) loss: f64,
    /// By how much the round-trip time grew, in seconds per second.
    pub(crate) gradient: Option<Slope>,
}

impl<S> Interval<S> {
    fn new(step: S, rate: f64, length: Option<Duration>, first: u64) -> Self {
        Self {
            step,
            rate,
            length,
            first,
            began: None,
            ended: None,
            packets: 0,
            open: 0,
            sent: 0,
            acked: 0,
            lost: 0,
            app_limited: false,
            rtts: Line::default(),
        }
    }

    /// What it has shown, once the fate of all its packets is known; `None` where it has none.
    fn outcome(self) -> Option<Outcome<S>> {
        let took = self.ended?.saturating_duration_since(self.began?);
        let sent = self.sent as f64 / took.as_secs_f64().max(1e-6);
        let limited = self.app_limited || sent < SENT * self.rate;
        Some(Outcome {
            step: self.step,
            planned: self.rate,
            // The measured rate is off by a batch at both ends, more than what is tried.
            rate: if limited {
                sent.min(self.rate)
            } else {
                self.rate
            },
            limited,
            loss: self.lost as f64 / (self.acked + self.lost).max(1) as f64,
            gradient: self.rtts.slope(),
        })
    }
}

impl<S> Monitor<S> {
    /// A monitor whose first interval, for `step` at `rate`, lasts until the round-trip time is
    /// known.
    pub(crate) fn new(step: S, rate: f64) -> Self {
        Self {
            intervals: VecDeque::from([Interval::new(step, rate, None, 0)]),
            next: 0,
            newest: None,
            rtt: None,
        }
    }

    /// The smoothed round-trip time.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Ends the present interval, and begins another one for `step` at `rate`.
    pub(crate) fn begin(&mut self, now: Instant, step: S, rate: f64, length: Duration) {
        if let Some(last) = self.intervals.back_mut() {
            last.ended = Some(now);
        }
        let next = Interval::new(step, rate, Some(length), self.next);
        self.intervals.push_back(next);
    }

    /// Whether the present interval is long enough.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let Some(last) = self.intervals.back() else {
            return true;
        };
        let (Some(length), Some(began)) = (last.length, last.began) else {
            return self.rtt.is_some() && last.length.is_none();
        };
        last.packets >= MIN_PACKETS && now >= began + length
    }

    /// Forgets all packets in flight.
    pub(crate) fn forget(&mut self) {
        let keep = self.intervals.len().saturating_sub(1);
        self.intervals.drain(..keep);
        if let Some(last) = self.intervals.back_mut() {
            last.first = self.next;
            (last.began, last.packets, last.open) = (None, 0, 0);
            (last.sent, last.acked, last.lost) = (0, 0, 0);
            last.rtts = Line::default();
        }
    }

    /// The first interval, if it is over and the fate of all its packets is known.
    pub(crate) fn finished(&mut self) -> Option<Outcome<S>> {
        while let Some(first) = self.intervals.front()
            && first.ended.is_some()
            && first.open == 0
        {
            let outcome = self.intervals.pop_front().and_then(Interval::outcome);
            if outcome.is_some() {
                return outcome;
            }
        }
        None
    }

    pub(crate) fn sent(&mut self, now: Instant, number: u64, bytes: u64) {
        self.next = number + 1;
        if let Some(last) = self.intervals.back_mut() {
            last.began.get_or_insert(now);
            last.packets += 1;
            last.open += 1;
            last.sent += bytes;
        }
    }

    /// The interval of a packet; `None` if it is forgotten.
    fn of(&mut self, number: u64) -> Option<&mut Interval<S>> {
        let after = self.intervals.partition_point(|one| one.first <= number);
        let one = self.intervals.get_mut(after.checked_sub(1)?)?;
        (one.open > 0).then_some(one)
    }

    pub(crate) fn acked(&mut self, number: u64, sent: Instant, bytes: u64) {
        if let Some(one) = self.of(number) {
            one.open -= 1;
            one.acked += bytes;
        }
        if self.newest.is_none_or(|(newest, _)| number > newest) {
            self.newest = Some((number, sent));
        }
    }

    pub(crate) fn lost(&mut self, number: u64, bytes: u64) {
        if let Some(one) = self.of(number) {
            one.open -= 1;
            one.lost += bytes;
        }
    }

    /// Ends an acknowledgement.
    pub(crate) fn end(&mut self, now: Instant, app_limited: bool) {
        if let Some(last) = self.intervals.back_mut() {
            last.app_limited |= app_limited;
        }
        let Some((number, sent)) = self.newest.take() else {
            return;
        };
        let rtt = now.saturating_duration_since(sent);
        self.rtt = Some(self.rtt.map_or(rtt, |old| (7 * old + rtt) / 8));
        let after = self.intervals.partition_point(|one| one.first <= number);
        let at = after.checked_sub(1);
        if let Some(one) = at.and_then(|at| self.intervals.get_mut(at))
            && let Some(began) = one.began
        {
            let since = sent.saturating_duration_since(began);
            one.rtts.add(since.as_secs_f64(), rtt.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Sends `count` packets from number `first` on, one a millisecond; returns the time after.
    fn send(monitor: &mut Monitor<u8>, mut now: Instant, first: u64, count: u64) -> Instant {
        for number in first..first + count {
            monitor.sent(now, number, 1000);
            now += MS;
        }
        now
    }

    #[test]
    fn an_interval_is_known_when_the_fate_of_all_its_packets_is() {
        let start = Instant::now();
        let mut monitor = Monitor::new(0, 1e6);
        monitor.begin(start, 1, 1e6, 20 * MS);
        let middle = send(&mut monitor, start, 0, 20);
        assert!(monitor.is_over(middle));
        monitor.begin(middle, 2, 2e6, 20 * MS);
        let end = send(&mut monitor, middle, 20, 20);
        monitor.begin(end, 3, 1e6, 20 * MS);
        // The second interval is complete before the first one.
        for number in (20..40).chain(0..17) {
            monitor.acked(number, start, 1000);
        }
        assert!(monitor.finished().is_none());
        (17..20).for_each(|number| monitor.lost(number, 1000));
        let first = monitor.finished().unwrap();
        assert_eq!((first.step, first.limited), (1, false));
        assert_eq!((first.rate, first.loss), (1e6, 0.15));
        // It was to be sent twice as fast.
        let second = monitor.finished().unwrap();
        assert_eq!((second.step, second.limited), (2, true));
        assert_eq!((second.rate, second.planned, second.loss), (1e6, 2e6, 0.0));
        assert!(monitor.finished().is_none());
    }

    #[test]
    fn the_newest_packets_show_the_growth_of_the_round_trip_time() {
        let start = Instant::now();
        let mut monitor = Monitor::new(0, 1e6);
        monitor.begin(start, 1, 1e6, 100 * MS);
        let mut now = send(&mut monitor, start, 0, 100);
        // Ten packets are acknowledged at once; the round-trip time grows by a tenth of the time.
        for number in 0..100u32 {
            let sent = start + number * MS;
            monitor.acked(number.into(), sent, 1000);
            if number % 10 == 9 {
                now = sent + 50 * MS + number * MS / 10;
                monitor.end(now, false);
            }
        }
        monitor.begin(now, 2, 1e6, 100 * MS);
        let slope = monitor.finished().unwrap().gradient.unwrap();
        assert!((slope.value - 0.1).abs() < 1e-6, "{slope:?}");
        assert!(slope.error < 1e-6, "{slope:?}");
    }

    #[test]
    fn an_interval_has_ten_packets() {
        let start = Instant::now();
        let mut monitor = Monitor::new(0, 1e6);
        monitor.begin(start, 1, 1e6, 5 * MS);
        let now = send(&mut monitor, start, 0, 9);
        assert!(!monitor.is_over(now));
        let now = send(&mut monitor, now, 9, 1);
        assert!(monitor.is_over(now));
    }

    #[test]
    fn forgotten_packets_do_not_count() {
        let start = Instant::now();
        let mut monitor = Monitor::new(0, 1e6);
        monitor.begin(start, 1, 1e6, 20 * MS);
        let now = send(&mut monitor, start, 0, 20);
        monitor.forget();
        (0..20).for_each(|number| monitor.acked(number, start, 1000));
        monitor.begin(now, 2, 1e6, 20 * MS);
        assert!(monitor.finished().is_none());
    }
}
