//! What the export of many ASes for Kubernetes costs: time, processor time, bytes.
//!
//! `cargo run --release -p hawser-export --example many_ases [ASES] [PARENTS]`, by default 500 and 2. One of
//! 50 ASes is a core AS, in a ring with the others; each AS of the first level below has a core AS above it,
//! and each further one PARENTS ASes, of which each has three times as many below it. It is exported to a
//! temporary folder three times: at first there is nothing, then nothing has changed, then one link has
//! another rate.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hawser_export::{Options, Target, export};
use hawser_topology::Network;

/// ASes for each core AS.
const ASES_PER_CORE: usize = 50;
/// ASes below each parent, on average.
const CHILDREN: usize = 3;
/// The rate of all links, and the one that a link is given, in Mbit/s.
const RATES: [u32; 2] = [50, 60];

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let count = numbers.next().transpose()?.unwrap_or(500).max(1);
    let parents = numbers.next().transpose()?.unwrap_or(2).max(1);
    let folder = tempfile::tempdir()?;
    let network = Network::parse(&topo(count, parents, RATES[0]))?;
    let changed = Network::parse(&topo(count, parents, RATES[1]))?;
    println!("{count} ASes, {} links", network.links.len());
    let out = folder.path().join("out");
    for (title, network) in [
        ("new", &network),
        ("unchanged", &network),
        ("one rate changed", &changed),
    ] {
        println!("{title}: {}", run(network, &out)?);
    }
    println!("{}", sizes(&out)?);
    Ok(())
}

/// Exports a network, and says what that cost.
fn run(network: &Network, out: &Path) -> Result<String, Failure> {
    let options = Options {
        to: Target::Kubernetes,
        name: "net".to_owned(),
        image: "localhost/hawser:1".to_owned(),
        base: "localhost/hawser:1".to_owned(),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let (begun, processor) = (Instant::now(), processor_seconds()?);
    let done = export(network, &options, out, now)?;
    let wall = begun.elapsed().as_secs_f64();
    let processor = processor_seconds()? - processor;
    Ok(format!(
        "{wall:.2} s, {processor:.2} s of processors, {} files written, {} unchanged, {} segments",
        done.written, done.unchanged, done.segments
    ))
}

/// A network of `count` ASes; the first link below the core has `rate`.
fn topo(count: usize, parents: usize, rate: u32) -> String {
    let core = (count / ASES_PER_CORE).max(1);
    let name = |at: usize| format!("1-ff00:0:{:x}", 0x100 + at);
    let mut text = String::from("ASes:\n");
    for at in 0..count {
        let role = match at < core {
            true => "core: true, voting: true, authoritative: true, issuing: true".to_owned(),
            false => format!("cert_issuer: {}", name(at % core)),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  \"{}\": {{{role}, mtu: 1400}}", name(at));
    }
    text += "links:\n";
    let mut used: BTreeMap<usize, u16> = BTreeMap::new();
    let mut rate = Some(rate);
    let mut link = |a: usize, b: usize, kind: &str| {
        let mut end = |at: usize| {
            let id = used.entry(at).or_default();
            *id += 1;
            format!("{}#{id}", name(at))
        };
        let (a, b) = (end(a), end(b));
        let rate = match kind {
            "CHILD" => rate.take().unwrap_or(RATES[0]),
            _ => 2 * RATES[0],
        };
        let _ = writeln!(
            text,
            "  - {{a: \"{a}\", b: \"{b}\", linkAtoB: {kind}, mtu: 1280, rate: {rate}Mbit, delay: 2ms}}"
        );
    };
    for at in (0..core).filter(|_| core > 1) {
        link(at, (at + 1) % core, "CORE");
    }
    let first_level = (1 + CHILDREN) * core;
    for at in core..count {
        if at < first_level {
            link((at - core) % core, at, "CHILD");
            continue;
        }
        let above = (at - core) / CHILDREN;
        for parent in (0..parents)
            .map(|next| above + next)
            .filter(|&parent| parent < at)
        {
            link(parent, at, "CHILD");
        }
    }
    text
}

/// Seconds of processors that this process has taken: proc_pid_stat(5).
fn processor_seconds() -> Result<f64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat
        .rsplit_once(')')
        .ok_or("/proc/self/stat has no name")?
        .1;
    let ticks: Result<Vec<u64>, _> = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect();
    // Linux shows them as hundredths of a second.
    Ok(ticks?.iter().sum::<u64>() as f64 / 100.0)
}

/// What is in each folder of an export.
fn sizes(out: &Path) -> Result<String, Failure> {
    let mut sizes = Vec::new();
    for part in ["ases", "segments"] {
        let (mut files, mut bytes) = (0, 0);
        for entry in fs::read_dir(out.join(part))? {
            files += 1;
            bytes += entry?.metadata()?.len();
        }
        let mib = bytes as f64 / f64::from(1 << 20);
        sizes.push(format!("{part}: {files} files, {mib:.1} MiB"));
    }
    Ok(sizes.join("; "))
}
