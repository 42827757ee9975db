//! One-way delays: the shortest of the last minutes, so that what a packet took longer is time in queues.
//!
//! Delays are differences of two clocks. Only their changes mean anything, and they wrap at 32 bits.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Minutes of which the shortest delay counts (RFC 6817, `BASE_HISTORY`).
const MINUTES: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The shortest delay of each of the last minutes, in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseDelay {
    /// The newest minute comes last.
    minutes: VecDeque<u32>,
    /// When the newest minute began.
    began: Option<Instant>,
}

/// How much `delay` is longer than `base`; negative if it is shorter.
fn excess(delay: u32, base: u32) -> i32 {
    delay.wrapping_sub(base).cast_signed()
}

fn shorter(one: u32, other: u32) -> u32 {
    if excess(one, other) < 0 { one } else { other }
}

impl BaseDelay {
    /// Takes the delay of a packet.
    pub fn observe(&mut self, delay: u32, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let age = now.saturating_duration_since(began);
        match self.minutes.back_mut() {
            Some(newest) if age < MINUTE => *newest = shorter(*newest, delay),
            _ => {
                // Minutes without a packet count: what was measured before them is as old as it is.
                let passed = usize::try_from(age.as_secs() / MINUTE.as_secs()).unwrap_or(MINUTES);
                if passed >= MINUTES {
                    self.minutes.clear();
                }
                let silent = passed.saturating_sub(1).min(self.minutes.len());
                self.minutes.drain(..silent);
                self.minutes.push_back(delay);
                self.began = Some(now);
                if self.minutes.len() > MINUTES {
                    self.minutes.pop_front();
                }
            }
        }
    }

    /// The shortest delay, unless none was measured.
    pub fn base(&self) -> Option<u32> {
        self.minutes.iter().copied().reduce(shorter)
    }

    /// How much longer than the shortest delay this one is, in microseconds.
    pub fn queuing(&self, delay: u32) -> u32 {
        let excess = self.base().map_or(0, |base| excess(delay, base));
        excess.max(0).cast_unsigned()
    }

    /// Adds to every delay measured, as one clock has turned out to be faster than the other.
    pub fn shift(&mut self, by: u32) {
        for minute in &mut self.minutes {
            *minute = minute.wrapping_add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_delay_of_ten_minutes_is_the_base_also_across_the_wrap() {
        let (mut base, mut now) = (BaseDelay::default(), Instant::now());
        assert_eq!((base.base(), base.queuing(5)), (None, 0));
        base.observe(10, now);
        base.observe(u32::MAX - 9, now);
        base.observe(40, now);
        assert_eq!(base.base(), Some(u32::MAX - 9));
        assert_eq!(base.queuing(90), 100);
        assert_eq!(base.queuing(u32::MAX - 20), 0);
        for _ in 1..MINUTES {
            now += MINUTE;
            base.observe(70, now);
            assert_eq!(base.base(), Some(u32::MAX - 9));
        }
        now += MINUTE;
        base.observe(60, now);
        assert_eq!(base.base(), Some(60));
        base.shift(1000);
        assert_eq!(base.queuing(2060), 1000);
        // After a long silence nothing of before counts.
        base.observe(5000, now + MINUTE * 11);
        assert_eq!(base.base(), Some(5000));
    }

    #[test]
    fn minutes_without_a_packet_age_what_was_measured() {
        let (mut base, now) = (BaseDelay::default(), Instant::now());
        base.observe(100, now);
        base.observe(300, now + MINUTE);
        base.observe(200, now + MINUTE * 9);
        assert_eq!(base.base(), Some(200));
    }
}
