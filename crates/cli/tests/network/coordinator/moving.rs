//! Machines that get other addresses while their ASes run.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hawser_kernel::namespace::NetNs;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::bed::{Process, request};
use crate::machine::{Machine, can_run};
use crate::support::eventually;

const POINT: &str = "1-ff00:0:110";
const MOVES: &str = "1-ff00:0:111";
const STAYS: &str = "1-ff00:0:112";
/// Where the coordinator listens, on the machine between all others.
const AT: &str = "10.9.0.1:8040";

/// A coordinator, and machines that reach each other over it.
struct Site {
    // The process ends before its namespace.
    _coordinator: Process,
    hub: Machine,
    admin: String,
    folder: TempDir,
}

impl Site {
    fn new() -> Self {
        let hub = Machine::new();
        hub.ip("address add 10.9.0.1/32 dev lo");
        let forward = || fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        hub.namespace.run(forward).unwrap().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("coordinator");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.args([
            "coordinator",
            "--listen",
            AT,
            "--allow-plain-http",
            "--state",
        ]);
        command.arg(&state).args(["--url", &format!("http://{AT}")]);
        let _coordinator = hub.namespace.run(|| Process::start(command)).unwrap();
        let mut admin = String::new();
        eventually("the coordinator has an administrator, and answers", || {
            let token = fs::read_to_string(state.join("admin-token")).unwrap_or_default();
            token.trim().clone_into(&mut admin);
            let connect = || TcpStream::connect(AT).is_ok();
            !admin.is_empty() && hub.namespace.run(connect).unwrap()
        });
        Self {
            _coordinator,
            hub,
            admin,
            folder,
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Vec<u8> {
        let connect = || TcpStream::connect(AT).unwrap();
        let stream = self.hub.namespace.run(connect).unwrap();
        let (status, answer) = request(stream, (method, path), &self.admin, body);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!((200..300).contains(&status), "{path}: {status} {text}");
        answer
    }

    /// A machine with the address `10.9.N.1`, and the AS on it, which is added as `kind`.
    fn machine(&self, number: u8, isd_as: &str, kind: &str) -> Machine {
        let machine = Machine::new();
        let near = format!("m{number}");
        machine.ip(&format!("link add eth0 type veth peer name {near}"));
        move_device(&machine, &near, &self.hub.namespace);
        self.hub
            .ip(&format!("address add 10.9.{number}.254/24 dev {near}"));
        self.hub.ip(&format!("link set {near} up"));
        machine.ip("link set eth0 up");
        set_address(&machine, number, 1);
        let address = format!("10.9.{number}.1");
        let new = json!({"isd_as": isd_as, "label": isd_as, "addresses": [address]});
        self.ask("POST", &format!("/api/v1/{kind}"), &new);
        machine
    }

    fn archive(&self, isd_as: &str) -> PathBuf {
        let archive = self.ask(
            "GET",
            &format!("/api/v1/ases/{isd_as}/archive"),
            &Value::Null,
        );
        let file = self.folder.path().join(isd_as.replace(':', "_"));
        fs::write(&file, archive).unwrap();
        file
    }

    /// Runs an AS on its machine; its folder stays.
    fn join(&self, machine: &mut Machine, archive: &Path, more: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.args(["as", "join", "--json", "--state"]);
        command
            .arg(archive.with_extension("d"))
            .arg(archive)
            .args(more);
        machine.start(command);
    }
}

/// Moves a device to another namespace.
fn move_device(from: &Machine, device: &str, to: &NetNs) {
    use std::os::fd::{AsFd, AsRawFd};
    let (own, fd) = (std::process::id(), to.as_fd().as_raw_fd());
    // `ip link set netns` takes the number of a process, or a name.
    let mut sleeper = Command::new("nsenter")
        .arg(format!("--net=/proc/{own}/fd/{fd}"))
        .args(["sh", "-c", "echo; exec sleep 1000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(&mut sleeper.stdout.take().unwrap(), &mut byte).unwrap();
    from.ip(&format!("link set {device} netns {}", sleeper.id()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

/// Gives the device of a machine the address `10.9.N.LAST` in place of what it has, as DHCP does.
fn set_address(machine: &Machine, number: u8, last: u8) {
    machine.ip("address flush dev eth0");
    machine.ip(&format!("address add 10.9.{number}.{last}/24 dev eth0"));
    machine.ip(&format!("route add default via 10.9.{number}.254"));
}

/// Echo requests without an end.
fn start_pings(machine: &Machine, to: &str) -> Child {
    let host = format!("{to},127.0.0.1");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args([
        "ping",
        &host,
        "--interval",
        "20ms",
        "--timeout",
        "60s",
        "--json",
    ]);
    command.stdout(Stdio::piped());
    machine.namespace.run(|| command.spawn()).unwrap().unwrap()
}

/// Ends them: the number of requests that were answered, and of those before the last of these that were
/// not.
fn end_pings(child: Child) -> (usize, usize) {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let replies = report["replies"].as_array().unwrap().iter();
    let answered: Vec<u64> = replies
        .map(|reply| reply["scmp_seq"].as_u64().unwrap())
        .collect();
    let last = answered.iter().max().map_or(0, |last| last + 1);
    (
        answered.len(),
        usize::try_from(last).unwrap() - answered.len(),
    )
}

/// Waits for a configuration that interrupts nothing.
fn wait_changed(machine: &Machine, what: &str) {
    let joined = machine.joined.as_ref().unwrap();
    joined.wait_for(what, |event| {
        event["event"] == "changed" && event["restart"] == false
    });
}

#[test]
fn a_machine_with_another_address_is_found_by_its_neighbours() {
    if !can_run() {
        return;
    }
    let site = Site::new();
    let mut point = site.machine(10, POINT, "attachment-points");
    let mut moves = site.machine(11, MOVES, "ases");
    let mut stays = site.machine(12, STAYS, "ases");
    for user in [MOVES, STAYS] {
        let maximum = json!({"egress": 100_000_000, "ingress": 100_000_000});
        let link = json!({"attachment_point": POINT, "user_as": user, "maximum": maximum});
        site.ask("POST", "/api/v1/links", &link);
    }
    let archives = [POINT, MOVES, STAYS].map(|isd_as| site.archive(isd_as));
    for (machine, archive) in [&mut point, &mut moves, &mut stays]
        .into_iter()
        .zip(&archives)
    {
        site.join(machine, archive, &[]);
    }
    for machine in [&point, &moves, &stays] {
        machine.wait_ready();
    }
    moves.assert_reaches(STAYS);
    stays.assert_reaches(POINT);
    // What came at the start is done with.
    for machine in [&point, &moves] {
        machine.joined.as_ref().unwrap().events();
    }

    let pings = start_pings(&stays, POINT);
    set_address(&moves, 11, 2);
    let joined = moves.joined.as_ref().unwrap();
    joined.wait_for("the machine notices", |event| {
        event["event"] == "moved" && event["from"] == "10.9.11.1" && event["to"] == "10.9.11.2"
    });
    wait_changed(&moves, "its router goes over");
    wait_changed(&point, "its neighbour goes over");
    moves.assert_reaches(POINT);
    moves.assert_reaches(STAYS);
    let (answered, lost) = end_pings(pings);
    assert!(
        answered > 10 && lost == 0,
        "{answered} answered, {lost} lost"
    );
    let of_coordinator = site.ask("GET", &format!("/api/v1/ases/{MOVES}"), &Value::Null);
    let known: Value = serde_json::from_slice(&of_coordinator).unwrap();
    assert_eq!(known["addresses"], json!(["10.9.11.2"]), "{known}");
    for machine in [&point, &moves, &stays] {
        let events = machine.joined.as_ref().unwrap().events();
        let is_trouble = |event: &&Value| {
            event["event"] == "ended" || (event["event"] == "changed" && event["restart"] == true)
        };
        let trouble: Vec<_> = events.iter().filter(is_trouble).collect();
        assert!(trouble.is_empty(), "{trouble:?}");
    }

    // A machine that was off meanwhile: it never had the address of its configuration.
    moves.joined.take().unwrap().terminate();
    set_address(&moves, 11, 3);
    site.join(&mut moves, &archives[1], &["--address", "auto"]);
    moves.wait_ready();
    moves.assert_reaches(STAYS);
}
