//! Arguments that measurements have in common, and how their results are shown.

use std::path::PathBuf;
use std::time::Duration;

use hawser_experiments::ExperimentError;
use hawser_topology::parse_duration;
use serde::Serialize;

use crate::cmd::experiment::failure;
use crate::cmd::print;
use crate::failure::Failure;
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

/// Reads a time of at least this many seconds.
pub fn at_least(
    seconds: u64,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| match parse_duration(text).map_err(|error| error.to_string())? {
        time if time < Duration::from_secs(seconds) => Err(format!("at least {seconds}s")),
        time => Ok(time),
    }
}
