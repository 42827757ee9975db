//! Arguments that experiments have in common, and how they are run and shown.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_experiments::shape::{Bench, Figure, Figures, Progress};
use hawser_topology::parse_duration;

use crate::cmd::experiment::{self, failure};
use crate::cmd::{headings, print};
use crate::failure::Failure;
use crate::out::{errln, outln};
use crate::output::Output;

/// How the result of an experiment is shown.
#[derive(clap::Args)]
pub struct ResultArgs {
    /// Draw the result: an SVG file
    ///
    /// In the shape of the paper's figure if there is one.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Replace the figure if the file exists
    #[arg(long, requires = "plot", help_heading = headings::RARE, hide_short_help = true)]
    pub force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

/// The files of figures, by the name of each.
type Files = Vec<(String, Output)>;

impl ResultArgs {
    /// The arguments of an experiment that has no figure.
    pub fn without_figure(json: bool) -> Self {
        Self {
            plot: None,
            force: false,
            json,
        }
    }

    /// The files of figures. To be called before the experiment, which takes minutes.
    ///
    /// # Errors
    /// When a file exists or cannot be written, or the folder of several does not exist.
    fn files(&self, figures: Figures) -> Result<Files, Failure> {
        let Some(plot) = &self.plot else {
            return Ok(Vec::new());
        };
        let check = |path: &Path| Output::check("--plot", path, self.force, &[]);
        let names = match figures {
            Figures::One => return Ok(vec![(String::new(), check(plot)?)]),
            Figures::Folder(names) => names,
        };
        if !plot.is_dir() {
            let why = format!("--plot {}: no such folder: make it first", plot.display());
            return Err(Failure::usage(why));
        }
        let files = names.into_iter().map(|name| {
            let file = check(&plot.join(&name))?;
            Ok((name, file))
        });
        files.collect()
    }
}

/// Runs an experiment and shows its result; always takes its networks down.
///
/// # Errors
/// When it cannot be run, drawn or written; if only drawing or writing fails, it is printed all the same.
pub fn measure(bench: &impl Bench, result: &ResultArgs) -> Result<(), Failure> {
    let files = result.files(bench.figures())?;
    let mut indent = "";
    let outcome = experiment::run(
        async |observe| bench.run(observe).await,
        |progress| match progress {
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
        },
    )?;
    let drawn = match outcome.figures {
        Ok(figures) => write(&files, &figures),
        Err(_) if files.is_empty() => Ok(()),
        Err(error) => Err(failure(error)),
    };
    match result.json {
        true => print::json(&outcome.table)?,
        false => outln!("{}", outcome.table.to_string().trim_end()),
    }
    drawn
}

/// Writes all figures that have a file.
fn write(files: &Files, figures: &[Figure]) -> Result<(), Failure> {
    let mut all = Ok(());
    for (name, file) in files {
        if let Some(figure) = figures.iter().find(|figure| figure.file == *name) {
            all = all.and(file.write(figure.svg.as_bytes()));
        }
    }
    all
}

/// Numbers once each, in ascending order.
pub fn ascending<T: Ord>(mut numbers: Vec<T>) -> Vec<T> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
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
