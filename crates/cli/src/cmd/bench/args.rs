//! Arguments that measurements have in common, and how their results are shown.

use std::path::PathBuf;
use std::time::Duration;

use hawser_experiments::ExperimentError;
use hawser_experiments::shape::{self, Experiment, Progress};
use hawser_topology::parse_duration;
use serde::Serialize;

use crate::cmd::experiment::{failure, until_interrupted};
use crate::cmd::print;
use crate::failure::Failure;
use crate::out::{errln, outln};
use crate::output::Output;

/// How the result of a measurement is shown.
#[derive(clap::Args)]
pub struct ResultArgs {
    /// Draw the result, in the shape of the paper's figure if there is one: an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Replace the figure if the file exists
    #[arg(long, requires = "plot")]
    force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

impl ResultArgs {
    /// The arguments of a measurement that has no figure.
    pub fn without_figure(json: bool) -> Self {
        Self {
            plot: None,
            force: false,
            json,
        }
    }

    /// The file of the figure. To be called before the measurement, which takes minutes.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn figure(&self) -> Result<Option<Output>, Failure> {
        Output::check_any("--plot", self.plot.as_deref(), self.force)
    }

    /// Draws `result` to the file of the figure, and prints it, as JSON or by `print`.
    ///
    /// # Errors
    /// When it cannot be drawn or written; then it is printed all the same.
    pub fn show<T: Serialize>(
        &self,
        result: &T,
        figure: Option<Output>,
        draw: impl FnOnce(&T) -> Result<String, ExperimentError>,
        print: impl FnOnce(&T),
    ) -> Result<(), Failure> {
        let drawn = figure.map_or(Ok(()), |file| {
            file.write(draw(result).map_err(failure)?.as_bytes())
        });
        match self.json {
            true => print::json(result)?,
            false => print(result),
        }
        drawn
    }
}

/// Runs an experiment and shows its result; always takes its networks down.
///
/// # Errors
/// When it cannot be run, drawn or written.
pub fn measure<E: Experiment>(experiment: &E, result: &ResultArgs) -> Result<(), Failure> {
    let figure = result.figure()?;
    let mut indent = "";
    let results = until_interrupted(shape::run(experiment, &mut |progress| match progress {
        Progress::Place(place) => {
            errln!("{place}");
            indent = "  ";
        }
        Progress::Run {
            turn,
            turns,
            case,
            summary,
        } => errln!("{indent}{turn}/{turns}: {case} {summary}"),
        Progress::Failed { case, why } => errln!("{indent}{case} is left out: {why}"),
        _ => {}
    }))?;
    let table = experiment.table(&results);
    let draw = |_: &_| {
        let drawn = experiment.plot(&results)?;
        drawn.ok_or_else(|| ExperimentError::Request("--plot: it has no figure".to_owned()))
    };
    result.show(&table, figure, draw, |table| {
        outln!("{}", table.to_string().trim_end())
    })
}

/// Reads a time of at least this many seconds.
pub fn at_least(
    seconds: u64,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| match parse_duration(text).map_err(|error| error.to_string())? {
        time if time < Duration::from_secs(seconds) => Err(format!("at least {seconds}s")),
        time => Ok(time),
    }
}
