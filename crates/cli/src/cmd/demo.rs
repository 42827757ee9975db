//! `hawser demo`: a network, a seeder and downloads in one go.

mod picture;

use std::path::PathBuf;

use hawser_experiments::shape::{self, Progress};
use hawser_experiments::{
    DEMO_TOPOLOGIES, DemoReport, DownloadExperiment, Downloads, Options, PLAIN_TCP, demo,
};

use super::experiment::{self, failure};
use super::quantity::{RateArg, rate_or_none, size};
use super::{files, print, process};
use crate::failure::{Doing, Failure};
use crate::format;
use crate::out::{errln, outln, outwrapped};
use crate::output::Output;

#[derive(clap::Args)]
pub struct DemoArgs {
    /// fig7a (disjoint against the two shortest paths) or fig4 (two links against one)
    #[arg(long, value_name = "NAME", default_value = "fig7a", value_parser = DEMO_TOPOLOGIES)]
    pub topology: String,
    /// Transfer this file
    #[arg(long, value_name = "PATH", conflicts_with = "size")]
    pub file: Option<PathBuf>,
    /// Transfer a made-up file of this size, for example 32MiB
    #[arg(long, value_name = "N", value_parser = size)]
    pub size: Option<u64>,
    /// Give every limited link this limit instead, or `none`
    #[arg(long, value_parser = rate_or_none)]
    pub rate: Option<RateArg>,
    /// Measure plain TCP with iperf3 too, over one link of the same network: with --topology fig4
    #[arg(long)]
    pub iperf3: bool,
    /// Draw the network, the runs and the paper's bars: an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Replace the picture if the file exists
    #[arg(long, requires = "plot")]
    pub force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

/// Runs `hawser demo`, and always takes its network down.
pub fn run(args: DemoArgs) -> Result<(), Failure> {
    let demo = arranged(&args)?;
    if let Some(file) = &args.file {
        files::check_input(file)?;
        if !file.is_file() {
            let file = file.display();
            return Err(Failure::usage(format!("--file {file}: is not a file")));
        }
    }
    // Checked before the demo, which takes a minute.
    let plot = Output::check_any("--plot", args.plot.as_deref(), args.force)?;
    let options = Options {
        program: process::program()?,
        repeat: 1,
        file: args.file,
        show_downloads: true,
        no_offload: false,
    };
    let bytes = match &options.file {
        Some(file) => file.metadata().doing(file.display())?.len(),
        None => demo.bytes,
    };
    errln!("{}: {}", demo.name, picture::content(&demo, bytes));
    let downloads = Downloads {
        experiment: demo,
        options,
    };
    let results = experiment::run(async |observe| shape::run(&downloads, observe).await, show)?;
    let demo = downloads.experiment;
    let report = DemoReport::new(&demo, &results);
    match args.json {
        true => print::json(&report)?,
        false => print_table(&demo, &report),
    }
    if let Some(file) = plot {
        file.write(picture::draw(&demo, &report).as_bytes())?;
    }
    Ok(())
}

/// The demo with the changes that the arguments request.
fn arranged(args: &DemoArgs) -> Result<DownloadExperiment, Failure> {
    let mut demo = demo(&args.topology).map_err(failure)?;
    if let Some(rate) = args.rate {
        demo = demo.with_rate(rate.0);
    }
    if let Some(bytes) = args.size {
        demo = demo.with_bytes(bytes).map_err(failure)?;
    }
    if args.iperf3 && demo.direct_link().is_none() {
        return Err(Failure::usage(format!(
            "--iperf3: {} has no link between seeder and leecher that TCP could be measured over: \
             add --topology fig4",
            demo.name
        )));
    }
    if args.iperf3 {
        demo = demo.with_plain_tcp();
    }
    Ok(demo)
}

/// Prints progress on standard error, because standard output is for the report.
fn show(progress: Progress<'_>) {
    match progress {
        Progress::Ready(what) => errln!("{what}"),
        Progress::Started { case: PLAIN_TCP } => errln!("iperf3 TCP over one link"),
        Progress::Started { case } => errln!("download: {case}"),
        Progress::Run { summary, .. } => errln!("  {summary}"),
        _ => {}
    }
}

fn print_table(demo: &DownloadExperiment, report: &DemoReport) {
    outln!("");
    outln!("paths          time        goodput        ceiling   reached          paper");
    for (run, variant) in report.runs.iter().zip(&demo.variants) {
        let (select, seconds) = (&run.select, run.seconds);
        let goodput = format::mbit(run.goodput_mbit);
        let reached = |ceiling| format!("{:.1} %", 100.0 * run.goodput_mbit / ceiling);
        let reached = run.ceiling_mbit.map_or_else(String::new, reached);
        let ceiling = run.ceiling_mbit.map(format::mbit);
        let ceiling = ceiling.as_deref().unwrap_or("no limit");
        let paper = format::mbit(variant.paper_mbit.unwrap_or_default());
        outln!(
            "{select:<10} {seconds:>6.1} s {goodput:>14} {ceiling:>14} {reached:>9} {paper:>14}"
        );
        for path in &run.paths {
            let fingerprint = path.fingerprint.get(..8).unwrap_or(&path.fingerprint);
            let (hops, bytes) = (format::hops(path.hops), format::bytes(path.bytes));
            outln!("  {fingerprint}  {hops:<7}  {bytes:>9}");
        }
    }
    if let Some((ratio, paper)) = picture::ratio(demo, report) {
        outln!("{ratio}  {paper}");
    }
    if let Some(tcp) = report.iperf3_tcp_mbit {
        outln!("iperf3 TCP over one link: {}", format::mbit(tcp));
    }
    outwrapped(&format!("paper: {}", demo.about), 7);
    outln!("file:  identical (SHA-256)");
}
