//! `hawser bench`: the papers' experiments as commands.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hawser_experiments::{
    CATALOG, Entry, Event, Experiment, Options, Outcome, Report, median, plot,
};

use super::experiment::{self, failure};
use super::quantity::size;
use super::{print, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln};
use crate::output::Output;

#[derive(clap::Args)]
pub struct BenchArgs {
    /// The experiment
    #[arg(value_parser = experiment())]
    pub experiment: &'static Entry,
    /// Run each variant this many times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: u16,
    /// Transfer this many bytes in each download, for example 100MB; chosen by the experiment when
    /// not given
    #[arg(long, value_name = "N", value_parser = size)]
    pub size: Option<u64>,
    /// Rate of cross traffic, in percent of the limit of the link it is on
    #[arg(long, value_name = "PERCENT", default_value = "82%", value_parser = share)]
    pub cross: f64,
    /// Run only this variant; may be given several times
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Write a figure in the shape of the paper's: an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Replace the figure if the file exists
    #[arg(long, requires = "plot")]
    pub force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

/// Reads an experiment's name; help and completions list them all.
fn experiment() -> impl TypedValueParser<Value = &'static Entry> {
    let names = CATALOG.iter();
    let names = names.map(|entry| PossibleValue::new(entry.name).help(entry.summary));
    PossibleValuesParser::new(names).try_map(|name| {
        let mut entries = CATALOG.iter();
        let found = entries.find(|entry| entry.name == name);
        found.ok_or_else(|| format!("there is no experiment {name}"))
    })
}

/// Reads `82%` as 0.82.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    match number {
        Ok(percent) if (1.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write for example 82%, from 1% to 1000%".to_owned()),
    }
}

/// Runs `hawser bench`; nothing of its networks is left, whatever happens.
pub fn run(args: BenchArgs) -> Result<(), Failure> {
    let experiment = arranged(&args)?;
    // Before the experiment, which takes minutes.
    let plot = Output::check_any("--plot", args.plot.as_deref(), args.force)?;
    let mut options = Options::new(process::program()?);
    options.repeat = args.repeat;
    let outcome = experiment::run(&experiment, &options, &mut |event| {
        if let Event::Finished { variant, turn, run } = event {
            let goodput = format::rate(run.goodput_mbit * 1e6);
            let (name, repeat) = (experiment.name, args.repeat);
            errln!("{name} {turn}/{repeat}: {} {goodput}", variant.name);
        }
    })?;
    refuse_different_files(&experiment, &outcome)?;
    let plotted = plot.map_or(Ok(()), |file| {
        let svg = plot::draw(&experiment, &outcome).map_err(failure)?;
        file.write(svg.as_bytes())
    });
    // The figures are printed whether or not they could be drawn.
    let report = Report::new(&experiment, &outcome);
    match args.json {
        true => print::json(&report)?,
        false => print_table(&report),
    }
    plotted
}

/// The experiment as the arguments change it.
fn arranged(args: &BenchArgs) -> Result<Experiment, Failure> {
    let experiment = args.experiment.experiment(args.cross).map_err(failure)?;
    let experiment = experiment.with_variants(&args.variant).map_err(failure)?;
    match args.size {
        None => Ok(experiment),
        Some(bytes) => experiment
            .with_bytes(bytes)
            .map_err(|error| Failure::usage(format!("--size: {error}: leave it out"))),
    }
}

fn refuse_different_files(experiment: &Experiment, outcome: &Outcome) -> Result<(), Failure> {
    let mut variants = experiment.variants.iter().zip(&outcome.runs);
    match variants.find(|(_, runs)| runs.iter().any(|run| !run.identical)) {
        None => Ok(()),
        Some((variant, _)) => Err(Failure::job(format!(
            "{}: the downloaded file differs from the seeded one",
            variant.name
        ))),
    }
}

fn print_table(report: &Report) {
    let width = report
        .order
        .iter()
        .map(String::len)
        .max()
        .unwrap_or(0)
        .max(8);
    outln!("{}: {}", report.experiment, report.about);
    outln!(
        "{:<width$} {:>5} {:>14} {:>8} {:>14} {:>9} {:>14}",
        "variant",
        "runs",
        "goodput",
        "spread",
        "ceiling",
        "reached",
        "paper"
    );
    let mbit = |value: Option<f64>| value.map_or("-".to_owned(), |v| format::rate(v * 1e6));
    for name in &report.order {
        let goodput = median(&report.variants[name]);
        let ceiling = report.ceiling_mbit[name];
        let reached = ceiling.map_or("-".to_owned(), |c| format!("{:.1} %", 100.0 * goodput / c));
        outln!(
            "{name:<width$} {:>5} {:>14} {:>7.1}% {:>14} {:>9} {:>14}",
            report.variants[name].len(),
            mbit(Some(goodput)),
            100.0 * report.spread[name],
            mbit(ceiling),
            reached,
            mbit(report.paper_mbit.get(name).copied()),
        );
        if let Some(before) = report.before_mbit.get(name) {
            let seconds = &report.recovered_seconds[name];
            let worst = seconds
                .iter()
                .try_fold(0.0, |worst: f64, s| s.map(|s| worst.max(s)));
            outln!(
                "{:width$}  before {}, after it nine tenths of that again {}",
                "",
                mbit(Some(median(before))),
                worst.map_or("not every time".to_owned(), |s| format!("within {s:.1} s")),
            );
        }
    }
    if let Some(ratio) = report.ratio {
        let paper = report
            .paper_ratio
            .map_or(String::new(), |p| format!("  (paper: {p:.2})"));
        outln!("{}: {ratio:.2}{paper}", report.ratio_of);
    }
}
