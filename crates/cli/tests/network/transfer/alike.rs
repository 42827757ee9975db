//! A download and the simulator make the same decision about every path of the same network.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hawser_sim::{Decided, Hosts, Options, SelectBy, decisions};
use hawser_topology::Network;

use super::*;
use crate::support::topology;

/// The places of a seeder and leechers in a network, and the side that chooses the paths.
struct Scene<'a> {
    by: SelectBy,
    network: Network,
    /// The argument of `lab up`.
    topology: &'a str,
    name: &'a str,
    seeder: &'a str,
    leechers: &'a [&'a str],
    paths: usize,
}

/// Decisions and their reasons, by leecher and path in the direction from the side that chooses.
type Decisions = BTreeMap<(usize, String), String>;

impl Scene<'_> {
    /// The simulator's decisions before sensing tries a path.
    fn simulated(&self) -> Decisions {
        let leechers = self.leechers.iter().map(|one| one.parse().unwrap());
        let options = Options {
            hosts: Hosts {
                leechers: self.leechers.len(),
                seeders_in: vec![self.seeder.parse().unwrap()],
                leechers_in: leechers.collect(),
                ..Hosts::default()
            },
            size: 100 << 20,
            arrive: Duration::ZERO,
            duration: Duration::from_secs(3),
            paths: self.paths,
            known: 100,
            peers: 0,
            ..Options::default()
        };
        let decided = decisions(&self.network, &options, self.by).unwrap();
        let is_sensed = |one: &Decided| one.decision.reason.to_string().contains("tried");
        let mut all = Decisions::new();
        for one in decided.iter().take_while(|one| !is_sensed(one)) {
            let mut text = one.decision.to_string();
            for leecher in 0..self.leechers.len() {
                // The seeder is host 0, and leechers follow.
                text = text.replace(&format!("host {}", leecher + 1), &name(leecher));
            }
            all.insert((one.leecher - 1, one.path.to_string()), text);
        }
        all
    }

    /// Waits until the choosing programs in a lab have made the same decisions; fails after a
    /// minute.
    fn check(&self) {
        let expected = self.simulated();
        assert!(!expected.is_empty());
        let Some(lab) = As::default().up(self.topology, self.name) else {
            return;
        };
        let files = Files::new(&[("data", 100 << 20)]);
        let (torrent, content) = (files.torrent(), files.content());
        let args = [
            "seed",
            torrent.to_str().unwrap(),
            content.to_str().unwrap(),
            "--json",
        ];
        let log = ["RUST_LOG=hawser_torrent::swarm=debug"];
        let mut seeder = Running::start_with(&lab, self.seeder, &log, &args.map(str::to_owned));
        let mut line = String::new();
        let out = seeder.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let peer = ready["listening"].as_str().unwrap().to_owned();
        let decided = Log::default();
        let mut readers = Vec::new();
        if self.by == SelectBy::Uploader {
            readers.push(decided.follow(&mut seeder, None));
        }
        let mut running = Vec::new();
        for (number, isd_as) in self.leechers.iter().enumerate() {
            let into = files.folder.path().join(number.to_string());
            let mut args = files.get_args(&peer);
            args[3] = into.to_str().unwrap().to_owned();
            args.extend(["--paths".to_owned(), self.paths.to_string()]);
            args.extend(["--select-by".to_owned(), self.by.to_string()]);
            let mut leecher = Running::start_with(&lab, isd_as, &log, &args);
            if self.by == SelectBy::Downloader {
                readers.push(decided.follow(&mut leecher, Some(name(number))));
            }
            running.push(leecher);
            // Leechers start in this order, as in the simulation.
            eventually("something is decided about a leecher", || {
                peers(&decided.lines()).len() > number
            });
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let is_alike = || states(&decided.lines()).contains(&expected);
        while !is_alike() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        drop((running, seeder));
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        let states = states(&decided.lines());
        assert!(
            states.contains(&expected),
            "{expected:#?} is none of {states:#?}"
        );
    }
}

/// The decisions that programs log: peer, path and decision of each.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<[String; 3]>>>);

impl Log {
    fn lines(&self) -> Vec<[String; 3]> {
        self.0.lock().unwrap().clone()
    }

