//! Problems that were found.

use std::fmt;

use serde::Serialize;

use crate::code::Code;

/// How much a problem matters. The order is that of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something that is needed does not work.
    Error,
    /// It works, but not well, or not for long.
    Warning,
    /// Something that may not be needed here does not work. Such a finding is not a problem.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// A problem, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What kind of problem it is. It stays the same in later versions.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, with the name of the thing.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl Finding {
    pub(crate) fn new(
        severity: Severity,
        code: Code,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    pub(crate) fn error(code: Code, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, problem, remedy)
    }

    pub(crate) fn warning(
        code: Code,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Warning, code, problem, remedy)
    }

    /// Whether it is a problem, not only a note.
    pub fn is_problem(&self) -> bool {
        self.severity != Severity::Note
    }
}
