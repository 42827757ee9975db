//! Decides whether to take a short sleep (a nap) or to block until the next packet, and whether to look for it
//! without either.

mod busy;

use std::time::Duration;

pub use self::busy::{BusyPoll, Spin};

/// How long to sleep while packets flow. One wake-up per packet costs more than the rest of the
/// packet's processing; during a nap several packets arrive, and the added delay does not matter to
/// senders and receivers.
pub const NAP: Duration = Duration::from_micros(30);

/// A nap without packets costs twice the credit that a nap with packets gains, so that a process
/// naps only while packets arrive more often than it wakes.
const GAIN: u8 = 1;
const COST: u8 = 2;
/// Limits the naps after the end of traffic to four.
const MAX_CREDIT: u8 = 4 * COST;

/// Decides between naps and blocking. Without traffic a process must block: a lab of many napping
/// routers would use all CPU time. With traffic it must nap, to avoid one wake-up per packet.
#[derive(Debug, Default)]
pub struct Pace {
    credit: u8,
}

impl Pace {
    /// Whether to nap before looking for packets again.
    pub fn naps(&self) -> bool {
        self.credit > 0
    }

    /// Records that `packets` arrived during a nap or a wait of `time`.
    pub fn note(&mut self, packets: usize, time: Duration) {
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
    fn naps_end_with_the_flow() {
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
    fn a_flow_slower_than_naps_is_blocked_for() {
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
    fn rare_packets_are_blocked_for() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.note(1, Duration::from_millis(1));
            assert!(!pace.naps());
        }
    }
}
