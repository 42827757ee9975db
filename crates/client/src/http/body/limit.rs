//! Limits of seeding and of rates, as numbers or words.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::choice::Choice;
use crate::settings::RateChange;

/// A limit of a rate: bit/s, or `"unlimited"`. Less than 8 count as 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RateLimit {
    /// A number.
    Number(u64),
    /// None.
    Word(RateWord),
}

/// A limit of a rate that is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateWord {
    /// None.
    Unlimited,
}

impl From<Option<u64>> for RateLimit {
    fn from(rate: Option<u64>) -> Self {
        rate.map_or(Self::Word(RateWord::Unlimited), Self::Number)
    }
}

impl RateLimit {
    /// The change to this limit; none if it is not given.
    pub(crate) fn change(limit: Option<Self>) -> RateChange {
        match limit {
            None => RateChange::default(),
            Some(Self::Number(rate)) => RateChange::to(Some(rate)),
            Some(Self::Word(RateWord::Unlimited)) => RateChange::to(None),
        }
    }
}

/// A limit: a number from 0 up, `"unlimited"`, or `"default"` for that of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Limit {
    /// A number.
    Number(f64),
    /// None, or that of the daemon.
    Word(LimitWord),
}

/// A limit that is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitWord {
    /// None.
    Unlimited,
    /// That of the daemon.
    Default,
}

impl Default for Limit {
    /// That of the daemon.
    fn default() -> Self {
        Self::Word(LimitWord::Default)
    }
}

impl Limit {
    /// The limit as the record has it.
    pub(crate) fn choice(self) -> Choice<f64> {
        match self {
            Self::Number(number) => Choice::Own(number),
            Self::Word(LimitWord::Unlimited) => Choice::Unlimited,
            Self::Word(LimitWord::Default) => Choice::Default,
        }
    }

    /// The same for a time in seconds, of which fractions are cut off.
    ///
    /// # Errors
    /// If the number is not a time.
    pub(crate) fn seconds(self) -> Result<Choice<u64>, String> {
        match self.choice() {
            Choice::Own(seconds) if !(0.0..=1e15).contains(&seconds) => {
                Err(format!("{seconds} is not a time: write seconds from 0 up"))
            }
            Choice::Own(seconds) => Ok(Choice::Own(seconds as u64)),
            Choice::Unlimited => Ok(Choice::Unlimited),
            Choice::Default => Ok(Choice::Default),
        }
    }
}

impl Limit {
    /// A limit of peers, of which fractions are cut off: `None` is that of the daemon.
    pub(crate) fn peers(self) -> Option<usize> {
        match self {
            Self::Number(number) => Some(number as usize),
            Self::Word(LimitWord::Unlimited) => Some(usize::MAX),
            Self::Word(LimitWord::Default) => None,
        }
    }

    pub(super) fn of_peers(limit: Option<usize>) -> Self {
        match limit {
            None => Self::Word(LimitWord::Default),
            Some(usize::MAX) => Self::Word(LimitWord::Unlimited),
            Some(limit) => Self::Number(limit as f64),
        }
    }
}

impl From<Choice<f64>> for Limit {
    fn from(choice: Choice<f64>) -> Self {
        match choice {
            Choice::Own(number) => Self::Number(number),
            Choice::Unlimited => Self::Word(LimitWord::Unlimited),
            Choice::Default => Self::Word(LimitWord::Default),
        }
    }
}

impl From<Choice<u64>> for Limit {
    fn from(choice: Choice<u64>) -> Self {
        match choice {
            Choice::Own(seconds) => Self::Number(seconds as f64),
            Choice::Unlimited => Self::Word(LimitWord::Unlimited),
            Choice::Default => Self::Word(LimitWord::Default),
        }
    }
}
