//! Trains of packets: what a path carries, found out while little is sent over it.
//!
//! A train is sent at one rate for a small part of a round trip, and nothing after it until it is judged.
//! If it is acknowledged more slowly than it was sent, the rate at which it arrives is what the path
//! carries. Losses show that only in a train that has become late, too, or that has lost a large part: others
//! are chance. Else the next one is three times as large and as fast, so that the queue of the link that
//! slows it down holds what is too much of it.
//!
//! Where acknowledgements come in lumps, as those of a busy machine do, a train lasts a little longer than a
//! lump, and the next one is only twice as large and as fast. Once a lump covers less than a whole train it
//! shows the rate (see [`lumps`]). If that is not clear, the next train exceeds this one by less. Where a lump
//! takes more than half of a round trip, trains show nothing. What arrives after a train is complete may have
//! waited, and is no measure.

mod lumps;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use self::lumps::Lumps;
use super::seen::{LUMP, Seen, is_too_much};

/// How long a train lasts: a part of the round trip, and at least this time, so that acknowledgements a
/// millisecond apart show its rate.
const PART: u32 = 32;
const MIN: Duration = Duration::from_millis(2);
/// The longest part of a round trip that a train lasts: one that is sent again, and one that outlasts a
/// lump, by this factor.
const MAX_PART: u32 = 3;
const MAX_PART_LUMP: u32 = 2;
const LONGER: f64 = 1.1;
/// Acknowledgements are few up to this number.
const FEW: u32 = 3;
/// The part of its rate below which lumps may have slowed a train down, and by what the next one exceeds it
/// then.
const SURE: f64 = 0.97;
const CAREFUL: f64 = 1.4;
/// By what a train exceeds the one before; a longer one would overflow a queue.
const FASTER: f64 = 3.0;
const FASTER_LONG: f64 = 2.0;
/// By what the first one exceeds what the path has carried before, and the part of the round trip that it
/// lasts then: less than another, as all that it exceeds is lost where the path carries less now.
const BEYOND: f64 = 1.5;
const PART_AGAIN: u32 = 48;
const MIN_AGAIN: Duration = Duration::from_micros(1300);
/// The part of that rate at which the first one is sent if it outlasts a lump and more than this part of the
/// round trip, so that little is lost of it, too. The next one exceeds that rate.
const AGAIN_LONG: f64 = 0.48;
const LONG: u32 = 16;
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
    /// When it began, with the bytes delivered and lost so far, and those ahead of it.
    began: Instant,
    delivered: u64,
    lost: u64,
    ahead: u64,
    acks: Option<Acks>,
    /// The rate that the path has carried before, in bytes per second, for the first train after that.
    again: Option<f64>,
}

