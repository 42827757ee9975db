//! A limit in the kernel's units.

use std::time::Duration;

use crate::error::LimitError;
use crate::htb::{Class, ticks};
use crate::limit::{Limit, Owner};

/// Length in bytes of the Ethernet header, which a limit counts but a device's MTU does not.
const ETHERNET_HEADER: u32 = 14;

/// Bytes that one class sends before the next has its turn: the longest packet that may arrive at once,
/// as with less a class needs several turns for it. By default HTB derives it from the rate, too small
/// below 100 kbit/s and too large above 16 Mbit/s, and logs a warning.
const QUANTUM: u32 = 64 << 10;

/// A limit in the kernel's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub class: Class,
    /// Length of the queue in bytes.
    pub queue: u32,
}

impl Shape {
    /// The limit `limit` of `owner` on `device`, whose MTU is `mtu` bytes.
    pub fn new(limit: &Limit, mtu: u32, device: &str, owner: Owner) -> Result<Self, LimitError> {
        let &Limit {
            rate,
            queue,
            least,
            burst,
        } = limit;
        if rate != 0 && !(Limit::MIN_RATE..=Limit::MAX_RATE).contains(&rate) {
            return Err(LimitError::Rate {
                device: device.to_owned(),
                owner,
                rate,
            });
        }
        let frame = u64::from(mtu) + u64::from(ETHERNET_HEADER);
        // A class has no rate of 0. With the least one its queue, of no length, takes nothing.
        let bytes_per_second = rate.max(Limit::MIN_RATE) / 8;
        let in_time = |time: Duration| {
            let bytes = u128::from(bytes_per_second) * time.as_nanos() / 1_000_000_000;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let burst = ticks(in_time(burst).max(2 * frame), bytes_per_second);
        let class = Class {
            rate: bytes_per_second,
            ceil: bytes_per_second,
            burst,
            ceil_burst: burst,
            quantum: QUANTUM,
        };
        if rate == 0 {
            return Ok(Self { class, queue: 0 });
        }
        let bytes = in_time(queue)
            .max(in_time(Duration::from_millis(2)))
            .max(2 * frame)
            .max(u64::from(least));
        let queue = u32::try_from(bytes).map_err(|_| LimitError::Queue {
            device: device.to_owned(),
            owner,
            queue,
            rate,
        })?;
        Ok(Self { class, queue })
    }

    /// The rate in bit/s.
    pub fn rate(&self) -> u64 {
        match self.queue {
            0 => 0,
            _ => self.class.rate.saturating_mul(8),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MTU: u32 = 1500;
    const FRAME: u64 = 1514;

    fn shape(limit: Limit) -> Result<Shape, LimitError> {
        Shape::new(&limit, MTU, "b", Owner::Default)
    }

    fn shape_of(rate: u64, milliseconds: u64) -> Shape {
        shape(Limit::new(rate).with_queue(Duration::from_millis(milliseconds))).unwrap()
    }

    /// The number of bytes sent at a rate within `ticks` of 64 ns.
    fn bytes(ticks: u32, bytes_per_second: u64) -> u64 {
        (u128::from(ticks) * 64 * u128::from(bytes_per_second) / 1_000_000_000) as u64
    }

    #[test]
    fn ten_megabit_per_second() {
        let shape = shape_of(10_000_000, 50);
        assert_eq!(shape.class.rate, 1_250_000);
        assert_eq!(shape.class.ceil, 1_250_000);
        assert_eq!(bytes(shape.class.burst, 1_250_000), 12_500);
        let short = Limit::new(10_000_000).with_burst(Duration::from_millis(1));
        let short = self::shape(short).unwrap();
        // A millisecond of the rate is 1250 bytes, less than a frame.
        assert_eq!(bytes(short.class.burst, 1_250_000), 2 * FRAME);
        assert_eq!(shape.queue, 62_500);
        assert_eq!(shape.rate(), 10_000_000);
    }

    #[test]
    fn a_hundred_gigabit_per_second() {
        let shape = shape_of(Limit::MAX_RATE, 50);
        assert_eq!(shape.class.rate, 12_500_000_000);
        assert_eq!(shape.queue, 625_000_000);
    }

    #[test]
    fn the_usual_queue_holds_what_a_program_can_send_at_once() {
        assert_eq!(shape(Limit::new(500_000)).unwrap().queue, 262_144);
        assert_eq!(shape(Limit::new(100_000_000)).unwrap().queue, 625_000);
    }

    #[test]
    fn with_a_rate_of_0_nothing_passes() {
        let shape = shape(Limit::new(0)).unwrap();
        assert_eq!((shape.queue, shape.rate()), (0, 0));
    }

    #[test]
    fn limits_out_of_bounds_are_refused() {
        for rate in [1, 7_999, Limit::MAX_RATE + 1, u64::MAX] {
            let error = shape(Limit::new(rate)).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "cannot limit other traffic on b to {rate} bit/s: choose 8000 to 100000000000, \
                     or 0 to let nothing pass"
                )
            );
        }
        for (rate, queue) in [
            (Limit::MAX_RATE, Duration::from_secs(1)),
            (8_000, Duration::MAX),
        ] {
            let error = shape(Limit::new(rate).with_queue(queue)).unwrap_err();
            assert!(matches!(error, LimitError::Queue { .. }), "{error}");
        }
    }

    proptest! {
        #[test]
        fn shapes_respect_their_bounds(
            rate in Limit::MIN_RATE..=Limit::MAX_RATE,
            milliseconds in 0..300_u64,
            mtu in 68..65_536_u32,
            least in 0..200_000_u32,
            burst in 0..100_u64,
        ) {
            let queue = Duration::from_millis(milliseconds);
            let limit = Limit {
                rate,
                queue,
                least,
                burst: Duration::from_millis(burst),
            };
            let shape = Shape::new(&limit, mtu, "b", Owner::Default).unwrap();
            let bytes_per_second = rate / 8;
            prop_assert_eq!(shape.class.rate, bytes_per_second);
            prop_assert_eq!(shape.rate(), rate / 8 * 8);
            // A burst is two frames or as long as said, but for the rounding to ticks.
            let found = bytes(shape.class.burst, bytes_per_second);
            let tick = bytes_per_second * 64 / 1_000_000_000 + 1;
            let frame = u64::from(mtu) + 14;
            let wanted = (2 * frame).max(bytes_per_second * burst / 1000);
            prop_assert!(found.abs_diff(wanted) <= tick, "{} {}", found, wanted);
            prop_assert!(u64::from(shape.queue) >= 2 * frame);
            prop_assert!(shape.queue >= least);
        }
    }
}
