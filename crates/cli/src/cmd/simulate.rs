//! `hawser simulate`: simulates a swarm on virtual time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, ValueEnum};
use hawser_path::Select;
use hawser_sim::{
    Completion, Hosts, Options, Outcome, SelectBy, SimulateError, generate, simulate,
};
use hawser_topology::{IsdAsn, Network, parse_duration, parse_rate};
use serde::Serialize;

use super::address::one_as;
use super::quantity::size;
use super::{files, headings};
use crate::failure::{Doing, Failure};
use crate::format;
use crate::out::errln;
use crate::output::Output;
use crate::screen::Live;

/// Largest number in an argument: far more than a simulation can compute.
const MAX_NUMBER: u64 = 100_000;

/// Time between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[command(group = ArgGroup::new("network").required(true).args(["topology", "generate"]))]
pub struct SimulateArgs {
    /// A .topo file, or a ready topology: fig4, fig7a, fig9
    #[arg(value_name = "TOPO")]
    pub topology: Option<String>,
    /// Simulate nothing: print a made-up topology of this many ASes, in several ISDs
    #[arg(long, value_name = "ASES", value_parser = RangedU64ValueParser::<usize>::new().range(1..=hawser_sim::MAX_ASES as u64))]
    pub generate: Option<usize>,
    /// Seed of all random choices: the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub random_seed: u64,
    #[command(flatten)]
    pub hosts: HostsArgs,
    /// Bytes of the content
    #[arg(long, value_name = "N", default_value = "64MiB", value_parser = size)]
    pub size: u64,
    /// Leechers arrive at random times until then
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, help_heading = headings::RARE, hide_short_help = true)]
    pub arrive: Duration,
    /// End after this much virtual time, if not all are done before
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = parse_duration, help_heading = headings::RARE, hide_short_help = true)]
    pub time: Duration,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// Other leechers that each knows; 0: seeders alone serve
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = headings::RARE, hide_short_help = true)]
    pub peers: usize,
    /// Rate of links without one
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = parse_rate, help_heading = headings::RARE, hide_short_help = true)]
    pub default_rate: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write it to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output", help_heading = headings::RARE, hide_short_help = true)]
    pub force: bool,
}

/// The hosts of the swarm.
#[derive(clap::Args)]
pub struct HostsArgs {
    /// Number of hosts that want the content
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count())]
    pub leechers: usize,
    /// How many of them send nothing to others
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = headings::RARE, hide_short_help = true)]
    pub free_riders: usize,
    /// Most hosts that each serves at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count(), help_heading = headings::RARE, hide_short_help = true)]
    pub slots: usize,
    /// Number of hosts that have it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count())]
    pub seeders: usize,
    /// Rate of each host, out and in
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = parse_rate, help_heading = headings::RARE, hide_short_help = true)]
    pub host_rate: u64,
    /// Put seeders in this AS; may be given several times. ASes without children are chosen at
    /// random when not given
    #[arg(long, value_name = "AS", value_parser = one_as, help_heading = headings::RARE, hide_short_help = true)]
    pub seeder_in: Vec<IsdAsn>,
    /// Put leechers in this AS, as --seeder-in does
    #[arg(long, value_name = "AS", value_parser = one_as, help_heading = headings::RARE, hide_short_help = true)]
    pub leecher_in: Vec<IsdAsn>,
}

/// How paths are chosen.
#[derive(clap::Args)]
pub struct ChoiceArgs {
    /// How paths are chosen, as for `get`; an uploader ranks by it
    #[arg(long, value_name = "STRATEGY,...", default_value = "disjoint")]
    pub select: Select,
    /// The side that chooses the paths
    #[arg(long, value_name = "SIDE", value_enum, default_value_t = SelectByArg::Both)]
    pub select_by: SelectByArg,
    /// Most paths to each peer
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = count())]
    pub paths: usize,
    /// Most paths known between two ASes, the shortest
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count(), help_heading = headings::RARE, hide_short_help = true)]
    pub known: usize,
}

/// The side that chooses the paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SelectByArg {
    /// Each leecher for itself
    Downloader,
    /// Each uploader for all that it serves
    Uploader,
    /// One after the other, to compare them
    Both,
}

fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MAX_NUMBER)
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct Report {
    topology: String,
    ases: usize,
    links: usize,
    seed: u64,
    leechers: usize,
    free_riders: usize,
    seeders: usize,
    slots: usize,
    bytes: u64,
    select: String,
    paths: usize,
    known_paths: usize,
    peers: usize,
    variants: Vec<Outcome>,
}

/// Runs `hawser simulate`.
pub fn run(args: SimulateArgs) -> Result<(), Failure> {
    let inputs: Vec<&Path> = args.topology.iter().map(Path::new).collect();
    let output = match &args.output {
        Some(file) => Output::check("-o", file, args.force, &inputs)?,
        None => Output::stdout(),
    };
    let Some(topology) = &args.topology else {
        let text = generate(args.generate.unwrap_or(1), args.random_seed);
        return output.write(text.as_bytes());
    };
    let network = files::topology(topology)?;
    let options = options(&args);
    let variants: &[SelectBy] = match args.choice.select_by {
        SelectByArg::Downloader => &[SelectBy::Downloader],
        SelectByArg::Uploader => &[SelectBy::Uploader],
        SelectByArg::Both => &[SelectBy::Downloader, SelectBy::Uploader],
    };
    let outcomes = variants.iter().map(|by| one(&network, &options, *by));
    let report = Report {
        topology: topology.clone(),
        ases: network.ases.len(),
        links: network.links.len(),
        seed: options.seed,
        leechers: options.hosts.leechers,
        free_riders: options.hosts.free_riders,
        seeders: options.hosts.seeders,
        slots: options.slots,
        bytes: options.size,
        select: options.select.to_string(),
        paths: options.paths,
        known_paths: options.known,
        peers: options.peers,
        variants: outcomes.collect::<Result<_, _>>()?,
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&report).doing("writing JSON")? + "\n",
        false => report.table(),
    };
    output.write(text.as_bytes())
}

