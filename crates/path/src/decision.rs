//! Decisions about paths: a verdict and its reason.

use std::fmt;

use serde::Serialize;

use crate::Reason;

/// The decision about one path. Printed as `left: limit of 2 paths reached`.
///
/// `R` is [`Reason`], or a transfer's own type, such as one for reasons that the remote sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Decision<R = Reason> {
    /// Whether the path is used.
    pub verdict: Verdict,
    /// Why.
    pub reason: R,
}

impl<R> Decision<R> {
    /// A decision with this verdict and reason.
    pub fn new(verdict: Verdict, reason: R) -> Self {
        Self { verdict, reason }
    }

    /// A decision to use the path.
    pub fn taken(reason: R) -> Self {
        Self::new(Verdict::Taken, reason)
    }

    /// A decision not to use the path.
    pub fn left(reason: R) -> Self {
        Self::new(Verdict::Left, reason)
    }

    /// A decision to keep the path connected, but unused for now.
    pub fn waiting(reason: R) -> Self {
        Self::new(Verdict::Waiting, reason)
    }

    /// Converts the reason to another type.
    pub fn convert<T: From<R>>(self) -> Decision<T> {
        Decision::new(self.verdict, self.reason.into())
    }
}

impl<R: fmt::Display> fmt::Display for Decision<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.verdict, self.reason)
    }
}

/// Whether a path is used. Printed and serialized as `taken`, `left`, `waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The path is used.
    Taken,
    /// The path is not used.
    Left,
    /// The path was taken and stays connected, but nothing is sent over it for now.
    Waiting,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
