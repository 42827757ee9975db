//! The algorithms by name.

use std::fmt;
use std::str::FromStr;

/// An algorithm for rate control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// What suits most paths best: BBRv3. It fills long paths with and without losses at random, and
    /// leaves CUBIC its share (`examples/rate_controls.rs` measures all of them).
    #[default]
    Auto,
    /// PCC Allegro as published (NSDI 2015).
    AllegroPublished,
    /// PCC Allegro as Hercules runs it (003).
    AllegroHercules,
    /// PCC Vivace-Latency (NSDI 2018).
    Vivace,
    /// BBRv3 (draft-ietf-ccwg-bbr).
    Bbr,
    /// CUBIC (RFC 9438).
    Cubic,
}

/// No algorithm has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a rate control: choose one of {}", names())]
pub struct UnknownAlgorithm {
    /// The name.
    pub name: String,
}

fn names() -> String {
    Algorithm::ALL.map(Algorithm::name).join(", ")
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 6] = [
        Self::Auto,
        Self::AllegroPublished,
        Self::AllegroHercules,
        Self::Vivace,
        Self::Bbr,
        Self::Cubic,
    ];

    /// Its name, as [`FromStr`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AllegroPublished => "pcc",
            Self::AllegroHercules => "pcc-hercules",
            Self::Vivace => "vivace",
            Self::Bbr => "bbr",
            Self::Cubic => "cubic",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let known = Self::ALL.into_iter().find(|one| one.name() == name);
        known.ok_or_else(|| UnknownAlgorithm { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let error = "reno".parse::<Algorithm>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("\"reno\" is not a rate control: choose one of auto, pcc"),
            "{error}"
        );
    }
}
