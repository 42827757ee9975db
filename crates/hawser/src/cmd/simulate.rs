//! `hawser simulate`: a swarm on virtual time.

use std::fmt::Write;
use std::path::Path;

use hawser_sim::{Options, Outcome, SelectBy, generate, simulate};
use hawser_topology::Network;
use serde::Serialize;

use super::topology;
use crate::cli::{SelectByArg, SimulateArgs};
use crate::failure::{Doing, Failure};
use crate::out::out;
use crate::output::Output;
use crate::screen::Live;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    topology: String,
    ases: usize,
    links: usize,
    seed: u64,
    leechers: usize,
    seeders: usize,
    bytes: u64,
    select: String,
    paths: usize,
    known_paths: usize,
    peers: usize,
    variants: Vec<Outcome>,
}

/// Runs `hawser simulate`.
pub fn run(args: SimulateArgs) -> Result<(), Failure> {
    let output = output(&args)?;
    let Some(topology) = &args.topology else {
        let text = generate(args.generate.unwrap_or(1), args.seed);
        return write(output, &text);
    };
    let network = topology::read(topology)?;
    let options = options(&args);
    let variants: &[SelectBy] = match args.select_by {
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
        leechers: options.leechers,
        seeders: options.seeders,
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
    write(output, &text)
}

fn options(args: &SimulateArgs) -> Options {
    Options {
        seed: args.seed,
        leechers: args.leechers,
        seeders: args.seeders,
        size: args.size,
        arrive: args.arrive,
        duration: args.duration,
        select: args.select.clone(),
        paths: args.paths,
        known: args.known,
        peers: args.peers,
        default_rate: args.default_rate,
        host_rate: args.host_rate,
        seeders_in: args.seeder_in.clone(),
        leechers_in: args.leecher_in.clone(),
    }
}

/// Runs one variant, with its progress in a line on a terminal.
fn one(network: &Network, options: &Options, by: SelectBy) -> Result<Outcome, Failure> {
    let mut live = Live::start();
    let outcome = simulate(network, options, by, |progress| {
        let Some(live) = &mut live else {
            return;
        };
        live.draw(|_| {
            vec![format!(
                "paths chosen by {by}: {} s, {} of {} leechers done",
                progress.time.as_secs(),
                progress.finished,
                options.leechers
            )]
        });
    });
    outcome.map_err(Failure::job)
}

/// The file to write, if it is not standard output.
fn output(args: &SimulateArgs) -> Result<Option<Output>, Failure> {
    let inputs: Vec<&Path> = args.topology.iter().map(Path::new).collect();
    let output = args.output.as_deref();
    output
        .map(|file| Output::check("-o", file, args.force, &inputs))
        .transpose()
}

fn write(output: Option<Output>, text: &str) -> Result<(), Failure> {
    match output {
        Some(output) => output.write(text.as_bytes()),
        None => {
            out(format_args!("{text}"));
            Ok(())
        }
    }
}

/// The text of a variant in a row.
type Cell = fn(&Outcome) -> String;

/// The rows of the table.
const ROWS: [(&str, Cell); 15] = [
    ("leechers done", |one| {
        format!("{} of {}", one.finished, one.came)
    }),
    ("virtual time", |one| seconds(Some(one.seconds))),
    ("goodput  min", |one| mbit(one.goodput_mbit.min)),
    ("         median", |one| mbit(one.goodput_mbit.median)),
    ("         max", |one| mbit(one.goodput_mbit.max)),
    ("         sum", |one| mbit(one.goodput_mbit.sum)),
    ("         together", |one| mbit(one.goodput_mbit.together)),
    ("completion  median", |one| {
        seconds(one.completion_seconds.map(|it| it.median))
    }),
    ("            p95", |one| {
        seconds(one.completion_seconds.map(|it| it.p95))
    }),
    ("            longest", |one| {
        seconds(one.completion_seconds.map(|it| it.longest))
    }),
    ("            last", |one| {
        seconds(one.completion_seconds.map(|it| it.last))
    }),
    ("fairness (Jain)", |one| format!("{:.3}", one.jain)),
    ("path-level peers", |one| one.path_level_peers.to_string()),
    ("paths made to wait", |one| one.waits.to_string()),
    ("turns given", |one| one.turns.to_string()),
];

fn mbit(rate: f64) -> String {
    format!("{rate:.2} Mbit/s")
}

fn seconds(time: Option<f64>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1} s"))
}

impl Report {
    // Writing to a string cannot fail.
    fn table(&self) -> String {
        let mut text = format!(
            "{}: {} ASes, {} links; {} leechers, {} seeders, {}, seed {}\n\n",
            self.topology,
            self.ases,
            self.links,
            self.leechers,
            self.seeders,
            crate::format::bytes(self.bytes),
            self.seed
        );
        let mut row = |name: &str, cells: Vec<String>| {
            let _ = write!(text, "{name:<22}");
            for cell in cells {
                let _ = write!(text, "{cell:>22}");
            }
            text.push('\n');
        };
        let names = self.variants.iter().map(|one| one.select_by.to_string());
        row("paths chosen by", names.collect());
        for (name, cell) in ROWS {
            row(name, self.variants.iter().map(cell).collect());
        }
        for one in &self.variants {
            let _ = writeln!(
                text,
                "\nInterfaces that most path-level peers leave by, paths chosen by {}:\n  \
                 {:<24} {:>12} {:>6} {:>8} {:>6}",
                one.select_by, "interface", "Mbit/s", "most", "mean", "used"
            );
            for shared in &one.shared {
                let _ = writeln!(
                    text,
                    "  {:<24} {:>12} {:>6} {:>8.1} {:>4.0} %",
                    shared.interface.to_string(),
                    shared.rate_mbit,
                    shared.most,
                    shared.mean,
                    shared.utilisation * 100.0
                );
            }
            let _ = writeln!(text, "Decisions:");
            for (kind, count) in &one.decisions {
                let _ = writeln!(text, "  {count:>8}  {kind}");
            }
        }
        text
    }
}
