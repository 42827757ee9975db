//! Rates and round trips between ASes of the network, on each engine and in a lab.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::compare::wait_pair;
use super::containerlab::Hosts;
use super::pods::Pods;
use super::{Machines, NETWORK, lab, names};
use crate::content::{Running, print};
use crate::machine::can_run;

/// Between which ASes is measured, over the first of the lab's paths: over one link and several, inside an
/// ISD and between both, with peers and core ASes. Each path has a limit and a delay.
const PAIRS: [(&str, &str); 6] = [
    ("1-ff00:0:133", "1-ff00:0:132"),
    ("1-ff00:0:113", "1-ff00:0:110"),
    ("1-ff00:0:113", "1-ff00:0:123"),
    ("2-ff00:0:213", "2-ff00:0:220"),
    ("1-ff00:0:111", "2-ff00:0:211"),
    ("1-ff00:0:123", "2-ff00:0:223"),
];

/// A hawser command that runs in an AS.
type Start<'a> = &'a dyn Fn(&str, &[&str]) -> Command;

/// A measured rate.
pub struct Rate {
    pub mbit: f64,
    /// The address of the receiving host, without a port.
    host: String,
}

/// The rate of a QUIC stream from one AS to another.
pub fn rate(start: Start<'_>, from: &str, to: &str, flags: &[&str]) -> Rate {
    let mut server = start(to, &["perf", "--server", "--json"]);
    let mut server = Running(server.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let mut out = BufReader::new(server.0.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    let address = listening["listening"].as_str().unwrap();
    let perf = ["perf", address, "--json"];
    let report: Value =
        serde_json::from_str(&print(start(from, &[&perf, flags].concat()))).unwrap();
    Rate {
        mbit: report["goodput_mbit"].as_f64().unwrap(),
        host: address.rsplit_once(':').unwrap().0.to_owned(),
    }
}

/// How often the rate of a pair is measured.
const REPEAT: usize = 3;

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The median of rates in Mbit/s, and of round trips in ms, of each pair.
fn measure(start: Start<'_>, paths: &[String]) -> Vec<[f64; 2]> {
    let pairs = PAIRS.iter().zip(paths);
    let figures = pairs.map(|((from, to), path)| {
        let flags = ["--time", "3s", "--path", path];
        let rates: Vec<_> = (0..REPEAT).map(|_| rate(start, from, to, &flags)).collect();
        let ping = ["ping", &rates[0].host, "--path", path, "-c", "100"];
        let often = ["--interval", "20ms", "--json"];
        let report = print(start(from, &[&ping[..], &often].concat()));
        let report: Value = serde_json::from_str(&report).unwrap();
        let replies = report["replies"].as_array().unwrap().iter();
        let times = replies.map(|reply| reply["round_trip_time"].as_f64().unwrap());
        let rates = rates.iter().map(|rate| rate.mbit);
        [median(rates.collect()), median(times.collect())]
    });
    figures.collect()
}

/// Waits until the machines have their paths, and measures between them.
fn measure_machines(machines: &Machines, paths: &[String]) -> Vec<[f64; 2]> {
    let ask = |isd_as: &str, args: &[&str]| machines[isd_as].hawser(args);
    for (from, to) in PAIRS {
        wait_pair(&ask, from, to, None);
    }
    measure(&|isd_as, args| machines[isd_as].command(args), paths)
}

/// Prints the table: what is exported beside the lab, and by how much it differs.
fn show(columns: &BTreeMap<&str, Vec<[f64; 2]>>) {
    for (at, what) in ["Mbit/s", "ms"].into_iter().enumerate() {
        print!("{:32}", format!("{what}, median"));
        columns.keys().for_each(|name| print!("{name:>18}"));
        println!();
        let lab = &columns["a lab"];
        for (row, (from, to)) in PAIRS.iter().enumerate() {
            print!("{:32}", format!("{from} to {to}"));
            for figures in columns.values() {
                let (figure, base) = (figures[row][at], lab[row][at]);
                let percent = 100.0 * (figure / base - 1.0);
                print!("{:>18}", format!("{figure:.2} ({percent:+.1} %)"));
            }
            println!();
        }
    }
}

#[test]
#[ignore = "measures: run it alone"]
fn rates_and_round_trips_on_each_engine() {
    if !can_run() {
        return;
    }
    let Some(lab) = lab("engine-rates") else {
        return;
    };
    let mut columns = BTreeMap::new();
    let ask = |isd_as: &str, args: &[&str]| lab.hawser(isd_as, args);
    let mut paths = Vec::new();
    for (from, to) in PAIRS {
        wait_pair(&ask, from, to, None);
        let args = ["paths", to, "--timeout", "60s", "--json"];
        let listing: Value = serde_json::from_slice(&ask(from, &args).stdout).unwrap();
        let first = &listing["paths"][0]["fingerprint"];
        paths.push(first.as_str().unwrap().to_owned());
    }
    let start = |isd_as: &str, args: &[&str]| {
        let command = [&[lab.program()], args].concat();
        lab.exec(isd_as, &command)
    };
    columns.insert("a lab", measure(&start, &paths));
    lab.down();
    if let Some(hosts) = Hosts::start() {
        let machines = hosts.deploy(NETWORK, &names());
        columns.insert("containerlab", measure_machines(&machines, &paths));
    }
    if let Some(pods) = Pods::start(NETWORK) {
        let machines = pods.play_all(&names());
        columns.insert("pods", measure_machines(&machines, &paths));
    }
    show(&columns);
}
