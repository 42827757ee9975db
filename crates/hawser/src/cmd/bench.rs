//! `hawser bench`: the papers' experiments as commands.

use hawser_experiments::{Event, Experiment, Options, Outcome, Report, median, plot};

use super::{experiment, print, process};
use crate::cli::BenchArgs;
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln};
use crate::output::Output;

/// Runs `hawser bench`; nothing of its networks is left, whatever happens.
pub fn run(args: BenchArgs) -> Result<(), Failure> {
    let experiment = arranged(&args)?;
    // Before the experiment, which takes minutes.
    let plot = args.plot.as_deref();
    let plot = plot
        .map(|file| Output::check("--plot", file, args.force, &[]))
        .transpose()?;
    let options = Options::new(process::program()?).with_repeat(args.repeat);
    let outcome = experiment::run(&experiment, &options, &mut |event| {
        if let Event::Finished { variant, turn, run } = event {
            let goodput = format::rate(run.goodput_mbit * 1e6);
            let (name, repeat) = (experiment.name, args.repeat);
            errln!("{name} {turn}/{repeat}: {} {goodput}", variant.name);
        }
    })?;
    refuse_different_files(&experiment, &outcome)?;
    let plotted = plot.map_or(Ok(()), |file| {
        let svg = plot::draw(&experiment, &outcome)?;
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
    let experiment = args.experiment.experiment(args.cross)?;
    let experiment = experiment.with_variants(&args.variant)?;
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
