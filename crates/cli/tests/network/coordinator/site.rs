//! A coordinator, and machines with addresses of their own around it.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::bed::{Process, request};
use crate::machine::Machine;
use crate::support::eventually;

/// Where the coordinator listens, on the machine between all others.
const AT: &str = "10.9.0.1:8040";

/// A coordinator, and machines that reach each other over it.
pub struct Site {
    // The process ends before its namespace.
    coordinator: Option<Process>,
    hub: Machine,
    admin: String,
    folder: TempDir,
}

impl Site {
    pub fn new() -> Self {
        let hub = Machine::new();
        hub.ip("address add 10.9.0.1/32 dev lo");
        let forward = || fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        hub.namespace.run(forward).unwrap().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let admin = String::new();
        let coordinator = None;
        let mut site = Self {
            coordinator,
            hub,
            admin,
            folder,
        };
        site.start();
        site
    }

    /// Starts the coordinator, with the state that it had.
    pub fn start(&mut self) {
        let state = self.folder.path().join("coordinator");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.args([
            "coordinator",
            "--listen",
            AT,
            "--allow-plain-http",
            "--state",
        ]);
        command.arg(&state).args(["--url", &format!("http://{AT}")]);
        let hub = &self.hub;
        let coordinator = hub.namespace.run(|| Process::start(command)).unwrap();
        self.coordinator = Some(coordinator);
        eventually("the coordinator has an administrator, and answers", || {
            let token = fs::read_to_string(state.join("admin-token")).unwrap_or_default();
            token.trim().clone_into(&mut self.admin);
            let connect = || TcpStream::connect(AT).is_ok();
            !self.admin.is_empty() && hub.namespace.run(connect).unwrap()
        });
    }

    /// Kills the coordinator; its state stays.
    pub fn kill(&mut self) {
        self.coordinator = None;
    }

    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Vec<u8> {
        let connect = || TcpStream::connect(AT).unwrap();
        let stream = self.hub.namespace.run(connect).unwrap();
        let (status, answer) = request(stream, (method, path), &self.admin, body);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!((200..300).contains(&status), "{path}: {status} {text}");
        answer
    }

    /// A machine with the address `10.9.N.1`, and the AS on it, which is added as `kind`.
    pub fn machine(&self, number: u8, isd_as: &str, kind: &str) -> Machine {
        let machine = Machine::new();
        let near = format!("m{number}");
        machine.ip(&format!("link add eth0 type veth peer name {near}"));
        machine.ip(&format!("link set {near} netns {}", self.hub.file()));
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

    pub fn archive(&self, isd_as: &str) -> PathBuf {
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
    pub fn join(&self, machine: &mut Machine, archive: &Path, more: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.args(["as", "join", "--json", "--state"]);
        command
            .arg(archive.with_extension("d"))
            .arg(archive)
            .args(more);
        machine.start(command);
    }
}

/// Gives the device of a machine the address `10.9.N.LAST` in place of what it has, as DHCP does.
pub fn set_address(machine: &Machine, number: u8, last: u8) {
    machine.ip("address flush dev eth0");
    machine.ip(&format!("address add 10.9.{number}.{last}/24 dev eth0"));
    machine.ip(&format!("route add default via 10.9.{number}.254"));
}

/// Waits for a configuration that interrupts nothing.
pub fn wait_changed(machine: &Machine, what: &str) {
    let joined = machine.joined.as_ref().unwrap();
    joined.wait_for(what, |event| {
        event["event"] == "changed" && event["restart"] == false
    });
}

/// Waits until a machine limits a link to a rate in bit/s.
pub fn wait_limit(machine: &Machine, rate: u32) {
    eventually(&format!("a limit of {rate} bit/s"), || {
        let shown = machine.hawser(&["limit", "show", "--json"]);
        String::from_utf8_lossy(&shown.stdout).contains(&rate.to_string())
    });
}
