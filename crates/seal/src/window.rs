//! Which packet numbers were received, and how numbers are completed.

/// How many of the newest numbers are remembered. Packets with older numbers are dropped.
pub(crate) const WINDOW: u64 = 1 << 16;

/// Numbers are below this, so that they fit a variable-length integer (RFC 9000, 12.3).
const END: u64 = 1 << 62;

const BITS: u64 = u64::BITS as u64;

/// The newest packet numbers, received or not.
#[derive(Debug)]
pub(crate) struct Window {
    /// One more than the largest number received.
    next: u64,
    /// A bit for each of the newest [`WINDOW`] numbers, at the number modulo the window.
    bits: Box<[u64]>,
}

/// Why a number is not new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotNew {
    Replayed,
    TooOld,
}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            bits: vec![0; (WINDOW / BITS) as usize].into(),
        }
    }

    /// One more than the largest number received.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Completes the low 32 bits of a number to the number nearest to the next one (RFC 9000, A.3).
    #[inline]
    pub(crate) fn complete(&self, low: u32) -> u64 {
        const SPAN: u64 = 1 << 32;
        let candidate = (self.next & !(SPAN - 1)) | u64::from(low);
        if candidate + SPAN / 2 <= self.next && candidate + SPAN < END {
            candidate + SPAN
        } else if candidate > self.next + SPAN / 2 && candidate >= SPAN {
            candidate - SPAN
        } else {
            candidate
        }
    }

    /// Whether `number` may still be received.
    #[inline]
    pub(crate) fn check(&self, number: u64) -> Result<(), NotNew> {
        if number >= self.next {
            return Ok(());
        }
        if self.next - number > WINDOW {
            return Err(NotNew::TooOld);
        }
        let (word, bit) = Self::at(number);
        match self.bits[word] & bit {
            0 => Ok(()),
            _ => Err(NotNew::Replayed),
        }
    }

    /// Records that `number` was received.
    #[inline]
    pub(crate) fn insert(&mut self, number: u64) {
        if number >= self.next {
            self.advance(number + 1);
        }
        let (word, bit) = Self::at(number);
        self.bits[word] |= bit;
    }

    /// Forgets the numbers that leave the window, whose bits those up to `next` take.
    #[inline]
    fn advance(&mut self, next: u64) {
        if next - self.next >= WINDOW {
            self.bits.fill(0);
        } else {
            let mut number = self.next;
            while number < next {
                let (word, bit) = Self::at(number);
                if bit == 1 && next - number >= BITS {
                    self.bits[word] = 0;
                    number += BITS;
                } else {
                    self.bits[word] &= !bit;
                    number += 1;
                }
            }
        }
        self.next = next;
    }

    #[inline]
    fn at(number: u64) -> (usize, u64) {
        let index = number % WINDOW;
        ((index / BITS) as usize, 1 << (index % BITS))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_completed_to_the_nearest() {
        let mut window = Window::new();
        assert_eq!(window.complete(7), 7);
        window.next = 0xa82f_30eb;
        assert_eq!(window.complete(0xa82f_9b32), 0xa82f_9b32);
        assert_eq!(window.complete(5), (1 << 32) + 5);
        window.next = (1 << 32) + 10;
        assert_eq!(window.complete(u32::MAX), u64::from(u32::MAX));
        assert_eq!(window.complete(10), (1 << 32) + 10);
    }

    proptest! {
        #[test]
        fn numbers_near_the_next_are_completed(next in 0..END, shift in 0..62, near: i32) {
            let mut window = Window::new();
            window.next = next >> shift;
            let number = window.next.saturating_add_signed(near.into()).min(END - 1);
            prop_assert_eq!(window.complete(number as u32), number);
        }

        #[test]
        fn the_window_equals_a_set(steps in prop::collection::vec((0..20_u32, any::<u64>()), 1..200)) {
            let (mut window, mut model, mut largest) = (Window::new(), HashSet::new(), None);
            for (shift, random) in steps {
                // Numbers ahead by up to 2^19, and up to the same below.
                let step = (random >> 1) % (1 << shift);
                let base: u64 = largest.unwrap_or(0);
                let number = if random & 1 == 0 { base + step } else { base.saturating_sub(step) };
                let expected = match largest {
                    Some(largest) if largest >= number + WINDOW => Err(NotNew::TooOld),
                    _ if model.contains(&number) => Err(NotNew::Replayed),
                    _ => Ok(()),
                };
                prop_assert_eq!(window.check(number), expected, "{} after {:?}", number, largest);
                if expected.is_ok() {
                    window.insert(number);
                    model.insert(number);
                    largest = largest.max(Some(number));
                }
            }
        }
    }
}
