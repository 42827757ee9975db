//! The attributes of HTB (`linux/pkt_sched.h`).

use crate::wire::attribute::{Writer, read};

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;

/// The version of HTB's interface, which the kernel checks.
const VERSION: u32 = 3;
/// Divisor with which HTB derives the quantum of a class that has none; this is the kernel's
/// default.
const RATE_TO_QUANTUM: u32 = 10;
/// `TC_LINKLAYER_ETHERNET`: frames are counted with their actual length. Without it the kernel
/// requires a table of transmission times with every rate.
const LINK_LAYER: u8 = 1;

/// Nanoseconds in a tick, the kernel's unit for bursts (`PSCHED_SHIFT`, the same on all machines).
const TICK: u128 = 64;

/// A microsecond in ticks, rounded up: tc(8) rounds bursts down to whole ones.
const MICROSECOND: u32 = 16;

/// The length of `struct tc_ratespec` and of `struct tc_htb_opt`.
const RATE_LENGTH: usize = 12;
const PARMS_LENGTH: usize = 2 * RATE_LENGTH + 20;

/// The time in ticks to send `bytes`, rounded down as by tc(8).
pub(crate) fn ticks(bytes: u64, bytes_per_second: u64) -> u32 {
    let nanoseconds = u128::from(bytes) * 1_000_000_000;
    let ticks = nanoseconds / (u128::from(bytes_per_second.max(1)) * TICK);
    u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
}

