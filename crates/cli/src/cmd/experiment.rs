//! Runs an experiment until it ends or is interrupted.

use hawser_experiments::ExperimentError;
use hawser_experiments::shape::{Observe, Progress};

use super::process;
use crate::failure::Failure;
use crate::screen::Work;

/// Waits for an experiment that shows its progress, unless it is interrupted: then everything is taken
/// down.
///
/// # Errors
/// When it fails or is interrupted.
pub fn run<T>(
    work: impl AsyncFnOnce(Observe<'_>) -> Result<T, ExperimentError>,
    mut show: impl FnMut(Progress<'_>),
) -> Result<T, Failure> {
    let mut bar = None;
    let mut observe = |progress: Progress<'_>| match progress {
        Progress::Work { what, done, total } => {
            let bar = bar.get_or_insert_with(|| Work::begin(what));
            bar.show(done, total);
        }
        other => {
            bar = None;
            show(other);
        }
    };
    process::small_runtime()?.block_on(async {
        let interrupted = process::interrupted()?;
        tokio::select! {
            done = work(&mut observe) => done.map_err(failure),
            () = interrupted => Err(Failure::job("interrupted: everything was taken down")),
        }
    })
}

/// Distinguishes wrong use from a failed job.
pub fn failure(error: ExperimentError) -> Failure {
    match error {
        ExperimentError::Request(_) => Failure::usage(error),
        _ => Failure::job(error),
    }
}
