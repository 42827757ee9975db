//! `hawser bench`: the papers' experiments and measurements of speed as commands.

mod args;
mod ases;
mod bad_path;
mod bulk_congested;
mod bulk_distance;
mod clients;
mod limit;
mod mptcp;
mod round_trips;
mod scale;
mod throughput;

use clap::Subcommand;
use clap::builder::{
    NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
};
use hawser_experiments::{CATALOG, DownloadExperiment, Downloads, Entry, Options};

use self::args::{ResultArgs, measure};
use self::ases::AsesArgs;
use self::bad_path::BadPathArgs;
use self::bulk_congested::BulkCongestedArgs;
use self::bulk_distance::BulkDistanceArgs;
use self::clients::ClientsArgs;
use self::limit::LimitArgs;
use self::mptcp::MptcpArgs;
use self::round_trips::RoundTripsArgs;
use self::scale::ScaleArgs;
use self::throughput::ThroughputArgs;
use super::experiment::failure;
use super::quantity::size;
use super::{headings, process};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub speed: Option<SpeedCommand>,
    /// The experiment
    #[arg(value_parser = experiment(), required = true)]
    pub experiment: Option<&'static Entry>,
    /// Run each variant this many times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: u16,
    /// Bytes of each download: 100MB
    ///
    /// Chosen by the experiment when not given.
    #[arg(long, value_name = "N", value_parser = size)]
    pub size: Option<u64>,
    /// Rate of cross traffic, in percent of the limit of the link it is on
    #[arg(long, value_name = "PERCENT", default_value = "82%", value_parser = share, help_heading = headings::RARE, hide_short_help = true)]
    pub cross: f64,
    /// Run these variants only
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub only: Vec<String>,
    /// Make every packet cross the network by itself, as `lab up --no-offload` does
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    pub no_offload: bool,
    #[command(flatten)]
    pub result: ResultArgs,
}

/// Measurements of speed, which have arguments of their own.
#[derive(Subcommand)]
pub enum SpeedCommand {
    /// Compare UDP, TCP, TLS, QUIC and BitTorrent over IP and SCION
    ///
    /// Goodput and processor time.
    Throughput(ThroughputArgs),
    /// Vary paths, peers, torrents, sizes and pieces
    ///
    /// Of downloads: processor time per byte.
    Scale(ScaleArgs),
    /// Measure what an AS of a lab costs, by their number
    ///
    /// Time to come up and down, memory and processor time at rest.
    Ases(AsesArgs),
    /// Compare BitTorrent clients over plain TCP on this host
    ///
    /// Rate and processor time.
    Clients(ClientsArgs),
    /// Compare bulk transfer with others over a path of 194 ms
    ///
    /// With QUIC, TCP and rsync (003, Figs. 2 and 3).
    BulkDistance(BulkDistanceArgs),
    /// Congest one of two paths of bulk transfer for a while
    ///
    /// In comparison with two TCP flows (003, Fig. 1).
    BulkCongested(BulkCongestedArgs),
    /// Compare TCP programs through the shim with QUIC (002)
    ///
    /// Over 1 to 8 paths.
    Mptcp(MptcpArgs),
    /// Measure round trips of TCP programs through the shim
    ///
    /// Their time, and how often the shim's processes are woken, beside SCION's ping and plain TCP.
    RoundTrips(RoundTripsArgs),
    /// Add a bad path to two good ones, for every transfer
    ///
    /// In comparison with the good ones alone.
    BadPath(BadPathArgs),
    /// Measure limits of links beside tc set by hand (004)
    ///
    /// Goodput, accuracy, cost of thousands of links.
    Limit(LimitArgs),
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

/// Runs `hawser bench`, and always takes its networks down.
pub fn run(mut args: BenchArgs) -> Result<(), Failure> {
    match (args.speed.take(), args.experiment) {
        (Some(SpeedCommand::Throughput(args)), _) => throughput::run(args),
        (Some(SpeedCommand::Scale(args)), _) => scale::run(args),
        (Some(SpeedCommand::Ases(args)), _) => ases::run(args),
        (Some(SpeedCommand::Clients(args)), _) => clients::run(args),
        (Some(SpeedCommand::BulkDistance(args)), _) => bulk_distance::run(args),
        (Some(SpeedCommand::BulkCongested(args)), _) => bulk_congested::run(args),
        (Some(SpeedCommand::Mptcp(args)), _) => mptcp::run(args),
        (Some(SpeedCommand::RoundTrips(args)), _) => round_trips::run(args),
        (Some(SpeedCommand::BadPath(args)), _) => bad_path::run(args),
        (Some(SpeedCommand::Limit(args)), _) => limit::run(args),
        (None, Some(entry)) => run_experiment(entry, &args),
        // The arguments do not allow it.
        (None, None) => Err(Failure::usage(
            "name an experiment: see `hawser bench --help`",
        )),
    }
}

fn run_experiment(entry: &Entry, args: &BenchArgs) -> Result<(), Failure> {
    let downloads = Downloads {
        experiment: arranged(entry, args)?,
        options: Options {
            program: process::program()?,
            repeat: args.repeat,
            no_offload: args.no_offload,
            ..Options::default()
        },
    };
    measure(&downloads, &args.result)
}

/// The experiment with the changes that the arguments request.
fn arranged(entry: &Entry, args: &BenchArgs) -> Result<DownloadExperiment, Failure> {
    let experiment = entry.experiment(args.cross).map_err(failure)?;
    let experiment = experiment.with_variants(&args.only).map_err(failure)?;
    match args.size {
        None => Ok(experiment),
        Some(bytes) => experiment
            .with_bytes(bytes)
            .map_err(|error| Failure::usage(format!("--size: {error}: leave it out"))),
    }
}
