//! Measures how a flood of forged SCMP errors against a seeder slows a download: over one path and
//! over four, for each kind of error, at several rates.
//!
//! `cargo bench -p hawser-cli --bench scmp_flood [-- MIB [MBIT]]`: downloads of `MIB` (256 by default),
//! over links of `MBIT` Mbit/s (no limit by default). Undisturbed and flooded downloads alternate;
//! the table has medians. Every file is compared with the seeded one. The benchmark brings up a
//! lab, so it needs root or user namespaces.

#![allow(clippy::unwrap_used)]

#[path = "../tests/network/flood.rs"]
mod flood;
#[path = "../tests/network/support.rs"]
#[allow(dead_code)]
mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::{env, fs};

use serde_json::Value;

use self::flood::Flood;
use self::support::{As, TestLab};

/// Errors per second; 0 for an undisturbed download.
const RATES: [u32; 5] = [0, 1, 20, 100, 1000];
/// Downloads at each rate.
const REPEAT: usize = 3;
/// The leecher's AS.
const A: &str = "1-ff00:0:110";
/// Default size of a download, in MiB.
const SIZE: u64 = 256;

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() {
    flood::attack_if_planned();
    let numbers: Vec<u64> = env::args().filter_map(|word| word.parse().ok()).collect();
    let folder = tempfile::tempdir().unwrap();
    let content = folder.path().join("data");
    make_content(&content, numbers.first().copied().unwrap_or(SIZE) << 20);
    let file = support::topology(folder.path(), flood::FOUR_LINKS);
    let Some(lab) = As::default().up(&file, "scmp-flood") else {
        return;
    };
    if let Some(mbit) = numbers.get(1) {
        for link in 1..=4 {
            lab.set(&format!("{A}#{link}"), &["--rate", &format!("{mbit}mbit")]);
        }
    }
    let torrent = folder.path().join("data.torrent");
    let words = |path: &Path| path.to_str().unwrap().to_owned();
    let (torrent, content) = (words(&torrent), words(&content));
    lab.by
        .print(&["torrent", "create", &content, "-o", &torrent]);
    let (_seeder, victim) = seed(&lab, &torrent, &content);
    let download = Download {
        lab: &lab,
        torrent,
        content,
        into: folder.path().join("downloads"),
        victim,
    };
    println!("paths  errors          from            a second   Mbit/s  of undisturbed  ended");
    for paths in [1, 4] {
        let links = download.run(paths, None).links;
        for (kind, from) in flood::KINDS {
            let mut outcomes: [Vec<Outcome>; RATES.len()] = Default::default();
            for _ in 0..REPEAT {
                for (rate, outcomes) in RATES.into_iter().zip(&mut outcomes) {
                    let flood = Flood {
                        kind,
                        rate,
                        links: &links,
                        victim: &download.victim,
                    };
                    let flood = (rate > 0).then_some((from, flood));
                    outcomes.push(download.run(paths, flood));
                }
            }
            let medians = outcomes.each_mut().map(|outcomes| median(outcomes));
            for ((rate, outcomes), mbit) in RATES.into_iter().zip(&outcomes).zip(medians) {
                let ended: usize = outcomes.iter().map(|outcome| outcome.ended).sum();
                let ratio = mbit / medians[0];
                println!(
                    "{paths:<6} {kind:<15} {from:<15} {rate:>8} {mbit:>8.1} {ratio:>15.2} {ended:>6}"
                );
            }
        }
    }
}

fn median(outcomes: &mut [Outcome]) -> f64 {
    outcomes.sort_by(|one, other| one.mbit.total_cmp(&other.mbit));
    outcomes[outcomes.len() / 2].mbit
}

struct Download<'a> {
    lab: &'a TestLab,
    torrent: String,
    content: String,
    into: PathBuf,
    victim: String,
}

struct Outcome {
    mbit: f64,
    /// Connections that ended before the download did.
    ended: usize,
    /// The links that the download used.
    links: Vec<u16>,
}

impl Download<'_> {
    /// Downloads over at most `paths` paths, under a flood from an AS if one is given.
    fn run(&self, paths: usize, flood: Option<(&str, Flood)>) -> Outcome {
        let quoted = flood.as_ref().map(|(_, flood)| flood.links);
        let _flood = flood.map(|(from, flood)| {
            let mut command = flood::this_program(&[]);
            flood.plan(&mut command);
            Running(flood::start(&command, |words| self.lab.exec(from, words)))
        });
        let (into, paths) = (self.into.to_str().unwrap(), paths.to_string());
        let hawser = env!("CARGO_BIN_EXE_hawser");
        let get = [
            "env",
            "RUST_LOG=hawser_torrent=debug",
            hawser,
            "get",
            &self.torrent,
        ];
        let how = [
            "-o",
            into,
            "--peer",
            &self.victim,
            "--paths",
            &paths,
            "--select",
            "shortest",
            "--json",
        ];
        let output = self.lab.exec(A, &[&get[..], &how].concat()).output();
        let output = output.unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{log}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let got = fs::read(self.into.join("data")).unwrap();
        assert!(got == fs::read(&self.content).unwrap(), "the file differs");
        fs::remove_dir_all(&self.into).unwrap();
        let links = links(&report);
        let flooded = |link| quoted.iter().all(|quoted| quoted.contains(link));
        let ended = log.matches("connection ended").count();
        let as_planned = ended > 0 || links.iter().all(flooded);
        assert!(as_planned, "it went over other links: {report}");
        let seconds = report["seconds"].as_f64().unwrap();
        Outcome {
            mbit: got.len() as f64 * 8.0 / seconds / 1e6,
            ended,
            links,
        }
    }
}

/// The numbers of the links whose paths carried a download.
fn links(report: &Value) -> Vec<u16> {
    let paths = report["paths"].as_array().unwrap();
    let first = |path: &Value| {
        let interface = path["interfaces"][0].as_str().unwrap();
        interface.split_once('#').unwrap().1.parse().unwrap()
    };
    let used = paths.iter().filter(|path| path["bytes"] != 0);
    used.map(first).collect()
}

/// Bytes in which no two pieces are equal.
fn make_content(path: &Path, size: u64) {
    let mut bytes = vec![0; size as usize];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Starts a seeder, and returns its address once it listens.
fn seed(lab: &TestLab, torrent: &str, content: &str) -> (Running, String) {
    let hawser = env!("CARGO_BIN_EXE_hawser");
    let mut command = lab.exec(flood::B, &[hawser, "seed", torrent, content, "--json"]);
    let mut seeder = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let out = seeder.0.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    (seeder, ready["listening"].as_str().unwrap().to_owned())
}
