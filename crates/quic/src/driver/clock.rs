//! One clock for what the connections of a host send.
//!
//! Connections that send every half a millisecond, each at times of its own, wake everything on their way
//! as often as all of them send. What falls due at ticks leaves together. The ticks are those of the
//! host's clock, so that they are the same in all its processes.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A moment, and what the host's clock showed then.
static ORIGIN: LazyLock<(Instant, Duration)> = LazyLock::new(|| {
    let shown = clock_gettime(ClockId::Monotonic);
    // It shows neither less than zero, nor a second or more of nanoseconds.
    let seconds = u64::try_from(shown.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(shown.tv_nsec).unwrap_or_default();
    (Instant::now(), Duration::new(seconds, nanos))
});

/// The tick nearest to `at`, of those every `period`.
pub(super) fn nearest_tick(at: Instant, period: Duration) -> Instant {
    let (origin, shown) = *ORIGIN;
    let shown = match at.checked_duration_since(origin) {
        Some(after) => shown + after,
        None => shown.saturating_sub(origin.duration_since(at)),
    };
    let since = Duration::from_nanos((shown.as_nanos() % period.as_nanos().max(1)) as u64);
    let until = period.saturating_sub(since);
    match since < until {
        true => at.checked_sub(since).unwrap_or(at),
        false => at + until,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Ticks are whole periods from each other, and each time is nearest to one of them.
        #[test]
        fn all_times_share_the_ticks(
            period in 1u64..10_000_000,
            times in prop::collection::vec(0u64..10_000_000_000, 2..20),
        ) {
            let (origin, _) = *ORIGIN;
            let length = Duration::from_nanos(period);
            let ticks = times.iter().map(|nanos| {
                let at = origin + Duration::from_nanos(*nanos);
                (at, nearest_tick(at, length))
            });
            let ticks: Vec<_> = ticks.collect();
            for (at, tick) in &ticks {
                let off = at.max(tick).duration_since(*at.min(tick));
                prop_assert!(off <= length / 2 + Duration::from_nanos(1), "{off:?} off");
                let (_, first) = ticks[0];
                let apart = tick.max(&first).duration_since(*tick.min(&first));
                prop_assert_eq!(apart.as_nanos() % u128::from(period), 0);
                prop_assert_eq!(nearest_tick(*tick, length), *tick);
            }
        }
    }
}
