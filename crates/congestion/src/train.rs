//! Trains of packets: what a path carries, found out while little is sent over it.
//!
//! A train is sent at one rate for a small part of a round trip, and nothing after it until it is judged.
//! If it is acknowledged more slowly than it was sent, the rate at which it arrives is what the path
//! carries. Losses show that only in a train that has become late, too, or that has lost a large part: others
//! are chance. Else the next one is three times as large and as fast, so that the queue of the link that
//! slows it down holds what is too much of it.
//!
//! Where acknowledgements come in lumps, as those of a busy machine do, a train is over before two of them
//! show a rate: it is sent again, three times as long and no faster. What arrives after a train is complete
//! may have waited, and is no measure.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::round::grown;
use super::seen::{Seen, is_too_much};

/// How long a train lasts: a part of the round trip, and at least this time, so that acknowledgements a
/// millisecond apart show its rate.
const PART: u32 = 32;
const MIN: Duration = Duration::from_millis(2);
/// The longest part of a round trip that a train lasts, where acknowledgements come in lumps.
const MAX_PART: u32 = 3;
/// By what a train exceeds the one before; a longer one would overflow a queue.
const FASTER: u64 = 3;
const FASTER_LONG: u64 = 2;
/// Over a shorter path trains show how busy the hosts are, and doubling is quick enough.
const MIN_RTT: Duration = Duration::from_millis(10);
/// The largest window, in packets, that a first train follows: more than that has grown by what the
/// application sent, and says little about the path.
const MAX_FIRST: u64 = 64;
/// Largest train, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// The part of a train after which it is judged, and that an acknowledgement must have reached to show a
/// rate where the next one covers all of it: that one may have waited.
const JUDGED: f64 = 0.75;
const REACHED: f64 = 0.4;
/// The part of its rate below which a train was slowed down, if it has also become late by this time: a
/// host that is busy does not look like a slow path.
const SLOWED: f64 = 0.85;
const MIN_LATE: Duration = Duration::from_micros(500);
/// The part of a train that is lost where a link drops what is too much without a queue. A train that is
/// three times as fast as the link loses two thirds.
const POLICED: f64 = 0.25;
/// Packets that have to arrive after the first acknowledgement until the rate is known.
const MIN_PACKETS: u64 = 4;
/// The part of the rate that is relied on.
const SHOWN: f64 = 0.95;

/// Packets sent at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Train {
    /// Bytes per second, and bytes.
    rate: f64,
    bytes: u64,
    /// Bytes delivered and lost when it began.
    delivered: u64,
    lost: u64,
    acks: Option<Acks>,
}

/// Acknowledgements of packets of a train.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Acks {
    /// Bytes delivered before the first.
    before: u64,
    first: Ack,
    last: Ack,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Ack {
    at: Instant,
    /// The round-trip time of its newest packet.
    rtt: Duration,
    /// Bytes delivered with it, and bytes of the train that have arrived or are lost.
    delivered: u64,
    passed: u64,
}

/// What a train has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// Nothing yet: no more is sent.
    Waits,
    /// The path carries more, or acknowledgements come in lumps: the next one.
    Next(Train),
    /// The path carries this many bytes per second.
    Carries(f64),
    /// Nothing: others fill a queue, too little of it was sent, or much is lost of what acknowledgements in
    /// lumps cover.
    Nothing,
}

impl Train {
    /// The first train, after what `seen` shows of the first flight. `None` where it would show nothing.
    pub(crate) fn first(seen: &Seen) -> Option<Self> {
        if seen.min_rtt < MIN_RTT
            || seen.window > MAX_FIRST * seen.packet
            || grown(seen.min_rtt, seen.rtt)
        {
            return None;
        }
        let lasts = lasts(seen.min_rtt).as_secs_f64();
        // Over a short path it lasts longer than that part of the round trip.
        let part = (seen.min_rtt / PART).as_secs_f64() / lasts;
        let bytes = (FASTER as f64 * part * seen.window as f64) as u64;
        let bytes = bytes.max(seen.window);
        Some(Self::new(seen, bytes as f64 / lasts, bytes))
    }

    fn new(seen: &Seen, rate: f64, bytes: u64) -> Self {
        Self {
            rate,
            bytes,
            delivered: seen.delivered,
            lost: seen.lost,
            acks: None,
        }
    }

    /// Bytes per second at which it is sent.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether an acknowledgement is of its packets.
    pub(crate) fn is_of(&self, seen: &Seen) -> bool {
        seen.prior >= self.delivered
    }

