//! Combinations of strategies, and how they are written.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::candidate::RANKS;
use super::kind::{Picker, Rule, StrategyKind};
use super::strategies::{Disjoint, STRATEGIES, shortest};
use crate::Carbon;
use crate::text::serde_as_text;

/// How paths are chosen: strategies that rank, in order of precedence, and at most one that picks a
/// set. Without a ranking strategy, the fewest hops come first; without a picking one, the first in
/// rank are taken.
///
/// Parsed, printed and serialized as [`STRATEGIES`] with their arguments, separated by commas, such
/// as `latency,disjoint`.
///
/// Two are equal when they are printed alike; their [`Carbon`] tables are not compared.
#[derive(Debug, Clone)]
pub struct Select {
    pub(super) ranks: Vec<&'static StrategyKind>,
    pub(super) picker: Option<Arc<dyn Picker>>,
    pub(super) carbon: Arc<Carbon>,
}

/// Why a text is not a [`Select`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectError {
    /// There is no such strategy.
    #[error(
        "'{0}' is not a path strategy: choose among {names}, for example latency,disjoint",
        names = names()
    )]
    Unknown(String),
    /// The argument after the colon is invalid.
    #[error("'{text}' is not a path strategy: write {remedy}")]
    Argument {
        /// The strategy as it was written.
        text: String,
        /// The valid forms.
        remedy: &'static str,
    },
    /// A strategy is named twice.
    #[error("'{0}' is there twice: write it once")]
    Twice(String),
    /// Two strategies pick a set.
    #[error("'{0}' and '{1}' both pick a set of paths: write one of them")]
    TwoPick(String, String),
    /// There are too many strategies that rank.
    #[error("more than {RANKS} strategies that rank: leave some out")]
    Many,
}

impl Select {
    fn new(ranks: Vec<&'static StrategyKind>, picker: Option<Arc<dyn Picker>>) -> Self {
        Self {
            ranks,
            picker,
            carbon: Arc::default(),
        }
    }

    /// Takes the paths with the fewest hops.
    pub fn shortest() -> Self {
        Self::new(vec![&shortest::KIND], None)
    }

    /// Takes as many paths as possible of which no two share an interface.
    pub fn disjoint() -> Self {
        Self::new(Vec::new(), Some(Arc::new(Disjoint { most: 0 })))
    }

    /// Whether any of the strategies uses a [`Carbon`] table.
    pub fn uses_carbon(&self) -> bool {
        self.ranks.iter().any(|kind| kind.by_carbon)
    }

    /// Only the strategies that rank, for callers that pick the paths themselves, such as
    /// [`Assignment`](crate::Assignment).
    pub fn ranking(&self) -> Self {
        Self {
            picker: None,
            ..self.clone()
        }
    }

    /// Sets the table for the strategies that use one.
    pub fn with_carbon(mut self, table: &Carbon) -> Self {
        self.carbon = Arc::new(table.clone());
        self
    }
}

impl FromStr for Select {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut ranks, mut pickers): (Vec<&StrategyKind>, Vec<Arc<dyn Picker>>) =
            Default::default();
        for text in text.split(',').map(str::trim) {
            let (name, argument) = match text.split_once(':') {
                Some((name, argument)) => (name, Some(argument)),
                None => (text, None),
            };
            let kind = STRATEGIES.iter().find(|kind| kind.name == name);
            let kind = kind.ok_or_else(|| SelectError::Unknown(text.to_owned()))?;
            let unfit = || SelectError::Argument {
                text: text.to_owned(),
                remedy: kind.remedy,
            };
            match kind.rule {
                Rule::Pick(read) => pickers.push(read(argument).ok_or_else(unfit)?),
                Rule::Rank(_) if argument.is_none() => ranks.push(kind),
                Rule::Rank(_) => return Err(unfit()),
            }
        }
        if let [one, other, ..] = &pickers[..] {
            return Err(SelectError::TwoPick(one.text(), other.text()));
        }
        if ranks.len() > RANKS {
            return Err(SelectError::Many);
        }
        for (at, one) in ranks.iter().enumerate() {
            if ranks[..at].iter().any(|other| other.name == one.name) {
                return Err(SelectError::Twice(one.name.to_owned()));
            }
        }
        Ok(Self::new(ranks, pickers.pop()))
    }
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
        let ranks = self.ranks.iter().map(|kind| kind.name.to_owned());
        let picker = self.picker.iter().map(|picker| picker.text());
        f.write_str(&ranks.chain(picker).collect::<Vec<_>>().join(","))
    }
}

impl PartialEq for Select {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Select {}

serde_as_text!(Select);
