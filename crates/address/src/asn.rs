//! The number of an AS.

use std::fmt;
use std::str::FromStr;

use crate::IdentifierError;
use crate::is_digits;

/// The number of an AS, 48 bits; 0 stands for any AS.
///
/// Below 2^32 are the numbers of BGP, printed in decimal; all others are printed as three groups of
/// 16 bits, hexadecimal without leading zeros: `ff00:0:110`. Parsing accepts groups for the numbers
/// of BGP too, capital letters and leading zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asn(u64);

impl Asn {
    /// Any AS.
    pub const WILDCARD: Self = Self(0);
    /// The highest number.
    pub const MAX: Self = Self((1 << Self::BITS) - 1);
    /// Length of the number.
    pub const BITS: u32 = 48;

    /// The AS with this number; `None` above [`MAX`](Self::MAX).
    pub const fn new(number: u64) -> Option<Self> {
        match number <= Self::MAX.0 {
            true => Some(Self(number)),
            false => None,
        }
    }

    /// The AS in the lower 48 bits of `number`.
    #[inline]
    pub(crate) const fn truncate(number: u64) -> Self {
        Self(number & Self::MAX.0)
    }

    /// The number.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// Whether it stands for any AS.
    #[inline]
    pub const fn is_wildcard(self) -> bool {
        self.0 == 0
    }

    /// Whether both are the same AS, or one stands for any.
    #[inline]
    pub const fn matches(self, other: Self) -> bool {
        self.is_wildcard() || other.is_wildcard() || self.0 == other.0
    }
}

impl fmt::Display for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if u32::try_from(self.0).is_ok() {
            return write!(f, "{}", self.0);
        }
        let [_, _, groups @ ..] = self.0.to_be_bytes();
        let [a, b, c] = [0, 2, 4].map(|at| u16::from_be_bytes([groups[at], groups[at + 1]]));
        write!(f, "{a:x}:{b:x}:{c:x}")
    }
}

impl fmt::Debug for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Asn {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        let mut groups = text.split(':');
        let number = match (groups.next(), groups.next(), groups.next(), groups.next()) {
            (Some(number), None, ..) => decimal(number),
            (Some(a), Some(b), Some(c), None) => hexadecimal([a, b, c]),
            _ => None,
        };
        number
            .map(Self)
            .ok_or_else(|| IdentifierError::Asn(text.into()))
    }
}

fn decimal(text: &str) -> Option<u64> {
    let number = text.parse::<u32>().ok();
    number.filter(|_| is_digits(text, 10)).map(u64::from)
}

fn hexadecimal(groups: [&str; 3]) -> Option<u64> {
    groups.into_iter().try_fold(0, |number, group| {
        let value = u16::from_str_radix(group, 16).ok();
        let value = value.filter(|_| is_digits(group, 16))?;
        Some(number << 16 | u64::from(value))
    })
}
