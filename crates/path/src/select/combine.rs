//! A combination of strategies, as it is written.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use super::bandwidth::Bandwidth;
use super::carbon::{Carbon, LowestCarbon};
use super::disjoint::Disjoint;
use super::latency::Latency;
use super::shortest::Shortest;
use super::spread::Spread;
use super::strategy::{RANKS, Strategy};

/// How paths are chosen: strategies that rank, in order of precedence, and at most one that picks a
/// set. Where none ranks, the fewest hops come first; where none picks, the first are taken.
///
/// Parsed from, printed as, and in serde: names with commas between them, such as
/// `latency,disjoint`. `shortest`, `latency`, `bandwidth` and `carbon` rank. These pick:
///
/// - `disjoint`: paths that share no interface. `disjoint:K` lets further paths in that share up
///   to `K` interfaces with those taken (a link has two), `disjoint:any` whatever they share.
/// - `spread:N%`: paths over which no AS but the two ends carries more than `N` per cent.
///
/// Two are equal when they are printed alike; a [`Carbon`] table does not show there.
#[derive(Debug, Clone)]
pub struct Select {
    pub(super) strategies: Vec<Arc<dyn Strategy>>,
}

/// A text says no way to choose paths.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectError {
    /// There is no such strategy.
    #[error(
        "'{0}' is no way to select paths: choose among shortest, latency, bandwidth, carbon, \
         disjoint and spread, for example latency,disjoint"
    )]
    Unknown(String),
    /// What follows the colon does not fit.
    #[error("'{text}' is no way to select paths: write {remedy}")]
    Argument {
        /// The strategy as it was written.
        text: String,
        /// What may be written.
        remedy: &'static str,
    },
    /// A strategy is there twice.
    #[error("'{0}' is there twice: write it once")]
    Twice(String),
    /// Two strategies pick a set.
    #[error("'{0}' and '{1}' both pick a set of paths: write one of them")]
    TwoPick(String, String),
    /// There are too many.
    #[error("more than {RANKS} strategies that rank: leave some out")]
    Many,
}

impl Select {
    /// The paths with the fewest hops.
    pub fn shortest() -> Self {
        Self {
            strategies: vec![Arc::new(Shortest)],
        }
    }

    /// As many paths as possible of which no two share an interface.
    pub fn disjoint() -> Self {
        Self {
            strategies: vec![Arc::new(Disjoint { most: 0 })],
        }
    }

    /// These strategies, those that rank in their order.
    ///
    /// # Errors
    /// When two of them pick, two have the same text, or more than 7 do not pick.
    pub fn of(strategies: Vec<Arc<dyn Strategy>>) -> Result<Self, SelectError> {
        let (picks, mut ordered): (Vec<_>, Vec<_>) =
            strategies.into_iter().partition(|one| one.picks());
        if let [one, other, ..] = &picks[..] {
            return Err(SelectError::TwoPick(one.text(), other.text()));
        }
        if ordered.len() > RANKS {
            return Err(SelectError::Many);
        }
        ordered.extend(picks);
        for (at, one) in ordered.iter().enumerate() {
            if ordered[..at].iter().any(|other| other.text() == one.text()) {
                return Err(SelectError::Twice(one.text()));
            }
        }
        Ok(Self {
            strategies: ordered,
        })
    }

    /// Whether `carbon` is among the strategies, so that a [`Carbon`] table is of use.
    pub fn uses_carbon(&self) -> bool {
        self.strategies.iter().any(|one| one.text() == "carbon")
    }

    /// Only the strategies that rank: for a choice in which something else picks, such as
    /// [`Assignment`](crate::Assignment).
    pub fn ranking(&self) -> Self {
        let ranks = self.strategies.iter().filter(|one| !one.picks());
        Self {
            strategies: ranks.cloned().collect(),
        }
    }

    /// The same with a table for `carbon`, where it is among the strategies.
    pub fn with_carbon(mut self, table: &Carbon) -> Self {
        for one in &mut self.strategies {
            if one.text() == "carbon" {
                *one = Arc::new(LowestCarbon(table.clone()));
            }
        }
        self
    }
}

impl FromStr for Select {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of(text.split(',').map(one).collect::<Result<_, _>>()?)
    }
}

/// Reads one strategy.
fn one(text: &str) -> Result<Arc<dyn Strategy>, SelectError> {
    let text = text.trim();
    let bad = |remedy| SelectError::Argument {
        text: text.to_owned(),
        remedy,
    };
    // `parse` would let a sign through.
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse::<u16>().ok(),
        false => None,
    };
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    let plain = |strategy: Arc<dyn Strategy>| match argument {
        None => Ok(strategy),
        Some(_) => Err(bad("nothing after its name")),
    };
    match name {
        "shortest" => plain(Arc::new(Shortest)),
        "latency" => plain(Arc::new(Latency)),
        "bandwidth" => plain(Arc::new(Bandwidth)),
        "carbon" => plain(Arc::new(LowestCarbon::default())),
        "disjoint" => {
            let most = match argument {
                None => Some(0),
                Some("any") => Some(usize::MAX),
                Some(most) => number(most).map(usize::from),
            };
            let most = most.ok_or_else(|| bad("disjoint, disjoint:2 or disjoint:any"))?;
            Ok(Arc::new(Disjoint { most }))
        }
        "spread" => {
            let percent = argument.and_then(|text| number(text.strip_suffix('%')?));
            let percent = percent.and_then(|percent| u8::try_from(percent).ok());
            let percent = percent.filter(|percent| (1..=100).contains(percent));
            let percent = percent.ok_or_else(|| bad("spread:40%, with 1 to 100"))?;
            Ok(Arc::new(Spread { percent }))
        }
        _ => Err(SelectError::Unknown(text.to_owned())),
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, one) in self.strategies.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}", one.text())?;
        }
        Ok(())
    }
}

impl PartialEq for Select {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Select {}

impl Serialize for Select {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Select {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
