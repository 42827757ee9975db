//! Machines of an exported network: each AS in a network namespace of its own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{NetNs, is_privileged};
use serde_json::Value;
use tempfile::TempDir;

use crate::coordinator::bed::{Process, received_bytes};
use crate::support::topology;

/// Whether the tests can run here; says why not.
pub fn can_run() -> bool {
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    if !is_privileged() || !has_ip {
        eprintln!("skipped: needs root and the program ip");
        return false;
    }
    true
}

/// An AS in a namespace of its own.
pub struct Machine {
    // It ends before its namespace.
    pub joined: Option<Process>,
    pub namespace: NetNs,
}

impl Machine {
    pub fn new() -> Self {
        let namespace = NetNs::create().unwrap();
        let machine = Self {
            joined: None,
            namespace,
        };
        machine.ip("link set lo up");
        machine
    }

    /// The machine of a container: the namespace that a file names.
    pub fn open(file: &Path) -> Self {
        let namespace = NetNs::open(file).unwrap();
        let joined = None;
        Self { joined, namespace }
    }

    /// The file of its namespace, which this process has open.
    pub fn file(&self) -> String {
        let fd = self.namespace.as_fd().as_raw_fd();
        format!("/proc/{}/fd/{fd}", std::process::id())
    }

    /// A hawser command that runs there.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.file()));
        command.arg(env!("CARGO_BIN_EXE_hawser")).args(args);
        command
    }

    /// Bytes that it has received.
    pub fn received(&self) -> u64 {
        let read = || fs::read_to_string("/proc/thread-self/net/dev");
        received_bytes(&self.namespace.run(read).unwrap().unwrap())
    }

    /// Starts echo requests without an end.
    pub fn start_pings(&self, to: &str) -> Child {
        let host = format!("{to},127.0.0.1");
        let args = ["--interval", "20ms", "--timeout", "60s", "--json"];
        let mut command = self.command(&[&["ping", &host][..], &args].concat());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a process that stays.
    pub fn start(&mut self, mut command: Command) {
        command.stderr(Stdio::inherit());
        // The thread that starts it must live as long: the process may follow it.
        let started = self.namespace.run(|| Process::start(command));
        self.joined = Some(started.unwrap());
    }

    pub fn run(&self, command: &mut Command) -> Output {
        self.namespace.run(|| command.output()).unwrap().unwrap()
    }

    pub fn ip(&self, words: &str) {
        let mut command = Command::new("ip");
        let output = self.run(command.args(words.split_whitespace()));
        assert!(output.status.success(), "ip {words}: {output:?}");
    }

    pub fn hawser(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        self.run(command.args(args))
    }

    /// Waits until all paths there are alive, and asserts that echo requests are answered.
    pub fn assert_reaches(&self, to: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let args = ["paths", to, "--wait=60s", "--timeout", "60s", "--json"];
            let output = self.hawser(&args);
            assert!(output.status.success(), "to {to}: {output:?}");
            let listing: Value = serde_json::from_slice(&output.stdout).unwrap();
            let paths = listing["paths"].as_array().unwrap();
            if !paths.is_empty() && paths.iter().all(|path| path["status"] == "alive") {
                break;
            }
            // A link that has just been made is not yet up for either router.
            assert!(Instant::now() < deadline, "to {to}: {listing}");
        }
        let host = format!("{to},127.0.0.1");
        let output = self.hawser(&["ping", &host, "-c", "3", "--interval", "100ms"]);
        assert!(output.status.success(), "to {to}: {output:?}");
    }

    /// The MTUs of the paths to an AS.
    pub fn mtus(&self, to: &str) -> BTreeSet<u64> {
        let output = self.hawser(&["paths", to, "--json", "--no-probe"]);
        let listing: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let paths = listing["paths"].as_array();
        let mtus = paths.into_iter().flatten();
        mtus.filter_map(|path| path["mtu"].as_u64()).collect()
    }

    pub fn pid(&self) -> u32 {
        self.joined.as_ref().unwrap().id()
    }

    /// The process of its control service, which changes when that starts again.
    pub fn control(&self) -> u32 {
        loop {
            // Services are started by any thread.
            let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
            let children = tasks
                .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
            let found = children.collect::<Vec<_>>().join(" ");
            let is_control = |pid: &&str| {
                let line = fs::read_to_string(format!("/proc/{pid}/cmdline"));
                line.is_ok_and(|line| line.contains("\0control\0run\0"))
            };
            if let Some(pid) = found.split_whitespace().find(is_control) {
                return pid.parse().unwrap();
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The status and the body that a server of the AS answers at port 8042; `None` if there is none.
    pub fn get(&self, path: &str) -> Option<(u16, Value)> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", 8042))?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = self.namespace.run(ask).unwrap().ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        Some((status, serde_json::from_str(body).ok()?))
    }

    pub fn wait_ready(&self) {
        let joined = self.joined.as_ref().unwrap();
        joined.wait_for("the AS is ready", |event| event["event"] == "ready");
    }
}

/// Ends echo requests: the number of those that were answered, and of those before the last of these that
/// were not.
pub fn end_pings(child: Child) -> (usize, usize) {
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

pub fn export(folder: &TempDir, program: &str, text: &str) {
    export_with(folder, program, text, &[]);
}

/// Exports a network with further flags.
pub fn export_with(folder: &TempDir, program: &str, text: &str, flags: &[&str]) {
    let file = topology(folder.path(), text);
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let args = ["lab", "export", &file, "--to", program, "-o", out, "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_hawser"))
        .args(args)
        .args(flags)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub fn read(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let documents = text.split("---\n");
    documents
        .map(|one| serde_saphyr::from_str(one).unwrap())
        .collect()
}

/// The archive of an AS, from its Secret.
pub fn write_archive(manifest: &Path, to: &Path) {
    let secret = read(manifest).remove(0);
    assert_eq!(secret["kind"], "Secret");
    let data = secret["data"]["as.tar.gz"].as_str().unwrap();
    let encoded = to.with_extension("base64");
    fs::write(&encoded, data).unwrap();
    let decoded = Command::new("base64")
        .arg("-d")
        .arg(&encoded)
        .output()
        .unwrap();
    assert!(decoded.status.success());
    fs::write(to, decoded.stdout).unwrap();
}
