//! Another machine joins a running lab as an AS.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{A, B, B_HOST};
use crate::coordinator::bed::Process;
use crate::machine::{Machine, can_run};
use crate::support::{As, TestLab, eventually};

const INVITED: &str = "1-ff00:0:200";
const AT: &str = "10.7.0.1:50200";

/// A command that runs in the namespace of a machine.
fn on(machine: &Machine, program: &str) -> Command {
    let (own, fd) = (std::process::id(), machine.namespace.as_fd().as_raw_fd());
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/proc/{own}/fd/{fd}"))
        .arg(program);
    command
}

/// The machine of the lab, and another one, with a cable between them.
fn machines() -> (Machine, Machine) {
    let (here, there) = (Machine::new(), Machine::new());
    let mut sleeper = on(&there, "sh");
    sleeper
        .args(["-c", "echo; exec sleep 1000"])
        .stdout(Stdio::piped());
    let mut sleeper = sleeper.spawn().unwrap();
    let mut byte = [0];
    sleeper
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut byte)
        .unwrap();
    here.ip("link add eth0 type veth peer name far");
    here.ip(&format!("link set far netns {}", sleeper.id()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    here.ip("address add 10.7.0.1/24 dev eth0");
    here.ip("link set eth0 up");
    there.ip("address add 10.7.0.2/24 dev far");
    there.ip("link set far up");
    (here, there)
}

fn invite(lab: &TestLab, here: &Machine, archive: &str, more: &[&str]) -> Process {
    let mut command = on(here, lab.program());
    command.args([
        "lab", "invite", INVITED, "--parent", A, "--at", AT, "-o", archive, "--json",
    ]);
    command.args(["--name", &lab.name]).args(more);
    Process::start(command)
}

/// Runs the AS on the other machine.
fn join(lab: &TestLab, there: &mut Machine, archive: &str, state: &str) {
    let mut command = Command::new(lab.program());
    let segments = format!("{archive}.segments");
    command.args(["as", "join", archive, "--segments", &segments, "--json"]);
    command.args(["--state", state]);
    there.start(command);
    there.wait_ready();
}

/// Waits until the other machine has that many paths to B, all of them alive.
fn wait_paths(there: &Machine, count: usize) {
    eventually(&format!("{count} paths to the lab are alive"), || {
        let output = there.hawser(&["paths", B, "--json", "--wait=60s"]);
        let listing: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let paths = listing["paths"].as_array().map_or(&[][..], |paths| paths);
        paths.len() == count && paths.iter().all(|path| path["status"] == "alive")
    });
}

fn end(mut seeder: Child) {
    seeder.kill().unwrap();
    seeder.wait().unwrap();
}

#[test]
fn another_machine_joins_as_an_as() {
    if !can_run() {
        return;
    }
    let lab = As::default().up("fig4", "invite").unwrap();
    let (here, mut there) = machines();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let archive = path("as.tar.gz");
    let invited = invite(
        &lab,
        &here,
        &archive,
        &["--delay", "10ms", "--rate", "50mbit"],
    );
    invited.wait_for("the invitation is written", |event| {
        event["event"] == "invited"
    });
    join(&lab, &mut there, &archive, &path("state"));
    invited.wait_for("the other machine is heard", |event| {
        event["event"] == "heard"
    });

    // It reaches the ASes of the lab, and they reach it.
    wait_paths(&there, 2);
    let ping = ["ping", B_HOST, "-c", "3", "--interval", "100ms", "--json"];
    let output = there.hawser(&ping);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Each way has the delay once.
    let fastest = report["statistics"]["min_rtt"].as_f64().unwrap();
    assert!(fastest >= 20.0, "{report}");
    lab.assert_answers(B, &format!("{INVITED},127.0.0.1"));

    // A download over two paths.
    let (data, torrent) = (path("data"), path("data.torrent"));
    let mut bytes = vec![0; 4 << 20];
    fastrand::Rng::with_seed(3).fill(&mut bytes);
    fs::write(&data, &bytes).unwrap();
    let created = there.hawser(&["torrent", "create", &data, "-o", &torrent]);
    assert!(created.status.success(), "{created:?}");
    let mut seeder = lab.exec(B, &[lab.program(), "seed", &torrent, &data, "--json"]);
    let mut seeder = seeder.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let out = seeder.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let peer = ready["listening"].as_str().unwrap();
    let to = path("downloads");
    let get = [
        "get", &torrent, "-o", &to, "--peer", peer, "--paths", "2", "--json",
    ];
    let output = there.hawser(&get);
    assert!(output.status.success(), "{output:?}");
    assert!(fs::read(folder.path().join("downloads/data")).unwrap() == bytes);
    end(seeder);

    // Invited again, it has new segments and the same keys: the machine that runs is heard again.
    invited.terminate();
    let again = invite(&lab, &here, &archive, &["--force"]);
    again.wait_for("the other machine is heard again", |event| {
        event["event"] == "heard"
    });
    eventually("its router answers again", || {
        there.hawser(&ping).status.success()
    });

    // The lab ends, and with it the relay: nothing holds its namespaces.
    lab.down();
    let status = again.wait();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn another_machine_joins_over_several_links() {
    if !can_run() {
        return;
    }
    let lab = As::default().up("fig4", "invite-links").unwrap();
    let (here, mut there) = machines();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let archive = path("as.tar.gz");
    // In any order.
    let heard = |invited: &Process, mut interfaces: BTreeSet<u64>| {
        while !interfaces.is_empty() {
            let what = format!("the other machine is heard at interfaces {interfaces:?}");
            let found = Cell::new(0);
            invited.wait_for(&what, |event| {
                found.set(event["interface"].as_u64().unwrap_or(0));
                event["event"] == "heard"
            });
            interfaces.remove(&found.get());
        }
    };
    let invited = invite(&lab, &here, &archive, &["--parent", B, "--delay", "2ms"]);
    invited.wait_for("the invitation is written", |event| {
        event["event"] == "invited"
            && event["interfaces"]["1"] == AT
            && event["interfaces"]["2"] == "10.7.0.1:50201"
    });
    join(&lab, &mut there, &archive, &path("state"));
    heard(&invited, (1..=2).collect());
    // Over A, which has two links to B, and over B itself.
    wait_paths(&there, 3);
    lab.assert_answers(B, &format!("{INVITED},127.0.0.1"));

    // Another link, for which it takes another archive. The others stay.
    invited.terminate();
    let more = ["--parent", A, "--force", "--rate", "20mbit"];
    let again = invite(&lab, &here, &archive, &more);
    again.wait_for("the invitation is written", |event| {
        event["event"] == "invited" && event["interfaces"]["3"] == "10.7.0.1:50202"
    });
    let links = lab.status()["links"].clone();
    let of_as = (links.as_array().unwrap().iter()).filter(|link| link["b"]["isd_as"] == INVITED);
    assert_eq!(of_as.count(), 3, "{links}");
    there.joined.take().unwrap().terminate();
    join(&lab, &mut there, &archive, &path("state"));
    heard(&again, (1..=3).collect());
    wait_paths(&there, 5);
    lab.down();
    assert_eq!(again.wait().code(), Some(1));
}

#[test]
fn what_cannot_be_invited_is_refused_with_a_line() {
    if !can_run() {
        return;
    }
    let lab = As::default().up("fig4", "invite-faults").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("as.tar.gz");
    let archive = archive.to_str().unwrap();
    let refuse = |isd_as: &str, parent: &str, at: &str| {
        let args = [
            "lab", "invite", isd_as, "--parent", parent, "--at", at, "-o", archive,
        ];
        lab.by.refuse(&[&args[..], &["--name", &lab.name]].concat())
    };
    let before = lab.status();
    for (isd_as, parent, at, word) in [
        (B, A, "127.0.0.1:50200", "whose services the lab runs"),
        (
            INVITED,
            "1-ff00:0:999",
            "127.0.0.1:50200",
            "the lab has no AS 1-ff00:0:999",
        ),
        (
            INVITED,
            A,
            "192.0.2.1:50200",
            "cannot listen at UDP 192.0.2.1:50200",
        ),
        ("3-ff00:0:200", A, "127.0.0.1:50200", "ISD 3 has no core AS"),
        (
            INVITED,
            INVITED,
            "127.0.0.1:50200",
            "the lab has no AS 1-ff00:0:200",
        ),
    ] {
        let error = refuse(isd_as, parent, at);
        assert!(error.contains(word), "{isd_as}: {error}");
    }
    assert_eq!(
        lab.status()["ases"].as_array().unwrap().len(),
        before["ases"].as_array().unwrap().len()
    );
    assert!(!fs::exists(archive).unwrap());
}
