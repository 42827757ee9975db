//! What a command of `hawser bench` runs.

use super::{Experiment, Observe, Table, run};
use crate::error::ExperimentError;

/// What a command runs: an experiment, or several that make one table.
pub trait Bench {
    /// Runs everything.
    ///
    /// # Errors
    /// As [`run`].
    fn run(&self, observe: Observe<'_>) -> impl Future<Output = Result<Outcome, ExperimentError>>;

    /// Where its figures go.
    fn figures(&self) -> Figures {
        Figures::One
    }
}

/// Where figures go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Figures {
    /// There is at most one.
    One,
    /// Into a folder, as files of at most these names.
    Folder(Vec<String>),
}

/// What a command shows.
#[derive(Debug)]
pub struct Outcome {
    /// The measurements.
    pub table: Table,
    /// The figures, or why they could not be drawn.
    pub figures: Result<Vec<Figure>, ExperimentError>,
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The name of its file, without a folder; empty if it is the only figure.
    pub file: String,
    /// An SVG document.
    pub svg: String,
}

impl Figure {
    /// The only figure of an experiment.
    pub fn only(svg: String) -> Vec<Self> {
        let file = String::new();
        vec![Self { file, svg }]
    }
}

impl<E: Experiment> Bench for E {
    async fn run(&self, observe: Observe<'_>) -> Result<Outcome, ExperimentError> {
        let results = run(self, observe).await?;
        Ok(Outcome {
            table: self.table(&results),
            figures: self.plot(&results),
        })
    }
}

impl Outcome {
    /// Adds the rows, notes and figures of another experiment.
    pub fn extend(&mut self, other: Self) {
        self.table.sections.extend(other.table.sections);
        self.table.notes.extend(other.table.notes);
        match (&mut self.figures, other.figures) {
            (Ok(figures), Ok(others)) => figures.extend(others),
            (figures, Err(error)) => *figures = Err(error),
            (Err(_), Ok(_)) => {}
        }
    }
}