    /// Handles an acknowledgement of its packets, and judges it once enough of it has arrived or is lost.
    pub(crate) fn acked(&mut self, seen: &Seen) -> Verdict {
        let before = match self.acks {
            Some(acks) => acks.before,
            None if grown(seen.min_rtt, seen.rtt) => return Verdict::Nothing,
            None => seen.delivered.saturating_sub(seen.acked),
        };
        if seen.app_limited {
            return Verdict::Nothing;
        }
        let lost = seen.lost - self.lost;
        let ack = Ack {
            at: seen.now,
            rtt: seen.rtt,
            delivered: seen.delivered,
            passed: seen.delivered - before + lost,
        };
        let mut acks = self.acks.unwrap_or(Acks {
            before,
            first: ack,
            last: ack,
        });
        let previous = std::mem::replace(&mut acks.last, ack);
        self.acks = Some(acks);
        let shown = self.shown(&acks.first, &ack, seen.packet);
        // Losses at random do not make a train late. A policer drops without a queue.
        let is_late = shown.is_some_and(|shown| shown.late >= MIN_LATE);
        let many = match is_late {
            true => is_too_much(lost, ack.passed, seen.packet),
            false => lost as f64 > POLICED * ack.passed as f64,
        };
        if (ack.passed as f64) < JUDGED * self.bytes as f64 {
            // Packets that were sent after its first acknowledgement: more of it will not arrive.
            return match seen.prior >= acks.first.delivered {
                true => Verdict::Nothing,
                false => Verdict::Waits,
            };
        }
        // What covers the rest of it may have waited after that had arrived.
        let has_waited = ack.passed + 2 * seen.packet > self.bytes;
        let is_enough = previous.passed as f64 >= REACHED * self.bytes as f64;
        let exact = match has_waited {
            true if is_enough => self.shown(&acks.first, &previous, seen.packet),
            true => None,
            false => self.shown(&acks.first, &ack, seen.packet),
        };
        match (exact, shown) {
            (Some(shown), _) if many || shown.is_slowed => {
                Verdict::Carries(SHOWN * shown.rate.min(self.rate))
            }
            (Some(_), _) => self.faster(seen),
            (None, _) if many => Verdict::Nothing,
            // Not even what has waited was late.
            (None, Some(shown)) if !shown.is_slowed => self.faster(seen),
            (None, _) => self.longer(seen),
        }
    }

    /// What two acknowledgements show.
    fn shown(&self, first: &Ack, last: &Ack, packet: u64) -> Option<Shown> {
        let arrived = last.delivered - first.delivered;
        let took = last.at.saturating_duration_since(first.at);
        if arrived < MIN_PACKETS * packet || took.is_zero() {
            return None;
        }
        let rate = arrived as f64 / took.as_secs_f64();
        let late = last.rtt.saturating_sub(first.rtt);
        let is_late = late >= MIN_LATE && late >= took.mul_f64(1.0 - SLOWED);
        Some(Shown {
            rate,
            late,
            is_slowed: is_late && rate < SLOWED * self.rate,
        })
    }

    /// The next train: the path carries more.
    fn faster(&self, seen: &Seen) -> Verdict {
        let is_long = self.lasts() > 1.5 * lasts(seen.min_rtt).as_secs_f64();
        let times = if is_long { FASTER_LONG } else { FASTER };
        match times * self.bytes {
            bytes if bytes > MAX_BYTES => Verdict::Nothing,
            bytes => Verdict::Next(Self::new(seen, times as f64 * self.rate, bytes)),
        }
    }

    /// The next train: there were too few acknowledgements.
    fn longer(&self, seen: &Seen) -> Verdict {
        let longer = FASTER as f64 * self.lasts();
        match longer <= seen.min_rtt.as_secs_f64() / f64::from(MAX_PART) {
            true => Verdict::Next(Self::new(seen, self.rate, FASTER * self.bytes)),
            false => Verdict::Nothing,
        }
    }

    /// Seconds.
    fn lasts(&self) -> f64 {
        self.bytes as f64 / self.rate
    }
}

/// A rate that acknowledgements have shown, in bytes per second.
#[derive(Debug, Clone, Copy)]
struct Shown {
    rate: f64,
    /// By how much longer the round trip has become.
    late: Duration,
    is_slowed: bool,
}

/// How long a train lasts over a path with this round-trip time.
fn lasts(rtt: Duration) -> Duration {
    (rtt / PART).max(MIN)
}
