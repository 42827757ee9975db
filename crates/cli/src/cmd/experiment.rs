//! Runs an experiment until it ends or is interrupted.

use hawser_experiments::{DownloadExperiment, Event, ExperimentError, Options, Outcome, Session};

use super::process;
use crate::failure::Failure;
use crate::screen::Work;

/// Runs an experiment, and always takes its networks down.
///
/// # Errors
/// When it fails or is interrupted.
pub fn run(
    experiment: &DownloadExperiment,
    options: &Options,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Failure> {
    let mut work = None;
    let session = Session::prepare(experiment, options, &mut |event| match event {
        Event::Hashing { done, total } => {
            let work = work.get_or_insert_with(|| Work::begin("hashing"));
            work.show(done, total);
        }
        other => {
            work = None;
            observe(other);
        }
    })
    .map_err(failure)?;
    drop(work);
    until_interrupted(session.run(observe))
}

/// Waits for an experiment, unless it is interrupted: then everything is taken down.
///
/// # Errors
/// When it fails or is interrupted.
pub fn until_interrupted<T>(
    work: impl Future<Output = Result<T, ExperimentError>>,
) -> Result<T, Failure> {
    process::small_runtime()?.block_on(async {
        let interrupted = process::interrupted()?;
        tokio::select! {
            done = work => done.map_err(failure),
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
