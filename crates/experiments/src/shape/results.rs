//! The runs of an experiment, by place and case.

use super::Experiment;
use crate::numbers::{extremes, median, spread};

/// The cases at one place.
pub type Cases<E> = Vec<Series<<E as Experiment>::Case, <E as Experiment>::Run>>;

/// The runs of an experiment.
pub struct Results<E: Experiment + ?Sized> {
    /// The places, each with its cases, in order.
    pub places: Vec<(E::Place, Cases<E>)>,
}

/// The runs of a case.
#[derive(Debug)]
pub struct Series<C, R> {
    /// The case.
    pub case: C,
    /// Its runs, one of each turn until one failed.
    pub runs: Vec<R>,
    /// Why there are fewer runs than requested, or none.
    pub failure: Option<String>,
}

/// A case beside the others at its place: what a row of a table is made of.
#[derive(Debug)]
pub struct Row<'a, E: Experiment + ?Sized> {
    /// The place.
    pub place: &'a E::Place,
    /// The case.
    pub case: &'a E::Case,
    /// Its runs.
    pub series: &'a Series<E::Case, E::Run>,
    /// All cases at the place.
    pub all: &'a [Series<E::Case, E::Run>],
}

impl<E: Experiment + ?Sized> Default for Results<E> {
    fn default() -> Self {
        let places = Vec::new();
        Self { places }
    }
}

impl<E: Experiment + ?Sized> Results<E> {
    /// The rows of each place, in order.
    pub fn rows(&self) -> impl Iterator<Item = (&E::Place, Vec<Row<'_, E>>)> {
        self.places.iter().map(|(place, all)| {
            let rows = all.iter().map(|series| Row {
                place,
                case: &series.case,
                series,
                all,
            });
            (place, rows.collect())
        })
    }
}

impl<C, R> Series<C, R> {
    /// The runs that are to come.
    pub(crate) fn new(case: C) -> Self {
        Self {
            case,
            runs: Vec::new(),
            failure: None,
        }
    }

    /// A value of every run.
    pub fn values(&self, of: impl Fn(&R) -> f64) -> Vec<f64> {
        self.runs.iter().map(of).collect()
    }

    /// The median of a value; `None` without runs.
    pub fn median(&self, of: impl Fn(&R) -> f64) -> Option<f64> {
        (!self.runs.is_empty()).then(|| median(&self.values(of)))
    }

    /// Largest less smallest value, divided by the median; `None` without runs.
    pub fn spread(&self, of: impl Fn(&R) -> f64) -> Option<f64> {
        (!self.runs.is_empty()).then(|| spread(&self.values(of)))
    }

    /// The smallest and the largest value; `None` without runs.
    pub fn extremes(&self, of: impl Fn(&R) -> f64) -> Option<(f64, f64)> {
        (!self.runs.is_empty()).then(|| extremes(&self.values(of)))
    }

    /// Why there is no run.
    pub fn missing(&self) -> Option<&str> {
        let why = self.failure.as_deref().unwrap_or("not measured");
        self.runs.is_empty().then_some(why)
    }
}