/// The least number of bytes that take this many ticks.
pub(crate) fn bytes(ticks: u32, bytes_per_second: u64) -> u64 {
    let bytes = u128::from(ticks) * TICK * u128::from(bytes_per_second);
    u64::try_from(bytes.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

/// The parameters of an HTB class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    /// Guaranteed rate, in bytes per second.
    pub rate: u64,
    /// Maximum rate while other classes do not use theirs, in bytes per second.
    pub ceil: u64,
    /// Burst at the guaranteed rate, in ticks.
    pub burst: u32,
    /// Burst at the maximum rate, in ticks.
    pub ceil_burst: u32,
    /// Bytes to send before the next class of the parent has its turn.
    pub quantum: u32,
}

/// Writes the options of an HTB that puts packets into the class with this minor number unless a filter
/// says otherwise, and sends them at once if there is no such class.
pub(crate) fn write_discipline(to: &mut Writer, default_class: u16) {
    // struct tc_htb_glob; the kernel ignores debug and direct_pkts here.
    let words = [VERSION, RATE_TO_QUANTUM, u32::from(default_class), 0, 0];
    to.words(TCA_HTB_INIT, &words);
}

impl Class {
    /// Whether two classes differ by no more than tc(8) rounds.
    pub fn is_like(&self, other: &Self) -> bool {
        let exact = |class: &Self| (class.rate, class.ceil, class.quantum);
        exact(self) == exact(other)
            && self.burst.abs_diff(other.burst) <= MICROSECOND
            && self.ceil_burst.abs_diff(other.ceil_burst) <= MICROSECOND
    }

    /// Writes the options of the class.
    pub fn write(&self, to: &mut Writer) {
        let mut parms = Vec::with_capacity(PARMS_LENGTH);
        for rate in [self.rate, self.ceil] {
            // struct tc_ratespec; the kernel uses only link layer and rate here.
            parms.extend([0, LINK_LAYER, 0, 0, 0, 0, 0, 0]);
            // A rate above 32 bits is in a separate 64-bit attribute.
            let low = u32::try_from(rate).unwrap_or(u32::MAX);
            parms.extend(low.to_ne_bytes());
        }
        let (level, priority) = (0, 0);
        for word in [self.burst, self.ceil_burst, self.quantum, level, priority] {
            parms.extend(u32::to_ne_bytes(word));
        }
        to.bytes(TCA_HTB_PARMS, &parms);
        to.bytes(TCA_HTB_RATE64, &self.rate.to_ne_bytes());
        to.bytes(TCA_HTB_CEIL64, &self.ceil.to_ne_bytes());
    }

    /// Reads a class's options from the kernel; `None` if their format is not the documented one.
    pub fn read(options: &[u8]) -> Option<Self> {
        let mut parms = None;
        let (mut rate, mut ceil) = (None, None);
        for (kind, value) in read(options) {
            match kind {
                TCA_HTB_PARMS => parms = Some(<[u8; PARMS_LENGTH]>::try_from(value).ok()?),
                TCA_HTB_RATE64 => rate = Some(u64::from_ne_bytes(value.try_into().ok()?)),
                TCA_HTB_CEIL64 => ceil = Some(u64::from_ne_bytes(value.try_into().ok()?)),
                _ => {}
            }
        }
        let parms = parms?;
        let (words, _) = parms.as_chunks();
        let word = |at: usize| u32::from_ne_bytes(words[at / 4]);
        Some(Self {
            // Without the 64-bit attribute the rate fits into 32 bits.
            rate: rate.unwrap_or(word(RATE_LENGTH - 4).into()),
            ceil: ceil.unwrap_or(word(2 * RATE_LENGTH - 4).into()),
            burst: word(2 * RATE_LENGTH),
            ceil_burst: word(2 * RATE_LENGTH + 4),
            quantum: word(2 * RATE_LENGTH + 8),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(class: &Class) -> Vec<u8> {
        let mut writer = Writer::default();
        class.write(&mut writer);
        writer.into_bytes()
    }

    fn any_class() -> impl Strategy<Value = Class> {
        let rate = prop_oneof![0..1_u64 << 33, any::<u64>()];
        (rate.clone(), rate, any::<[u32; 3]>()).prop_map(
            |(rate, ceil, [burst, ceil_burst, quantum])| Class {
                rate,
                ceil,
                burst,
                ceil_burst,
                quantum,
            },
        )
    }

    #[test]
    fn ticks_are_64_nanoseconds() {
        assert_eq!(ticks(1_250_000, 1_250_000), 1_000_000_000 / 64);
        assert_eq!(ticks(1, 1_000_000_000), 1);
        assert_eq!(ticks(u64::MAX, 1), u32::MAX);
    }

    #[test]
    fn parms_are_laid_out_as_in_tc_htb_opt() {
        let class = Class {
            rate: 1_250_000,
            ceil: 1_250_000,
            burst: 20_000,
            ceil_burst: 20_000,
            quantum: 1,
        };
        let written = written(&class);
        let (kind, parms) = read(&written).next().unwrap();
        assert_eq!((kind, parms.len()), (1, 44));
        assert_eq!(parms[1], 1);
        assert_eq!(parms[8..12], 1_250_000_u32.to_ne_bytes());
        assert_eq!(parms[13], 1);
        assert_eq!(parms[20..24], 1_250_000_u32.to_ne_bytes());
        assert_eq!(parms[24..28], 20_000_u32.to_ne_bytes());
        assert_eq!(parms[32..36], 1_u32.to_ne_bytes());
    }

    proptest! {
        #[test]
        fn written_options_are_read_unchanged(class in any_class()) {
            prop_assert_eq!(Class::read(&written(&class)), Some(class));
        }

        /// Kernels omit the 64-bit attributes if they are not needed.
        #[test]
        fn small_rates_are_read_without_64_bit_attributes(class in any_class()) {
            let fits = u32::try_from(class.rate.max(class.ceil)).is_ok();
            let read = Class::read(&written(&class)[..4 + PARMS_LENGTH]).unwrap();
            prop_assert_eq!(read == class, fits);
        }

        #[test]
        fn ticks_of_bytes_of_ticks_are_the_same(
            ticks_before in 100..10_000_000_u32,
            rate in 1_000..12_500_000_000_u64,
        ) {
            let bytes = bytes(ticks_before, rate);
            let byte = 1_000_000_000 / 64 / rate + 1;
            prop_assert!(u64::from(ticks(bytes, rate) - ticks_before) <= byte);
        }

        #[test]
        fn reading_any_bytes_never_panics(
            class in any_class(),
            random in prop::collection::vec(any::<u8>(), 0..100),
            cut in any::<prop::sample::Index>(),
        ) {
            let _ = Class::read(&random);
            let whole = written(&class);
            let cut = &whole[..cut.index(whole.len())];
            if let Some(read) = Class::read(cut) {
                prop_assert_eq!(read.burst, class.burst);
            }
        }
    }
}
