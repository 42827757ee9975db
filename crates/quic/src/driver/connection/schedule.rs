//! When a connection sends: together with what falls due soon after, and with other connections of the
//! host.
//!
//! Each batch costs every process on its path the same, however small it is. So what falls due is gathered
//! for a part of the round trip, within bounds.

use std::time::{Duration, Instant};

use super::conversation::Conversation;
use crate::driver::clock::nearest_tick;

/// The part of a round trip for which packets may wait for others.
const PART: u32 = 8;
/// Longest time for which packets that arrive wait for an answer.
const LONGEST_ANSWER: Duration = Duration::from_millis(1);
/// Longest time for which packets are paced together; the protocol's pacer would have each sent when its
/// time comes. Packets that are sent at once find less room in a full queue beside other flows, so this
/// holds while a loss is remembered.
const LONGEST_BATCH: Duration = Duration::from_micros(500);
/// The same where none is. The protocol's pacer gathers no more than this.
const LONGEST_LOSSLESS_BATCH: Duration = Duration::from_millis(2);
/// Longest time for which a loss is remembered: as long as the connection was old then. At its start every
/// connection fills the queue once.
const LOSS_MEMORY: Duration = Duration::from_secs(10);

/// The part of `round_trip` for which something may wait, at most `longest`.
pub(super) fn part_of(round_trip: Duration, longest: Duration) -> Duration {
    (round_trip / PART).min(longest)
}

/// When one connection sends. Pure: the caller passes the time.
#[derive(Debug)]
pub(super) struct Schedule {
    began: Instant,
    /// When packets were sent last.
    sent: Instant,
    /// Losses and congestion marks so far, and until when they are remembered.
    losses: u64,
    remembers_until: Instant,
    conversation: Conversation,
}

impl Schedule {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            sent: now,
            losses: 0,
            remembers_until: now,
            conversation: Conversation::default(),
        }
    }

    /// Notes that a packet has arrived.
    pub(super) fn on_received(&mut self) {
        self.conversation.on_received();
    }

    /// Notes that the application gets what it waited for.
    pub(super) fn on_delivered(&mut self, now: Instant) {
        self.conversation.on_delivered(now);
    }

    /// Notes that this many packets are sent.
    pub(super) fn on_sent(&mut self, packets: usize, now: Instant) {
        self.sent = now;
        self.conversation.on_sent(packets);
    }

    /// When packets were sent last.
    pub(super) fn last_sent(&self) -> Instant {
        self.sent
    }

    /// Notes that what the application had to send is sent.
    pub(super) fn on_answered(&mut self) {
        self.conversation.on_answered();
    }

    /// Notes how many packets were lost or marked so far.
    pub(super) fn note_losses(&mut self, losses: u64, now: Instant) {
        if losses != self.losses {
            self.losses = losses;
            let age = now.saturating_duration_since(self.began);
            self.remembers_until = now + age.min(LOSS_MEMORY);
        }
    }

    /// When to answer packets that have arrived, if the application does not do so before; it may be past.
    pub(super) fn answer(&mut self, round_trip: Duration, now: Instant) -> Instant {
        let soon = self.after_sent(LONGEST_ANSWER, round_trip);
        let expected = self.conversation.answers_until(now);
        expected.map_or(soon, |until| until.max(soon))
    }

    /// When to act upon `timeout` of the protocol, which is that of the next packet where packets are
    /// paced.
    pub(super) fn gather(&self, timeout: Instant, round_trip: Duration, now: Instant) -> Instant {
        let longest = match now < self.remembers_until {
            true => LONGEST_BATCH,
            false => LONGEST_LOSSLESS_BATCH,
        };
        timeout.max(self.after_sent(longest, round_trip))
    }

    /// A part of `round_trip` after packets were sent, at most `longest`; together with other connections
    /// where it is that long.
    fn after_sent(&self, longest: Duration, round_trip: Duration) -> Instant {
        let pause = part_of(round_trip, longest);
        match pause == longest {
            true => nearest_tick(self.sent + pause, longest),
            false => self.sent + pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(400);

    /// How long packets are gathered at `now`, to half a tick.
    fn batch(schedule: &mut Schedule, now: Instant) -> Duration {
        schedule.on_sent(1, now);
        schedule.gather(now, ROUND_TRIP, now) - now
    }

    #[test]
    fn batches_are_short_after_a_loss() {
        let began = Instant::now();
        let mut schedule = Schedule::new(began);
        let is_short = |pause| pause <= LONGEST_BATCH * 3 / 2;
        assert!(!is_short(batch(&mut schedule, began)));
        for (losses, (lost, remembered)) in [(100, 100), (1_000, 1_000), (30_000, 10_000)]
            .iter()
            .enumerate()
        {
            let lost = began + Duration::from_millis(*lost);
            let remembered = Duration::from_millis(*remembered);
            let losses = losses as u64 + 1;
            schedule.note_losses(losses, lost);
            let last = lost + remembered - Duration::from_nanos(1);
            assert!(is_short(batch(&mut schedule, last)));
            // No further ones.
            schedule.note_losses(losses, lost + remembered);
            assert!(!is_short(batch(&mut schedule, lost + remembered)));
        }
    }

    proptest! {
        /// Nothing waits longer than a part of the round trip, but for half a tick where that is long.
        #[test]
        fn nothing_waits_long(
            round_trip in 0u64..500_000,
            timeout in 0u64..5_000,
            losses in 0u64..2,
        ) {
            let sent = Instant::now();
            let round_trip = Duration::from_micros(round_trip);
            let timeout = sent + Duration::from_micros(timeout);
            let mut schedule = Schedule::new(sent - Duration::from_secs(1));
            schedule.note_losses(losses, sent);
            schedule.on_sent(1, sent);
            let bound = |longest: Duration| match round_trip / PART < longest {
                true => sent + round_trip / PART,
                false => sent + longest * 3 / 2,
            };
            prop_assert!(schedule.answer(round_trip, sent) <= bound(LONGEST_ANSWER));
            let due = schedule.gather(timeout, round_trip, sent);
            prop_assert!(due >= timeout);
            let longest = match losses {
                0 => LONGEST_LOSSLESS_BATCH,
                _ => LONGEST_BATCH,
            };
            prop_assert!(due <= timeout.max(bound(longest)));
        }
    }
}
