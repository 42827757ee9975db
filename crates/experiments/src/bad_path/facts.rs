//! What a run shows.

use serde::Serialize;

use crate::error::ExperimentError;
use crate::samples::Samples;

/// What a run shows, of the time after the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Facts {
    /// Goodput, in Mbit/s.
    pub mbit: f64,
    /// The longest time in which nothing arrived, in seconds: as exact as the samples are dense, a tenth
    /// of a second in `get` and `send`.
    pub pause_seconds: f64,
    /// When that ended, in seconds from the start of the transfer.
    pub resumed_at: f64,
}

impl Facts {
    /// The facts between two times.
    ///
    /// # Errors
    /// [`ExperimentError::Request`] if the transfer had ended before the first.
    pub(super) fn of(samples: &Samples, (from, to): (f64, f64)) -> Result<Self, ExperimentError> {
        if to <= from {
            return Err(ExperimentError::Request(format!(
                "the transfer had ended after {to:.1} of {from} s that its start may take: give more --time"
            )));
        }
        let (pause_seconds, resumed_at) = samples.longest_pause(from, to);
        Ok(Self {
            mbit: samples.rate(from, to),
            pause_seconds,
            resumed_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_ended_at_once_shows_nothing() {
        let samples = Samples(vec![(0.0, 0.0), (2.0, 100.0)]);
        let error = Facts::of(&samples, (3.0, 2.0)).unwrap_err().to_string();
        assert!(error.contains("--time"), "{error}");
        let facts = Facts::of(&samples, (1.0, 2.0)).unwrap();
        assert_eq!((facts.pause_seconds, facts.resumed_at), (1.0, 2.0));
    }
}
