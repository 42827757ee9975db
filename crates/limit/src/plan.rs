//! A limit in the kernel's units.

use std::time::Duration;

use crate::htb::{self, Class};
use crate::limit::{LimitError, LinkLimit};
use crate::link::Link;

/// Length in bytes of the Ethernet header, which a limit counts but a link's MTU does not.
const ETHERNET_HEADER: u64 = 14;

/// Bytes that one class sends before the next has its turn. With a single class the value has no
/// effect; without it the kernel derives one from the rate and logs a warning about it.
const QUANTUM: u32 = 64 << 10;

/// A limit in the kernel's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub class: Class,
    /// Length of the queue in bytes.
    pub queue: u32,
}

impl Plan {
    pub fn new(limit: &LinkLimit, link: &Link) -> Result<Self, LimitError> {
        Self::for_frames(limit, u64::from(link.mtu) + ETHERNET_HEADER, &link.name)
    }

    fn for_frames(limit: &LinkLimit, frame: u64, link: &str) -> Result<Self, LimitError> {
        let &LinkLimit { rate, queue } = limit;
        if !(LinkLimit::MIN_RATE..=LinkLimit::MAX_RATE).contains(&rate) {
            return Err(LimitError::Rate {
                link: link.to_owned(),
                rate,
            });
        }
        let bytes_per_second = rate / 8;
        let millisecond = bytes_per_second / 1000;
        // Senders send at most about 1 ms of the rate at once. With a longer burst the link would
        // exceed the limit for a while after each pause; with a shorter one it would idle whenever
        // the kernel's timer is late.
        let burst = htb::ticks(millisecond.max(2 * frame), bytes_per_second);
        let queue_bytes = u128::from(bytes_per_second) * queue.as_nanos() / 1_000_000_000;
        let queue_bytes = u64::try_from(queue_bytes).unwrap_or(u64::MAX);
        let queue_bytes = queue_bytes.max(2 * millisecond).max(2 * frame);
        Ok(Self {
            class: Class {
                rate: bytes_per_second,
                ceil: bytes_per_second,
                burst,
                ceil_burst: burst,
                quantum: QUANTUM,
            },
            queue: u32::try_from(queue_bytes).map_err(|_| LimitError::Queue {
                link: link.to_owned(),
                queue,
                rate,
            })?,
        })
    }

    /// The limit in terms of [`LinkLimit`], with the queue rounded to the nearest microsecond.
    pub fn limit(&self) -> LinkLimit {
        let rate = self.class.rate;
        let microseconds = u128::from(self.queue) * 1_000_000;
        let queue = (microseconds + u128::from(rate / 2)) / u128::from(rate.max(1));
        LinkLimit {
            rate: rate.saturating_mul(8),
            // No overflow: 2³² seconds are 2⁵² microseconds.
            queue: Duration::from_micros(queue as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME: u64 = 1514;

    fn plan(rate: u64, queue: Duration) -> Result<Plan, LimitError> {
        Plan::for_frames(&LinkLimit { rate, queue }, FRAME, "b")
    }

    /// The number of bytes sent at a rate within `ticks` of 64 ns.
    fn bytes(ticks: u32, bytes_per_second: u64) -> u64 {
        (u128::from(ticks) * 64 * u128::from(bytes_per_second) / 1_000_000_000) as u64
    }

    #[test]
    fn ten_megabit_per_second() {
        let plan = plan(10_000_000, Duration::from_millis(50)).unwrap();
        assert_eq!(plan.class.rate, 1_250_000);
        assert_eq!(plan.class.ceil, 1_250_000);
        // One millisecond of the rate is 1250 bytes, less than a frame.
        assert_eq!(bytes(plan.class.burst, 1_250_000), 2 * FRAME);
        assert_eq!(plan.queue, 62_500);
        assert_eq!(
            plan.limit(),
            LinkLimit {
                rate: 10_000_000,
                queue: Duration::from_millis(50)
            }
        );
    }

    #[test]
    fn a_hundred_gigabit_per_second() {
        let plan = plan(LinkLimit::MAX_RATE, Duration::from_millis(50)).unwrap();
        assert_eq!(plan.class.rate, 12_500_000_000);
        assert_eq!(bytes(plan.class.burst, plan.class.rate), 12_500_000);
        assert_eq!(plan.queue, 625_000_000);
    }

    #[test]
    fn the_queue_holds_two_frames_and_two_milliseconds() {
        assert_eq!(plan(8_000, Duration::ZERO).unwrap().queue, 2 * FRAME as u32);
        assert_eq!(plan(800_000_000, Duration::ZERO).unwrap().queue, 200_000);
    }

    #[test]
    fn limits_out_of_bounds_are_refused() {
        for rate in [0, 7_999, LinkLimit::MAX_RATE + 1, u64::MAX] {
            let error = plan(rate, Duration::ZERO).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("cannot limit b to {rate} bit/s: choose 8000 to 100000000000")
            );
        }
        let error = plan(LinkLimit::MAX_RATE, Duration::from_secs(1)).unwrap_err();
        assert!(matches!(error, LimitError::Queue { .. }), "{error}");
        assert!(plan(8_000, Duration::MAX).is_err());
    }

    proptest! {
        #[test]
        fn plans_respect_their_bounds(
            rate in LinkLimit::MIN_RATE..=LinkLimit::MAX_RATE,
            milliseconds in 0..300_u64,
            frame in 82..65_550_u64,
        ) {
            let queue = Duration::from_millis(milliseconds);
            let plan = Plan::for_frames(&LinkLimit { rate, queue }, frame, "b").unwrap();
            let bytes_per_second = rate / 8;
            prop_assert_eq!(plan.class.rate, bytes_per_second);
            let burst = bytes(plan.class.burst, bytes_per_second);
            prop_assert!(burst >= 2 * frame && burst >= bytes_per_second / 1000);
            // The burst exceeds that by no more than one tick.
            let tick = bytes_per_second * 64 / 1_000_000_000 + 1;
            prop_assert!(burst <= (2 * frame).max(bytes_per_second / 1000) + tick);
            prop_assert!(u64::from(plan.queue) >= 2 * frame);

            let limit = plan.limit();
            prop_assert_eq!(limit.rate, rate / 8 * 8);
            // Reading a limit and setting it again changes nothing if a byte takes at most the
            // microsecond to which the queue is rounded.
            if bytes_per_second >= 1_000_000 {
                prop_assert_eq!(
                    Plan::for_frames(&limit, frame, "b").unwrap().class,
                    plan.class
                );
            }
            if plan.queue > 2 * frame as u32 && milliseconds > 2 {
                let off = limit.queue.abs_diff(queue);
                let byte = Duration::from_secs_f64(1.0 / bytes_per_second as f64);
                prop_assert!(off <= byte + Duration::from_micros(1), "{off:?}");
            }
        }
    }
}