fn options(args: &SimulateArgs) -> Options {
    let (hosts, choice) = (&args.hosts, &args.choice);
    Options {
        seed: args.random_seed,
        hosts: Hosts {
            leechers: hosts.leechers,
            free_riders: hosts.free_riders,
            seeders: hosts.seeders,
            rate: hosts.host_rate,
            seeders_in: hosts.seeder_in.clone(),
            leechers_in: hosts.leecher_in.clone(),
        },
        slots: hosts.slots,
        size: args.size,
        arrive: args.arrive,
        duration: args.time,
        select: choice.select.clone(),
        paths: choice.paths,
        known: choice.known,
        peers: args.peers,
        default_rate: args.default_rate,
    }
}

/// Runs one variant, with its progress in one line on a terminal, else as a line every 10 s.
fn one(network: &Network, options: &Options, by: SelectBy) -> Result<Outcome, Failure> {
    let mut live = Live::start();
    let mut line_due = Instant::now() + LINE_EVERY;
    let outcome = simulate(network, options, by, |progress| {
        let line = || {
            let (seconds, done) = (progress.time.as_secs(), progress.finished);
            let all = options.hosts.leechers;
            format!("paths chosen by {by}: {seconds} s, {done} of {all} leechers done")
        };
        if let Some(live) = &mut live {
            live.draw(|_| vec![line()]);
        } else if Instant::now() >= line_due {
            line_due = Instant::now() + LINE_EVERY;
            errln!("{}", line());
        }
    });
    outcome.map_err(|error| match error {
        // What the network lacks is no fault of the arguments.
        SimulateError::NoPath(..) => Failure::job(error),
        _ => Failure::usage(error),
    })
}

/// The text of a variant in a row of the table.
type Cell = fn(&Outcome) -> String;

/// The rows of the table.
const ROWS: [(&str, Cell); 16] = [
    ("leechers done", |one| {
        format!("{} of {}", one.finished, one.came)
    }),
    ("virtual time", |one| seconds(one.seconds)),
    ("goodput  min", |one| mbit(one.goodput_mbit.min)),
    ("         median", |one| mbit(one.goodput_mbit.median)),
    ("         max", |one| mbit(one.goodput_mbit.max)),
    ("         sum", |one| mbit(one.goodput_mbit.sum)),
    ("         together", |one| mbit(one.goodput_mbit.together)),
    ("completion  median", |one| completion(one, |it| it.median)),
    ("            p95", |one| completion(one, |it| it.p95)),
    ("            longest", |one| {
        completion(one, |it| it.longest)
    }),
    ("            last", |one| completion(one, |it| it.last)),
    ("       free riders", |one| {
        let time = one.free_rider_seconds.map(|it| it.median);
        time.map_or_else(|| "-".to_owned(), seconds)
    }),
    ("fairness (Jain)", |one| format!("{:.3}", one.jain)),
    ("path-level peers", |one| one.path_level_peers.to_string()),
    ("paths made to wait", |one| one.waits.to_string()),
    ("turns given", |one| one.turns.to_string()),
];

fn mbit(rate: f64) -> String {
    format!("{rate:.2} Mbit/s")
}

fn seconds(time: f64) -> String {
    format!("{time:.1} s")
}

fn completion(one: &Outcome, of: fn(Completion) -> f64) -> String {
    let time = one.completion_seconds.map(of);
    time.map_or_else(|| "-".to_owned(), seconds)
}

impl Report {
    fn table(&self) -> String {
        let Self {
            ases,
            links,
            leechers,
            seeders,
            seed,
            ..
        } = self;
        let (topology, bytes) = (&self.topology, format::bytes(self.bytes));
        let mut text = format!(
            "{topology}: {ases} ASes, {links} links; {leechers} leechers, {seeders} seeders, \
             {bytes}, seed {seed}\n\n"
        );
        let mut row = |name: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!("{cell:>22}")).collect();
            text += &format!("{name:<22}{cells}\n");
        };
        let names = self.variants.iter().map(|one| one.select_by.to_string());
        row("paths chosen by", names.collect());
        for (name, cell) in ROWS {
            row(name, self.variants.iter().map(cell).collect());
        }
        for one in &self.variants {
            text += &format!(
                "\nInterfaces that most path-level peers leave by, paths chosen by {}:\n",
                one.select_by
            );
            text += "  interface                      Mbit/s   most     mean   used\n";
            for shared in &one.shared {
                let (interface, rate) = (shared.interface.to_string(), shared.rate_mbit);
                let (most, mean, used) = (shared.most, shared.mean, shared.utilisation * 100.0);
                text +=
                    &format!("  {interface:<24} {rate:>12} {most:>6} {mean:>8.1} {used:>4.0} %\n");
            }
            text += "Decisions:\n";
            for (kind, count) in &one.decisions {
                text += &format!("  {count:>8}  {kind}\n");
            }
        }
        text
    }
}
