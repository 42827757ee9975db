//! Running an experiment until it ends or is interrupted.

use hawser_experiments::{Event, Experiment, ExperimentError, Options, Outcome, Session};

use super::process;
use super::work::Work;
use crate::failure::{Doing, Failure};

/// Runs an experiment; nothing of its networks is left, whatever happens.
///
/// # Errors
/// When it fails or is interrupted.
pub fn run(
    experiment: &Experiment,
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
    })?;
    drop(work);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("starting")?;
    runtime.block_on(async {
        tokio::select! {
            outcome = session.run(observe) => Ok(outcome?),
            interrupted = process::interrupted() => {
                interrupted?;
                Err(Failure::job("interrupted: everything was taken down"))
            }
        }
    })
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Request(_) => Self::usage(error),
            _ => Self::job(error),
        }
    }
}
