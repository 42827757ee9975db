//! A combination of strategies, as it is written.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::cost::RANKS;
use super::strategies::{Disjoint, STRATEGIES, Shortest};
use super::strategy::Strategy;
use crate::Carbon;
use crate::text::serde_as_text;

/// How paths are chosen: strategies that rank, in order of precedence, and at most one that picks a
/// set. Where none ranks, the fewest hops come first; where none picks, the first are taken.
///
/// Parsed from, printed as, and in serde: [`STRATEGIES`] as they are written, with commas between
/// them, such as `latency,disjoint`.
///
/// Two are equal when they are printed alike; a [`Carbon`] table does not show there.
#[derive(Debug, Clone)]
pub struct Select {
    pub(super) strategies: Vec<Arc<dyn Strategy>>,
}

/// A text is not a [`Select`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectError {
    /// There is no such strategy.
    #[error(
        "'{0}' is not a path strategy: choose among {names}, for example latency,disjoint",
        names = names()
    )]
    Unknown(String),
    /// What follows the colon does not fit.
    #[error("'{text}' is not a path strategy: write {remedy}")]
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

    /// Whether a [`Carbon`] table is of use to any of the strategies.
    pub fn uses_carbon(&self) -> bool {
        let table = Carbon::default();
        let mut strategies = self.strategies.iter();
        strategies.any(|one| one.with_carbon(&table).is_some())
    }

    /// Only the strategies that rank: for a choice in which something else picks, such as
    /// [`Assignment`](crate::Assignment).
    pub fn ranking(&self) -> Self {
        let ranks = self.strategies.iter().filter(|one| !one.picks());
        Self {
            strategies: ranks.cloned().collect(),
        }
    }

    /// The same with this table for the strategies that use one.
    pub fn with_carbon(mut self, table: &Carbon) -> Self {
        for one in &mut self.strategies {
            if let Some(with_table) = one.with_carbon(table) {
                *one = with_table;
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
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    let kind = STRATEGIES.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| SelectError::Unknown(text.to_owned()))?;
    (kind.read)(argument).ok_or_else(|| SelectError::Argument {
        text: text.to_owned(),
        remedy: kind.remedy,
    })
}

/// The names of all strategies: `shortest, latency and disjoint`.
fn names() -> String {
    let names: Vec<&str> = STRATEGIES.iter().map(|kind| kind.name).collect();
    match names.split_last() {
        Some((last, [_, ..])) => format!("{} and {last}", names[..names.len() - 1].join(", ")),
        _ => names.concat(),
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

serde_as_text!(Select);
