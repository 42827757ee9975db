//! What carries the connections of programs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CarrierKind {
    /// The kernel's MPTCP: connections outlive the process that carries them.
    Mptcp,
    /// A stream over several QUIC connections. The default: it carries what QUIC carries over the same
    /// paths, sets connections up faster than plain TCP, and needs no MPTCP in either kernel.
    #[default]
    Quic,
}

impl fmt::Display for CarrierKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mptcp => "mptcp",
            Self::Quic => "quic",
        })
    }
}

impl FromStr for CarrierKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "mptcp" => Ok(Self::Mptcp),
            "quic" => Ok(Self::Quic),
            "auto" => Err(
                "carriers are not measured any more: write quic, which is the default, \
                           or mptcp"
                    .to_owned(),
            ),
            _ => Err("write quic or mptcp".to_owned()),
        }
    }
}

/// Some of the carriers, as a byte of the protocol has them: bit 0 is MPTCP, bit 1 QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CarrierSet(pub u8);

impl fmt::Display for CarrierSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            match (self.has(CarrierKind::Mptcp), self.has(CarrierKind::Quic)) {
                (true, true) => "mptcp or quic",
                (true, false) => "mptcp",
                (false, true) => "quic",
                (false, false) => "none",
            },
        )
    }
}

impl CarrierSet {
    /// One carrier.
    pub fn of(kind: CarrierKind) -> Self {
        Self(match kind {
            CarrierKind::Mptcp => 1,
            CarrierKind::Quic => 2,
        })
    }

    /// Those of this set, and `kind`.
    pub fn with(self, kind: CarrierKind) -> Self {
        Self(self.0 | Self::of(kind).0)
    }

    /// Those that are in both sets.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `kind` is one of them.
    pub fn has(self, kind: CarrierKind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    /// Whether there is none that this version knows.
    pub fn is_empty(self) -> bool {
        !self.has(CarrierKind::Mptcp) && !self.has(CarrierKind::Quic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CarrierKind::{Mptcp, Quic};

    #[test]
    fn names_are_read_as_they_are_shown_and_quic_is_the_default() {
        for kind in [Mptcp, Quic] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(CarrierKind::default(), Quic);
        for text in ["auto", "", "tcp"] {
            let error = text.parse::<CarrierKind>().unwrap_err();
            assert!(
                error.contains("write quic") && error.contains("mptcp"),
                "{error}"
            );
        }
    }

    #[test]
    fn both_sides_must_have_a_carrier() {
        let both = CarrierSet::of(Quic).with(Mptcp);
        assert_eq!(
            both.intersection(CarrierSet::of(Quic)),
            CarrierSet::of(Quic)
        );
        assert!(
            CarrierSet::of(Mptcp)
                .intersection(CarrierSet::of(Quic))
                .is_empty()
        );
        // A later version may have others.
        assert!(CarrierSet(4).is_empty() && !CarrierSet(6).is_empty());
    }
}
