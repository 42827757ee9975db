//! Rates over time, in memory. Pure: every call is given the time.

use std::collections::VecDeque;

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Array, ArrayBuilder, ObjectBuilder, SchemaType, Type};

/// Seconds that are kept one by one.
pub(crate) const SECONDS: usize = 600;
/// Minutes that are kept.
pub(crate) const MINUTES: usize = 24 * 60;
/// Most changes of the limit that are kept.
const STEPS: usize = 1000;

/// The rates of a link in one direction: each second of 10 minutes, and each minute of 24 hours.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The second or minute of the last value, and the values; NaN where there was none.
    seconds: Ring,
    minutes: Ring,
    /// Sum and number of the values of the minute that is under way.
    minute: (u64, f64, u32),
    /// When the limit became what, in milliseconds since 1970.
    limits: VecDeque<(u64, Option<u64>)>,
}

/// Values at equal distances of time.
#[derive(Debug, Default)]
struct Ring {
    last: u64,
    values: VecDeque<f32>,
}

impl Ring {
    /// Sets the value at `index`, at most `most` behind which are kept.
    fn push(&mut self, index: u64, value: f32, most: usize) {
        if self.values.is_empty() {
            self.last = index.saturating_sub(1);
        }
        if index <= self.last {
            // A clock that went back: the time is known already.
            return;
        }
        let missing = usize::try_from(index - self.last - 1).unwrap_or(usize::MAX);
        if missing >= most {
            self.values.clear();
        } else {
            self.values.extend(std::iter::repeat_n(f32::NAN, missing));
        }
        self.values.push_back(value);
        self.last = index;
        while self.values.len() > most {
            self.values.pop_front();
        }
    }

    /// The newest values, as many as are kept of the `most` up to `now`.
    fn newest(&self, now: u64, most: usize) -> (u64, Vec<Option<f64>>) {
        let oldest = now.saturating_sub(most as u64 - 1);
        let first = (self.last + 1).saturating_sub(self.values.len() as u64);
        let skipped = usize::try_from(oldest.saturating_sub(first)).unwrap_or(usize::MAX);
        let values = self.values.iter().skip(skipped);
        // Whole bits per second say enough.
        let values = values.map(|value| (!value.is_nan()).then(|| f64::from(*value).round()));
        (first.max(oldest), values.collect())
    }
}

/// Rates over time, and the limits there were.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Series {
    /// Seconds between two values.
    pub step: u64,
    /// The time of the first value, in milliseconds since 1970.
    pub from: u64,
    /// Bit/s; `null` where nothing was counted.
    pub rates: Vec<Option<f64>>,
    /// When the limit became what, in milliseconds since 1970 and bit/s; `null` for no limit.
    #[schema(schema_with = steps)]
    pub limits: Vec<(u64, Option<u64>)>,
}

/// How limits over time are described.
fn steps() -> Array {
    let number = SchemaType::from_iter([Type::Integer, Type::Null]);
    let step = ArrayBuilder::new()
        .items(ObjectBuilder::new().schema_type(number))
        .min_items(Some(2))
        .max_items(Some(2));
    let words = "When the limit became what: milliseconds since 1970, and bit/s or null.";
    ArrayBuilder::new()
        .items(step)
        .description(Some(words))
        .build()
}

impl History {
    /// Adds the rate of the second at `now`, in milliseconds since 1970, and the limit then.
    pub fn push(&mut self, now: u64, rate: Option<f64>, limit: Option<u64>) {
        if self.limits.back().is_none_or(|(_, last)| *last != limit) {
            self.limits.push_back((now, limit));
        }
        let oldest = now.saturating_sub(MINUTES as u64 * 60_000);
        while self.limits.len() > STEPS || self.limits.get(1).is_some_and(|one| one.0 <= oldest) {
            self.limits.pop_front();
        }
        let Some(rate) = rate else {
            return;
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "seven digits of a rate are enough"
        )]
        self.seconds.push(now / 1000, rate as f32, SECONDS);
        let minute = now / 60_000;
        let (under_way, sum, count) = &mut self.minute;
        if *under_way == minute {
            (*sum, *count) = (*sum + rate, *count + 1);
            return;
        }
        if *count > 0 {
            #[expect(clippy::cast_possible_truncation, reason = "as above")]
            let mean = (*sum / f64::from(*count)) as f32;
            self.minutes.push(*under_way, mean, MINUTES);
        }
        self.minute = (minute, rate, 1);
    }

    /// The rates of the last `span` seconds: each second's up to ten minutes, beyond each minute's.
    pub fn series(&self, now: u64, span: u64) -> Series {
        let span = span.clamp(1, MINUTES as u64 * 60);
        let (step, ring) = match span <= SECONDS as u64 {
            true => (1, &self.seconds),
            false => (60, &self.minutes),
        };
        let most = usize::try_from(span / step).unwrap_or(1);
        let (first, rates) = ring.newest(now / 1000 / step, most);
        Series {
            step,
            from: first * step * 1000,
            rates,
            limits: self.limits.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn seconds_and_minutes_are_kept() {
        let mut history = History::default();
        for second in 6000..13_200 {
            history.push(second * 1000, Some(second as f64), Some(5));
        }
        let now = 13_199_000;
        let seconds = history.series(now, 10);
        assert_eq!((seconds.step, seconds.from), (1, 13_190_000));
        assert_eq!(seconds.rates.first(), Some(&Some(13_190.0)));
        assert_eq!(seconds.rates.len(), 10);
        assert_eq!(seconds.limits, [(6_000_000, Some(5))]);
        assert_eq!(history.series(now, 600).rates.len(), 600);
        let minutes = history.series(now, 86_400);
        // The minute under way is not complete.
        assert_eq!((minutes.step, minutes.from), (60, 6_000_000));
        assert_eq!(minutes.rates.len(), 119);
        assert_eq!(minutes.rates[0], Some(6030.0));
    }

    #[test]
    fn gaps_and_steps_are_seen() {
        let mut history = History::default();
        history.push(1000, Some(1.0), None);
        history.push(2000, None, Some(9));
        history.push(4000, Some(4.0), Some(9));
        let series = history.series(4000, 60);
        assert_eq!(series.rates, [Some(1.0), None, None, Some(4.0)]);
        assert_eq!(series.limits, [(1000, None), (2000, Some(9))]);
        // A long gap empties the ring, and a clock that goes back changes nothing.
        history.push(4_000_000, Some(5.0), Some(9));
        history.push(3_000_000, Some(6.0), Some(9));
        assert_eq!(history.series(4_000_000, 600).rates, [Some(5.0)]);
    }

    proptest! {
        #[test]
        fn no_times_make_it_grow(pushes: Vec<(u64, bool)>, now: u64, span: u64) {
            let mut history = History::default();
            for (at, limited) in pushes {
                history.push(at, Some(1.0), limited.then_some(8000));
            }
            let series = history.series(now, span);
            prop_assert!(series.rates.len() <= MINUTES);
            prop_assert!(history.seconds.values.len() <= SECONDS);
        }
    }
}