/// Acknowledgements of packets of a train.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Acks {
    /// Bytes delivered before the first.
    before: u64,
    lumps: Lumps,
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
#[expect(
    clippy::large_enum_variant,
    reason = "a sender has one of them, and only while it starts"
)]
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
    /// The first train, after what `seen` shows of the first flight, over a path that has
    /// `carried` that rate before, in bytes per second. `None` where it would show nothing.
    pub(crate) fn first(seen: &Seen, carried: Option<f64>) -> Option<Self> {
        if seen.min_rtt < MIN_RTT || seen.window > MAX_FIRST * seen.packet || seen.has_queue() {
            return None;
        }
        let lasts = lasts(seen.min_rtt).as_secs_f64();
        // Over a short path it lasts longer than that part of the round trip.
        let part = (seen.min_rtt / PART).as_secs_f64() / lasts;
        let bytes = (FASTER * part * seen.window as f64) as u64;
        let bytes = bytes.max(seen.window);
        // Where lumps are known to come, it outlasts one.
        let outlasts = LONGER * seen.lump.as_secs_f64();
        let first = Self::new(seen, bytes as f64 / lasts.max(outlasts), bytes);
        let again = carried.map(|carried| Self::again(seen, carried, outlasts));
        Some(match again {
            Some(again) if again.rate > first.rate => again,
            _ => first,
        })
    }

    /// The first train over a path that has `carried` that rate before. It lasts as long as `outlasts` at least,
    /// in seconds.
    fn again(seen: &Seen, carried: f64, outlasts: f64) -> Self {
        let short = (seen.min_rtt / PART_AGAIN).max(MIN_AGAIN).as_secs_f64();
        let lasts = short.max(outlasts);
        let times = match lasts > (seen.min_rtt / LONG).as_secs_f64() {
            true if lasts > short => AGAIN_LONG,
            _ => BEYOND,
        };
        let bytes = (times * carried * lasts).min(MAX_BYTES as f64) as u64;
        Self {
            again: Some(carried),
            ..Self::new(seen, bytes as f64 / lasts, bytes)
        }
    }

    fn new(seen: &Seen, rate: f64, bytes: u64) -> Self {
        Self {
            rate,
            bytes,
            began: seen.now,
            delivered: seen.delivered,
            lost: seen.lost,
            ahead: seen.in_flight,
            acks: None,
            again: None,
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
            None if seen.has_queue() => return Verdict::Nothing,
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
        let mut acks = self.acks.unwrap_or_else(|| Acks {
            before,
            lumps: self.first_lump(seen),
            first: ack,
            last: ack,
        });
        // It is of packets that were sent after its first acknowledgement: more of it will not arrive.
        let is_later = self.acks.is_some() && seen.prior >= acks.first.delivered;
        if self.acks.is_some() && !is_later {
            let gap = seen.now.saturating_duration_since(acks.last.at);
            acks.lumps.add(seen.delivered - acks.last.delivered, gap);
        }
        let previous = std::mem::replace(&mut acks.last, ack);
        self.acks = Some(acks);
        let shown = self.shown(&acks.first, &ack, seen.packet);
        // Losses at random do not make a train late. A policer drops without a queue.
        let is_late = shown.is_some_and(|shown| shown.late >= MIN_LATE);
        let many = match is_late {
            true => is_too_much(lost, ack.passed, seen.packet),
            false => lost as f64 > POLICED * ack.passed as f64,
        };
        let is_whole = ack.passed + 2 * seen.packet > self.bytes;
        let is_first = acks.lumps.count() == 1;
        let is_early = (ack.passed as f64) < JUDGED * self.bytes as f64;
        if !is_later && (is_early || is_first && !is_whole) {
            return Verdict::Waits;
        }
        let lost = Losses {
            bytes: lost,
            part: lost as f64 / ack.passed.max(1) as f64,
        };
        // Elsewhere these are the last of a train that more acknowledgements would show.
        if acks.lumps.count() <= FEW
            && (seen.lump >= LUMP || lost.bytes > 0)
            && let Some(verdict) = self.in_lumps(seen, &acks.lumps, &lost, (is_later, is_whole))
        {
            return verdict;
        }
        if is_early {
            return Verdict::Nothing;
        }
        // What covers the rest of it may have waited after that had arrived.
        let is_enough = previous.passed as f64 >= REACHED * self.bytes as f64;
        let exact = match is_whole {
            true if is_enough => self.shown(&acks.first, &previous, seen.packet),
            true => None,
            false => self.shown(&acks.first, &ack, seen.packet),
        };
        match (exact, shown) {
            (Some(shown), _) if many || shown.is_slowed => {
                Verdict::Carries(SHOWN * shown.rate.min(self.rate))
            }
            (Some(shown), _) => self.faster(seen, shown.rate),
            (None, _) if many => Verdict::Nothing,
            (None, Some(shown)) if self.is_as_before(seen, &shown) => {
                Verdict::Carries(SHOWN * shown.rate)
            }
            // Not even what has waited was late.
            (None, Some(shown)) if !shown.is_slowed => self.faster(seen, shown.rate),
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

    /// Whether few acknowledgements show about what the path has carried before.
    fn is_as_before(&self, seen: &Seen, shown: &Shown) -> bool {
        let part = self.again.map(|rate| shown.rate / rate);
        part.is_some_and(|part| (SLOWED..=1.0 / SLOWED).contains(&part))
            && shown.rate < SLOWED * self.rate
            && seen.rtt >= seen.min_rtt + MIN_LATE
    }

    /// What the acknowledgement shows that covers the first of it.
    fn first_lump(&self, seen: &Seen) -> Lumps {
        let ahead = self.delivered + self.ahead;
        let covers = seen.acked.min(seen.delivered.saturating_sub(ahead));
        let since = seen.now.saturating_duration_since(self.began);
        Lumps::new(covers, since.min(seen.rtt + seen.spread))
    }

    /// What few acknowledgements show, if it is enough. `is_later`, and `is_whole` where much is lost: more of
    /// the train will not arrive.
    fn in_lumps(
        &self,
        seen: &Seen,
        lumps: &Lumps,
        lost: &Losses,
        (is_later, is_whole): (bool, bool),
    ) -> Option<Verdict> {
        // A train that a queue has no room for loses more.
        let is_chance = lost.bytes <= 2 * seen.packet || lost.part <= POLICED / 2.0;
        let is_over = is_later || is_whole && !is_chance;
        if lumps.count() == 1 {
            return match is_over {
                false if is_chance => Some(self.fuller(seen, lumps.held(seen.min_rtt))),
                false => None,
                true => Some(self.rest_lost(seen, lumps, is_chance)),
            };
        }
        let Some(rate) = lumps.rate(seen.min_rtt, seen.packet) else {
            return is_over.then(|| self.rest_lost(seen, lumps, is_chance));
        };
        let slowed = match is_chance {
            true => SLOWED * (1.0 - lost.part),
            false => SLOWED,
        };
        match rate < slowed * self.rate {
            true => Some(Verdict::Carries(SHOWN * rate)),
            false if is_chance => Some(self.faster(seen, rate)),
            false => None,
        }
    }

    /// What the first lump shows, where what came after it is lost.
    fn rest_lost(&self, seen: &Seen, lumps: &Lumps, is_chance: bool) -> Verdict {
        match lumps.first_rate(seen.min_rtt, seen.packet) {
            Some(rate) if !is_chance => Verdict::Carries(SHOWN * rate.min(self.rate)),
            _ => Verdict::Nothing,
        }
    }

    /// The next train: the path carries more.
    fn faster(&self, seen: &Seen, shown: f64) -> Verdict {
        let is_lumpy = seen.lump >= LUMP;
        let is_long = self.lasts() > 1.5 * lasts(seen.min_rtt).as_secs_f64();
        let times = match is_long || is_lumpy {
            true if is_lumpy && shown < SURE * self.rate => CAREFUL,
            true => FASTER_LONG,
            false => FASTER,
        };
        self.next(seen, times, self.lasts())
    }

    /// The next train: a lump covers all of this one, and must not cover all of the next.
    fn fuller(&self, seen: &Seen, held: Duration) -> Verdict {
        let lasts = self.lasts().max(LONGER * held.as_secs_f64());
        if lasts > seen.min_rtt.as_secs_f64() / f64::from(MAX_PART_LUMP) {
            return Verdict::Nothing;
        }
        self.next(seen, FASTER_LONG, lasts)
    }

    /// The next train: `times` as large as this one, or more where the path has carried more before, and as
    /// long as `lasts`, in seconds.
    fn next(&self, seen: &Seen, times: f64, lasts: f64) -> Verdict {
        let again = self.again.map_or(0.0, |rate| BEYOND * rate * lasts);
        let bytes = self.bytes as f64;
        let bytes = (times * bytes).max(again.min(FASTER * bytes)) as u64;
        match bytes > MAX_BYTES {
            true => Verdict::Nothing,
            false => Verdict::Next(Self::new(seen, bytes as f64 / lasts, bytes)),
        }
    }

    /// The next train: there were too few acknowledgements.
    fn longer(&self, seen: &Seen) -> Verdict {
        let usual = lasts(seen.min_rtt).as_secs_f64();
        if self.again.is_some() && self.lasts() < usual {
            return self.next(seen, FASTER, usual);
        }
        let longer = FASTER * self.lasts();
        match longer <= seen.min_rtt.as_secs_f64() / f64::from(MAX_PART) {
            true => Verdict::Next(Self::new(
                seen,
                self.rate,
                (FASTER * self.bytes as f64) as u64,
            )),
            false => Verdict::Nothing,
        }
    }

    /// Seconds.
    fn lasts(&self) -> f64 {
        self.bytes as f64 / self.rate
    }
}

/// What is lost of a train.
#[derive(Debug, Clone, Copy)]
struct Losses {
    bytes: u64,
    part: f64,
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
