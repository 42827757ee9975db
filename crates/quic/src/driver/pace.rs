//! Whether to sleep a moment or to wait for the next packet.

use std::time::Duration;

/// How long to sleep while packets flow. One wake-up per packet costs more than all else the router
/// does with it; during a sleep this long several arrive, and no sender or receiver notices it.
pub(super) const NAP: Duration = Duration::from_micros(30);

/// A useless nap costs as much as two useful ones gain, so that the router naps only while packets
/// arrive more often than it wakes.
const GAIN: u8 = 1;
const COST: u8 = 2;
/// When traffic ends, four naps are useless.
const MAX_CREDIT: u8 = 4 * COST;

/// Decides between naps and waiting. Without traffic a router must wait, or a lab of many uses up
/// the machine; with traffic it must nap, or it wakes for each packet.
#[derive(Default)]
pub(super) struct Pace {
    credit: u8,
}

impl Pace {
    /// Whether to nap before looking for packets again.
    pub(super) fn naps(&self) -> bool {
        self.credit > 0
    }

    /// Notes that `packets` arrived during a nap, or a wait, of `time`.
    pub(super) fn note(&mut self, packets: usize, time: Duration) {
        if packets == 0 {
            self.credit = self.credit.saturating_sub(COST);
        } else if self.naps() || time < NAP {
            self.credit = (self.credit + GAIN).min(MAX_CREDIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_last_as_long_as_a_flow() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.note(3, Duration::from_micros(20));
        }
        assert!(pace.naps());
        for _ in 0..MAX_CREDIT / COST {
            assert!(pace.naps());
            pace.note(0, NAP);
        }
        assert!(!pace.naps());
    }

    #[test]
    fn a_flow_slower_than_naps_is_waited_for() {
        let mut pace = Pace::default();
        let napped = (0..1000)
            .filter(|round| {
                let naps = pace.naps();
                // A packet every third nap.
                match naps {
                    true => pace.note(usize::from(round % 3 == 0), NAP),
                    false => pace.note(1, 2 * NAP),
                }
                naps
            })
            .count();
        assert_eq!(napped, 0);
        pace.credit = MAX_CREDIT;
        for round in 0..30 {
            pace.note(usize::from(round % 3 == 0), NAP);
        }
        assert!(!pace.naps());
    }

    #[test]
    fn single_packets_now_and_then_are_waited_for() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.note(1, Duration::from_millis(1));
            assert!(!pace.naps());
        }
    }
}
