//! Slow start: HyStart++ (RFC 9406), with slower growth beyond the bandwidth that is expected of a path.

use std::time::Duration;

use super::round::{Rounds, grown};

/// Gentle growth is a quarter of slow start's (RFC 9406, 4.3), which overshoots a queue by little.
const GENTLE: f64 = 4.0;
/// Divisors of slow start's growth beyond the expected bandwidth: in the first round, and the least. It
/// halves with each round. What is sent too much fills the queue a round trip later, so that growth by a
/// quarter or an eighth from the first round on would overflow the short queue of a long path.
const BEYOND: (u32, u32) = (64, 8);
/// Rounds of gentle growth until slow start is over (RFC 9406, 4.3).
const CSS_ROUNDS: u32 = 5;

/// The state of slow start.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlowStart {
    gentle: Option<Gentle>,
    /// Rounds since the window has reached the expected bandwidth-delay product.
    beyond: Option<u32>,
    /// The window at which slow start ends in any case.
    end: Option<f64>,
}

/// Gentle growth, while it is uncertain whether the queue is filling.
#[derive(Debug, Clone)]
struct Gentle {
    /// The shortest round-trip time when gentle growth began: if it falls, the queue was not
    /// filling.
    baseline: Duration,
    rounds: u32,
}

impl SlowStart {
    /// Slow start that ends at the window `end`.
    pub(crate) fn up_to(end: f64) -> Self {
        Self {
            end: Some(end),
            ..Self::default()
        }
    }

    /// Returns by how many bytes the window grows after `bytes` of `window` are acknowledged;
    /// `None` when slow start is over. `new_round`: a round begins with them. `expected` is what
    /// the path is expected to carry, in bytes per second.
    pub(crate) fn step(
        &mut self,
        rounds: &Rounds,
        new_round: bool,
        window: f64,
        bytes: u64,
        expected: Option<f64>,
    ) -> Option<f64> {
        if self.end.is_some_and(|end| window >= end) {
            return None;
        }
        let bytes = bytes as f64;
        let grown = |since| rounds.present().is_some_and(|now| grown(since, now));
        if let (Some(expected), Some(min)) = (expected, rounds.min)
            && window >= expected * min.as_secs_f64()
        {
            self.beyond.get_or_insert(0);
        }
        if let Some(passed) = &mut self.beyond {
            *passed += u32::from(new_round);
            let divisor = BEYOND.0.checked_shr(*passed).unwrap_or(0).max(BEYOND.1);
            return match rounds.min {
                Some(min) if grown(min) => None,
                _ => Some(bytes / f64::from(divisor)),
            };
        }
        match &mut self.gentle {
            None => {
                if let Some(last) = rounds.last().filter(|last| grown(*last)) {
                    let baseline = rounds.present().unwrap_or(last);
                    self.gentle = Some(Gentle {
                        baseline,
                        rounds: 0,
                    });
                }
                Some(bytes)
            }
            Some(gentle) => {
                gentle.rounds += u32::from(new_round);
                if rounds.present().is_some_and(|now| now < gentle.baseline) {
                    self.gentle = None;
                } else if gentle.rounds >= CSS_ROUNDS {
                    return None;
                }
                Some(bytes / GENTLE)
            }
        }
    }
}
