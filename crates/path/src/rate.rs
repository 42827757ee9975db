//! Rates for people.

use std::fmt;

/// Bits per second, printed as `12.5 Mbit/s`.
pub(crate) struct Rate(pub u64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} Mbit/s", self.0 as f64 / 1e6)
    }
}
