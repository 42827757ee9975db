//! What was decided about a path: a verdict and its reason.

use std::fmt;

use serde::Serialize;

use crate::Reason;

/// What was decided about one path. Printed as `left: limit of 2 paths reached`.
///
/// The reason is a [`Reason`] or a transfer's own, such as one that the other end gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Decision<R = Reason> {
    /// Whether the path is used.
    pub verdict: Verdict,
    /// Why.
    pub reason: R,
}

impl<R> Decision<R> {
    /// This, because of `reason`.
    pub fn new(verdict: Verdict, reason: R) -> Self {
        Self { verdict, reason }
    }

    /// Taken, because of `reason`.
    pub fn taken(reason: R) -> Self {
        Self::new(Verdict::Taken, reason)
    }

    /// Left, because of `reason`.
    pub fn left(reason: R) -> Self {
        Self::new(Verdict::Left, reason)
    }

    /// Waiting, because of `reason`.
    pub fn waiting(reason: R) -> Self {
        Self::new(Verdict::Waiting, reason)
    }

    /// The same verdict, with the reason as another type.
    pub fn convert<T: From<R>>(self) -> Decision<T> {
        Decision::new(self.verdict, self.reason.into())
    }
}

impl<R: fmt::Display> fmt::Display for Decision<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.verdict, self.reason)
    }
}

/// Whether a path is used. Printed as, and in serde: `taken`, `left`, `waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is used.
    Taken,
    /// It is not used.
    Left,
    /// It was taken and stays connected, but nothing is sent over it for now.
    Waiting,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