    /// Reads a program's log. A `name` replaces the peer of all decisions.
    fn follow(&self, program: &mut Running, name: Option<String>) -> JoinHandle<()> {
        let (stderr, log) = (program.0.stderr.take().unwrap(), self.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let decided = weighed(&line.unwrap())
                    .map(|[peer, path, decision]| [name.clone().unwrap_or(peer), path, decision]);
                log.0.lock().unwrap().extend(decided);
            }
        })
    }
}

/// The name of a leecher in both.
fn name(leecher: usize) -> String {
    format!("leecher {leecher}")
}

/// The peer, the path and the decision in a line of a log.
fn weighed(line: &str) -> Option<[String; 3]> {
    let (_, fields) = line.split_once("path weighed ")?;
    let (peer, fields) = fields.strip_prefix("peer=")?.split_once(" path=")?;
    let (path, decision) = fields.split_once(" decision=")?;
    Some([peer, path, decision].map(str::to_owned))
}

/// The leechers in the order in which they started.
fn peers(decided: &[[String; 3]]) -> Vec<String> {
    let mut peers: Vec<String> = Vec::new();
    for [peer, ..] in decided {
        if !peers.contains(peer) {
            peers.push(peer.clone());
        }
    }
    peers
}

/// All decisions after each single one, before sensing tries a path. A link that fails later does
/// not change earlier states.
fn states(decided: &[[String; 3]]) -> Vec<Decisions> {
    let peers = peers(decided);
    let decided = decided
        .iter()
        .take_while(|[.., text]| !text.contains("tried"));
    let states = decided.scan(Decisions::new(), |state, [peer, path, text]| {
        let leecher = peers.iter().position(|one| one == peer)?;
        let mut text = text.clone();
        for (at, peer) in peers.iter().enumerate() {
            text = text.replace(peer.as_str(), &name(at));
        }
        state.insert((leecher, path.clone()), text);
        Some(state.clone())
    });
    states.collect()
}

#[test]
fn an_uploader_and_the_simulator_decide_alike_on_fig7a() {
    fig7a(SelectBy::Uploader, "alike-7a");
}

#[test]
fn a_downloader_and_the_simulator_decide_alike_on_fig7a() {
    fig7a(SelectBy::Downloader, "alike-7a-down");
}

fn fig7a(by: SelectBy, name: &str) {
    let scene = Scene {
        by,
        network: Network::ready("fig7a").unwrap(),
        topology: "fig7a",
        name,
        seeder: "1-ff00:0:4",
        leechers: &["1-ff00:0:1"],
        paths: 4,
    };
    scene.check();
}

#[test]
fn an_uploader_and_the_simulator_decide_alike_on_fig9() {
    fig9(SelectBy::Uploader, "alike-9");
}

#[test]
fn downloaders_and_the_simulator_decide_alike_on_fig9() {
    fig9(SelectBy::Downloader, "alike-9-down");
}

fn fig9(by: SelectBy, name: &str) {
    let scene = Scene {
        by,
        network: Network::ready("fig9").unwrap(),
        topology: "fig9",
        name,
        seeder: "1-ff00:0:5",
        leechers: &["1-ff00:0:1", "1-ff00:0:4"],
        paths: 4,
    };
    scene.check();
}

/// The largest network of the experiment `unequal`.
const UNEQUAL: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {core: true}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, rate: 20mbit, delay: 5ms}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:111#2", linkAtoB: CORE, rate: 2mbit, delay: 100ms}
  - {a: "1-ff00:0:110#3", b: "1-ff00:0:111#3", linkAtoB: CORE, rate: 500kbit, delay: 300ms, loss: 10%}
"#;

#[test]
fn an_uploader_and_the_simulator_decide_alike_on_unequal_links() {
    unequal(SelectBy::Uploader, "alike-unequal");
}

#[test]
fn a_downloader_and_the_simulator_decide_alike_on_unequal_links() {
    unequal(SelectBy::Downloader, "alike-unequal-down");
}

fn unequal(by: SelectBy, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene {
        by,
        network: Network::parse(UNEQUAL).unwrap(),
        topology: &topology(folder.path(), UNEQUAL),
        name,
        seeder: B,
        leechers: &[A],
        paths: 3,
    };
    scene.check();
}
