//! What a path has carried, for the next sender over it (draft-ietf-tsvwg-careful-resume, "saved
//! parameters").

use std::time::Duration;

/// By how much the round-trip time may differ from what it was, up and down: otherwise it is not the same
/// path.
const SAME: u32 = 2;

/// What a path has carried.
///
/// It counts for a while, also over fresher copies of the path: an hour, for example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carried {
    /// Bytes per second.
    pub rate: f64,
    /// The shortest round-trip time.
    pub rtt: Duration,
}

impl Carried {
    /// The rate, in bytes per second, if the path has about the same round-trip time now.
    pub(crate) fn rate_at(&self, rtt: Duration) -> Option<f64> {
        let is_same = rtt <= SAME * self.rtt && self.rtt <= SAME * rtt;
        (is_same && self.rate.is_finite() && self.rate > 0.0).then_some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_another_round_trip_time_is_not_the_same() {
        let ms = Duration::from_millis;
        let carried = Carried {
            rate: 1e6,
            rtt: ms(20),
        };
        assert_eq!(carried.rate_at(ms(10)), Some(1e6));
        assert_eq!(carried.rate_at(ms(40)), Some(1e6));
        assert_eq!(carried.rate_at(ms(9)), None);
        assert_eq!(carried.rate_at(ms(41)), None);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Carried { rate, ..carried }.rate_at(ms(20)), None);
        }
    }
}
