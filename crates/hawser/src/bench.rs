//! `hawser bench`: the papers' experiments as commands.

pub mod cross;
mod experiment;
mod network;
mod plot;
mod report;
mod run;

use std::collections::BTreeMap;

use self::experiment::Experiment;
use self::report::Report;
use self::run::{Load, Run};
use crate::cli::BenchArgs;
use crate::cmd::torrent;
use crate::failure::{Doing, Failure};
use crate::format;
use crate::out::errln;
use crate::output::Output;
use crate::scratch::Scratch;
use crate::stage::content::Content;

/// Runs an experiment; whatever happens, nothing of its networks is left.
pub fn run(args: BenchArgs) -> Result<(), Failure> {
    let mut experiment = Experiment::of(args.experiment, args.cross)?;
    if !args.variant.is_empty() {
        let known: Vec<_> = experiment.variants.iter().map(|v| v.name.clone()).collect();
        if let Some(other) = args.variant.iter().find(|name| !known.contains(name)) {
            return Err(Failure::usage(format!(
                "{} has no variant {other}: there are {}",
                experiment.name,
                known.join(", ")
            )));
        }
        let wanted = |name: &String| args.variant.contains(name);
        experiment.variants.retain(|variant| wanted(&variant.name));
    }
    if args.size.is_some() && experiment.variants.iter().any(|v| v.bytes.is_some()) {
        return Err(Failure::usage(format!(
            "--size: the variants of {} have sizes of their own: leave it out",
            experiment.name
        )));
    }
    // Before the experiment, which takes minutes.
    let plot = args.plot.as_deref();
    let plot = plot
        .map(|file| Output::check("--plot", file, args.force, &[]))
        .transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("starting")?;
    let (bytes, runs) = runtime.block_on(repeat(&args, &experiment))?;
    let plotted = plot.map_or(Ok(()), |file| {
        let svg = plot::draw(&experiment, &runs)?;
        file.write(svg.as_bytes())
    });
    // The figures are there whether or not they could be drawn.
    Report::new(&experiment, &bytes, &runs).show(args.json)?;
    plotted
}

/// Runs every variant as often as asked for; returns, for each, the bytes of a download and its
/// runs.
async fn repeat(
    args: &BenchArgs,
    experiment: &Experiment,
) -> Result<(Vec<u64>, Vec<Vec<Run>>), Failure> {
    let folder = Scratch::create()?;
    let bytes: Vec<u64> = experiment
        .variants
        .iter()
        .map(|variant| {
            let own = variant.bytes.unwrap_or(experiment.bytes);
            args.size.unwrap_or(own)
        })
        .collect();
    let mut loads: BTreeMap<u64, Load> = BTreeMap::new();
    for bytes in &bytes {
        if !loads.contains_key(bytes) {
            let content = Content::prepare(None, folder.path(), *bytes)?;
            let torrent = folder.path().join(format!("{bytes}.torrent"));
            let document = torrent::hashed(&content.path, &Default::default())?;
            std::fs::write(&torrent, document).doing(torrent.display())?;
            loads.insert(*bytes, Load { content, torrent });
        }
    }
    let mut runs: Vec<Vec<Run>> = experiment.variants.iter().map(|_| Vec::new()).collect();
    // One of each in turn: what the machine does besides meets all alike.
    for turn in 1..=args.repeat {
        for (index, variant) in experiment.variants.iter().enumerate() {
            let load = &loads[&bytes[index]];
            let run = run::run(variant, load, experiment.window, folder.path()).await?;
            errln!(
                "{} {turn}/{}: {} {}",
                experiment.name,
                args.repeat,
                variant.name,
                format::rate(run.goodput_mbit * 1e6)
            );
            runs[index].push(run);
        }
    }
    Ok((bytes, runs))
}
