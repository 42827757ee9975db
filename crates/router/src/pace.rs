//! Whether to sleep a moment or to wait for the next packet.

use std::time::Duration;

/// How long to sleep while packets flow. One wake-up per packet costs more
/// than all else the router does with it; a sleep this long lets some gather,
/// and no sender or receiver notices it.
pub(crate) const NAP: Duration = Duration::from_micros(30);

/// Naps that may pass in vain before the router waits: at most 16 × 30 µs of
/// wake-ups for nothing each time traffic ends.
const MAX_CREDIT: u8 = 16;

/// At rest a router must wait, or a lab of many eats the machine; in a flow
/// it must not, or it wakes for each packet. It naps while naps are worth it.
#[derive(Default)]
pub(crate) struct Pace {
    credit: u8,
}

impl Pace {
    /// Whether to nap before looking for packets again.
    pub fn naps(&self) -> bool {
        self.credit > 0
    }

    /// Packets came after a wait or nap that took `waited`, or none came.
    pub fn note(&mut self, packets: usize, waited: Duration) {
        if packets == 0 {
            self.credit = self.credit.saturating_sub(1);
        } else if self.naps() || waited < 2 * NAP {
            self.credit = (self.credit + 1).min(MAX_CREDIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_napped_through_and_its_end_is_noticed() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.note(3, Duration::from_micros(20));
        }
        assert!(pace.naps());
        for _ in 0..MAX_CREDIT {
            pace.note(0, NAP);
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
