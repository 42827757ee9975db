//! Why an experiment could not be run.

use std::fmt::Display;

/// Why an experiment could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The experiment cannot be run as requested. The text names the request and the remedy.
    #[error("{0}")]
    Request(String),
    /// A program is not installed. The text names the remedy.
    #[error("{0}")]
    Missing(&'static str),
    /// A step failed. The text names the step and the cause.
    #[error("{0}")]
    Step(String),
}

impl ExperimentError {
    /// A failed step with this error.
    pub(crate) fn step(error: impl Display) -> Self {
        Self::Step(error.to_string())
    }
}

/// Adds the step to an error, on one line.
pub(crate) trait During<T> {
    /// `starting the seeder: no such file`
    fn during(self, step: impl Display) -> Result<T, ExperimentError>;
}

impl<T, E: Display> During<T> for Result<T, E> {
    fn during(self, step: impl Display) -> Result<T, ExperimentError> {
        self.map_err(|error| ExperimentError::Step(format!("{step}: {error}")))
    }
}
