//! The number of an isolation domain.

use std::fmt;
use std::str::FromStr;

use crate::IdentifierError;
use crate::is_digits;

/// The number of an isolation domain (ISD), 16 bits. Printed in decimal; 0 stands for any ISD.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isd(u16);

impl Isd {
    /// Any ISD.
    pub const WILDCARD: Self = Self(0);

    /// The ISD with this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    #[inline]
    pub const fn to_u16(self) -> u16 {
        self.0
    }

    /// Whether it stands for any ISD.
    #[inline]
    pub const fn is_wildcard(self) -> bool {
        self.0 == 0
    }

    /// Whether both are the same ISD, or one stands for any.
    #[inline]
    pub const fn matches(self, other: Self) -> bool {
        self.is_wildcard() || other.is_wildcard() || self.0 == other.0
    }
}

impl fmt::Display for Isd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Isd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Isd {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        let number = text.parse().ok().filter(|_| is_digits(text, 10));
        let number = number.ok_or_else(|| IdentifierError::Isd(text.into()))?;
        Ok(Self(number))
    }
}
