//! What a flood of forged SCMP errors against a seeder costs a download: over one path and over
//! four, for each kind of error, at several rates: so many a second about each of the four links.
//!
//! `cargo bench -p hawser --bench scmp_flood` (with `-- 64` for downloads of 64 MiB instead of 512).
//! Each block begins with an undisturbed download, which the others are compared with; every file is
//! compared with the seeded one. It brings up a lab, so it needs root or user namespaces.

#![allow(clippy::unwrap_used)]

#[path = "../tests/network/flood.rs"]
mod flood;
#[path = "../tests/network/support.rs"]
#[allow(dead_code)]
mod support;

use serde_json::Value;
use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
};
use support::{As, TestLab};

/// Errors a second about each link.
const RATES: [u32; 4] = [1, 20, 100, 1000];
/// Where the download is.
const A: &str = "1-ff00:0:110";
/// MiB of a download unless said.
const SIZE: u64 = 512;

/// A process that ends with its run.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() {
    flood::attack_if_planned();
    let size = env::args().find_map(|word| word.parse().ok());
    let folder = tempfile::tempdir().unwrap();
    let content = folder.path().join("data");
    make_content(&content, size.unwrap_or(SIZE) << 20);
    let file = support::topology(folder.path(), flood::FOUR_LINKS);
    let Some(lab) = As::default().up(&file, "scmp-flood") else {
        return;
    };
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
        for (kind, from) in flood::KINDS {
            let undisturbed = download.run(paths, None);
            undisturbed.print(paths, kind, from, 0, &undisturbed);
            for rate in RATES {
                let flooded = download.run(paths, Some((kind, from, rate)));
                flooded.print(paths, kind, from, rate, &undisturbed);
            }
        }
    }
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
    /// Connections that ended before the download.
    ended: usize,
}

impl Outcome {
    fn print(&self, paths: usize, kind: &str, from: &str, rate: u32, undisturbed: &Outcome) {
        let (mbit, ratio) = (self.mbit, self.mbit / undisturbed.mbit);
        let ended = self.ended;
        println!("{paths:<6} {kind:<15} {from:<15} {rate:>8} {mbit:>8.1} {ratio:>15.2} {ended:>6}");
    }
}

impl Download<'_> {
    /// Downloads over at most so many paths, under a flood of a kind from an AS at a rate.
    fn run(&self, paths: usize, errors: Option<(&str, &str, u32)>) -> Outcome {
        let _flood = errors.map(|(kind, from, rate)| {
            let mut command = flood::this_program(&[]);
            flood::plan(&mut command, kind, rate, &self.victim);
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
        let seconds = report["seconds"].as_f64().unwrap();
        Outcome {
            mbit: got.len() as f64 * 8.0 / seconds / 1e6,
            ended: log.matches("connection ended").count(),
        }
    }
}

/// Bytes no two pieces of which are alike.
fn make_content(path: &Path, size: u64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let bytes = (0..size / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    fs::write(path, bytes.collect::<Vec<u8>>()).unwrap();
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
