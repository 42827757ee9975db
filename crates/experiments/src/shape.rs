//! What every experiment is: networks or other beds, cases that take turns on each, and a table and
//! figures made of their runs.
//!
//! [`run`] sets up the bed of each place, lets every case run once in each turn, so that other load on
//! the machine affects all alike, and takes the bed down. The [`Results`] have the runs by case; the
//! experiment makes a [`Table`] of them by its [`Columns`], which serve the JSON object and the printed
//! table alike. A [`Bench`] is what a command runs: an experiment, or several that make one table.

mod bench;
mod choice;
mod columns;
mod results;
mod table;

use std::fmt::Display;

pub use self::bench::{Bench, Figure, Figures, Outcome};
#[cfg(test)]
pub(crate) use self::choice::assert_named;
pub(crate) use self::choice::choices;
pub use self::choice::{Choice, choice};
pub use self::columns::{Columns, Format};
pub use self::results::{Cases, Results, Row, Series};
pub use self::table::{Section, Table};
use crate::error::ExperimentError;

/// An experiment.
pub trait Experiment {
    /// What the cases run on one after the other: what distinguishes one network from the next.
    type Place;
    /// A network that is up, with its servers.
    type Bed: Bed;
    /// What is compared.
    type Case: Display;
    /// What one run shows.
    type Run;

    /// Number of runs of each case at each place.
    fn turns(&self) -> u16;

    /// The places, in order.
    fn places(&self) -> Vec<Self::Place>;

    /// The name of a place, where there are several.
    fn heading(&self, _place: &Self::Place) -> Option<String> {
        None
    }

    /// The cases at a place, in the order in which they take turns.
    fn cases(&self, place: &Self::Place) -> Vec<Self::Case>;

    /// Sets up a place; `observe` sees what takes time until it is ready.
    fn set_up(
        &self,
        place: &Self::Place,
        observe: Observe<'_>,
    ) -> impl Future<Output = Result<Self::Bed, ExperimentError>>;

    /// Runs a case once.
    fn measure(
        &self,
        bed: &Self::Bed,
        case: &Self::Case,
    ) -> impl Future<Output = Result<Self::Run, ExperimentError>>;

    /// What the failure of a case does.
    fn on_failure(&self) -> OnFailure {
        OnFailure::LeaveOut
    }

    /// What a run shows, in a few words.
    fn summary(&self, run: &Self::Run) -> String;

    /// Sums up all runs.
    fn table(&self, results: &Results<Self>) -> Table;

    /// Draws all runs.
    ///
    /// # Errors
    /// [`ExperimentError::Step`] if a figure cannot be drawn.
    fn plot(&self, _results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        Ok(Vec::new())
    }
}

/// What the failure of a case does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The case does not run again: what is missing on this machine fails once, not in every turn.
    LeaveOut,
    /// The case runs again in the next turn.
    Retry,
    /// The experiment ends.
    End,
}

/// What cases run on. Dropping it takes it down, too.
pub trait Bed {
    /// Takes everything down.
    ///
    /// # Errors
    /// When something cannot be taken down.
    fn take_down(self) -> impl Future<Output = Result<(), ExperimentError>>;
}

/// Progress of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Something long is being done while a place is set up.
    Work {
        /// What.
        what: &'static str,
        /// How much is done.
        done: u64,
        /// How much there is.
        total: u64,
    },
    /// A part of what a place needs is ready.
    Ready(&'a str),
    /// A place is set up.
    Place(&'a str),
    /// A case starts to run.
    Started {
        /// The case.
        case: &'a str,
    },
    /// A case has run.
    Run {
        /// The number of the turn, from 1.
        turn: u16,
        /// Number of turns.
        turns: u16,
        /// The case.
        case: &'a str,
        /// What the run shows.
        summary: &'a str,
    },
    /// A case has failed.
    Failed {
        /// The case.
        case: &'a str,
        /// Why.
        why: &'a str,
    },
}

/// What sees the progress of an experiment.
pub type Observe<'a> = &'a mut dyn FnMut(Progress<'_>);

/// Runs an experiment. What fails leaves a series that says why.
///
/// # Errors
/// When a place cannot be set up or taken down, and with [`OnFailure::End`] when a case fails.
pub async fn run<E: Experiment>(
    experiment: &E,
    observe: Observe<'_>,
) -> Result<Results<E>, ExperimentError> {
    let (turns, on_failure) = (experiment.turns(), experiment.on_failure());
    let mut results = Results::default();
    for place in experiment.places() {
        let bed = experiment.set_up(&place, observe).await?;
        if let Some(heading) = experiment.heading(&place) {
            observe(Progress::Place(&heading));
        }
        let cases = experiment.cases(&place).into_iter();
        let mut all: Cases<E> = cases.map(Series::new).collect();
        for turn in 1..=turns {
            for series in &mut all {
                if series.failure.is_some() && on_failure == OnFailure::LeaveOut {
                    continue;
                }
                let case = series.case.to_string();
                observe(Progress::Started { case: &case });
                match experiment.measure(&bed, &series.case).await {
                    Ok(run) => {
                        observe(Progress::Run {
                            turn,
                            turns,
                            case: &case,
                            summary: &experiment.summary(&run),
                        });
                        series.runs.push(run);
                    }
                    Err(error) if on_failure == OnFailure::End => return Err(error),
                    Err(error) => {
                        let why = error.to_string();
                        observe(Progress::Failed {
                            case: &case,
                            why: &why,
                        });
                        series.failure = Some(why);
                    }
                }
            }
        }
        bed.take_down().await?;
        results.places.push((place, all));
    }
    Ok(results)
}

#[cfg(test)]
mod tests;
