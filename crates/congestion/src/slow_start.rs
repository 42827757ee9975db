//! Slow start: HyStart++ (RFC 9406), with slower growth beyond the announced bandwidth of a path.

use std::time::Duration;

use super::round::{Rounds, grown};

/// Gentle growth is a quarter of slow start's (RFC 9406, 4.3), which overshoots a queue by little.
const GENTLE: f64 = 4.0;
/// Divisor beyond the announced bandwidth. A quarter would still overshoot the short queue of a
/// long path, because its effect on the queue shows a round trip later.
const BEYOND: f64 = 8.0;
/// Rounds of gentle growth until slow start is over (RFC 9406, 4.3).
const CSS_ROUNDS: u32 = 5;

/// The state of slow start.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlowStart {
    gentle: Option<Gentle>,
    /// The window has reached the announced bandwidth-delay product.
    beyond: bool,
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
    /// `None` when slow start is over. `new_round`: a round begins with them. `announced` is the
    /// path's announced bandwidth, in bytes per second.
    pub(crate) fn step(
        &mut self,
        rounds: &Rounds,
        new_round: bool,
        window: f64,
        bytes: u64,
        announced: Option<u64>,
    ) -> Option<f64> {
        if self.end.is_some_and(|end| window >= end) {
            return None;
        }
        let bytes = bytes as f64;
        let grown = |since| rounds.present().is_some_and(|now| grown(since, now));
        if let (Some(announced), Some(min)) = (announced, rounds.min)
            && window >= announced as f64 * min.as_secs_f64()
        {
            self.beyond = true;
        }
        if self.beyond {
            return match rounds.min {
                Some(min) if grown(min) => None,
                _ => Some(bytes / BEYOND),
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
