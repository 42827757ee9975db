//! What services of an AS do on SIGHUP: they go over to what is in their files now, and outlast what
//! they cannot use.
//!
//! Their addresses are those of a network namespace; without root the tests print that they were
//! skipped.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hawser_control::live as control;
use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_router::live as router;
use hawser_topology::AsDir;
use rustix::process::{Pid, Signal, kill_process};

/// Waits until `holds` returns true, and fails after five minutes.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The `topology.json` of an AS with one border router, which has links by these interfaces, and one
/// control service.
fn topology(interfaces: &[u16], service: &str) -> String {
    let link = |id: &u16| {
        format!(
            r#""{id}": {{"isd_as": "1-ff00:0:{id}", "link_to": "CORE", "mtu": 1472,
                "bfd": {{"disable": true}}, "underlay": {{"provider": "udpip",
                "local": "127.0.0.{id}:50000", "remote": "127.0.1.{id}:50000"}}}}"#
        )
    };
    let links: Vec<_> = interfaces.iter().map(link).collect();
    format!(
        r#"{{"isd_as": "1-ff00:0:110", "mtu": 1472, "attributes": ["core"],
            "dispatched_ports": "31000-32767",
            "control_service": {{"cs": {{"addr": "{service}"}}}},
            "border_routers": {{"br": {{"internal_addr": "127.0.0.200:30042",
            "interfaces": {{{}}}}}}}}}"#,
        links.join(",")
    )
}

/// The folder of an AS, in a network namespace of its own.
struct Bed {
    namespace: NetNs,
    folder: tempfile::TempDir,
}

impl Bed {
    /// `None`, with a message, where it cannot be made.
    fn new() -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let namespace = NetNs::create().unwrap();
        let up = || {
            Command::new("ip")
                .args(["link", "set", "lo", "up"])
                .status()
        };
        assert!(namespace.run(up).unwrap().unwrap().success());
        let bed = Self {
            namespace,
            folder: tempfile::tempdir().unwrap(),
        };
        bed.dir().write_master_key(&[1; 16]).unwrap();
        Some(bed)
    }

    fn dir(&self) -> AsDir {
        AsDir::new(self.folder.path())
    }

    fn write(&self, topology: &str) {
        fs::write(self.folder.path().join("topology.json"), topology).unwrap();
    }

    fn start(&self, args: &[&str]) -> Service {
        let log = self.folder.path().join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command
            .args(args)
            .arg(self.folder.path())
            .env_remove("RUST_LOG")
            .stdout(File::create(self.folder.path().join("out")).unwrap())
            .stderr(File::create(&log).unwrap());
        let child = self.namespace.run(|| command.spawn()).unwrap().unwrap();
        Service { child, log }
    }
}

/// A service that runs; it is killed when this is dropped.
struct Service {
    child: Child,
    log: PathBuf,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it has logged about SIGHUP.
    fn errors(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap();
        let lines = log.lines().filter(|line| line.contains("SIGHUP"));
        lines.map(str::to_owned).collect()
    }

    /// Waits until it has logged its `count`-th line about SIGHUP; returns it.
    fn error(&self, count: usize) -> String {
        eventually("another error is logged", || self.errors().len() >= count);
        let mut errors = self.errors();
        assert_eq!(errors.len(), count, "{errors:#?}");
        errors.pop().unwrap()
    }

    /// Ends it, as systemd does.
    fn end(mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "it has ended");
        self.signal(Signal::TERM);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// Waits until the router at `socket` has these interfaces.
fn wait_for_interfaces(socket: &Path, expected: &[u16]) {
    eventually(&format!("the router has {expected:?}"), || {
        let reply = router::call(socket, &router::Request::Counters);
        matches!(reply, Ok(router::Reply::Counters(counters))
            if counters.interfaces.keys().eq(expected))
    });
}

const SERVICE: &str = "127.0.0.201:30252";

#[test]
fn a_router_goes_over_to_its_topology() {
    // Further threads are there before the router runs, or are made by it.
    for flags in [&["--echo"][..], &["--threads", "3", "--echo"]] {
        let Some(bed) = Bed::new() else {
            return;
        };
        let socket = bed.dir().router_socket();
        bed.write(&topology(&[1], SERVICE));
        let router = bed.start(&[&["router", "run"], flags].concat());
        wait_for_interfaces(&socket, &[0, 1]);
        bed.write(&topology(&[1, 2], SERVICE));
        router.signal(Signal::HUP);
        wait_for_interfaces(&socket, &[0, 1, 2]);

        // What cannot be used changes nothing, and is reported once.
        for (at, (broken, wrong)) in [
            ("{", "topology.json"),
            (
                &topology(&[1], SERVICE).replace("0.200:", "0.202:"),
                "internal address",
            ),
        ]
        .into_iter()
        .enumerate()
        {
            bed.write(broken);
            router.signal(Signal::HUP);
            let error = router.error(at + 1);
            assert!(error.contains("SIGHUP changed nothing"), "{error}");
            assert!(error.contains(wrong), "{error}");
        }
        wait_for_interfaces(&socket, &[0, 1, 2]);
        bed.write(&topology(&[2], SERVICE));
        router.signal(Signal::HUP);
        wait_for_interfaces(&socket, &[0, 2]);
        assert_eq!(router.errors().len(), 2);

        // Many in a row: what is there at the end counts. One may find a file that is half written.
        for round in 0..50 {
            bed.write(&topology(&[1, 2 + round % 2], SERVICE));
            router.signal(Signal::HUP);
        }
        wait_for_interfaces(&socket, &[0, 1, 3]);
        router.end();
    }
}

/// SIGHUP counts also while a router starts: nothing ends it.
#[test]
fn a_router_that_starts_outlasts_sighup() {
    let Some(bed) = Bed::new() else {
        return;
    };
    bed.write(&topology(&[1], SERVICE));
    let socket = bed.dir().router_socket();
    let router = bed.start(&["router", "run", "--echo"]);
    // Its socket is there before it runs.
    eventually("it starts", || socket.exists());
    for _ in 0..50 {
        router.signal(Signal::HUP);
    }
    wait_for_interfaces(&socket, &[0, 1]);
    router.end();
}

#[test]
fn a_control_service_reads_its_files_again() {
    let Some(bed) = Bed::new() else {
        return;
    };
    bed.write(&topology(&[1], SERVICE));
    let segments = bed.folder.path().join("segments.json");
    let segments = segments.to_str().unwrap();
    let flags = ["control", "run", "--no-bootstrap", "--segments", segments];
    let service = bed.start(&flags);
    let socket = bed.dir().control_socket();
    let answers = || control::call(&socket, &control::Request::Status).is_ok();
    eventually("the control service answers", answers);
    let elsewhere = topology(&[1], "127.0.0.202:30252");
    for (at, (broken, wrong)) in [("{", "topology.json"), (&elsewhere, "must start again")]
        .into_iter()
        .enumerate()
    {
        bed.write(broken);
        service.signal(Signal::HUP);
        let error = service.error(at + 1);
        assert!(error.contains("SIGHUP changed nothing"), "{error}");
        assert!(error.contains(wrong), "{error}");
    }
    bed.write(&topology(&[1, 2], SERVICE));
    for _ in 0..50 {
        service.signal(Signal::HUP);
    }
    eventually("the control service answers", answers);
    assert_eq!(service.errors().len(), 2);
    service.end();
}

/// What serves a page follows its files by itself.
#[test]
fn a_page_outlasts_sighup() {
    for command in [&["coordinator"][..], &["coordinator", "--limits-only"]] {
        let Some(bed) = Bed::new() else {
            return;
        };
        let flags = ["--listen", "127.0.0.1:0", "--state"];
        let page = bed.start(&[command, &flags].concat());
        let out = bed.folder.path().join("out");
        eventually("there is a page", || {
            fs::read_to_string(&out).unwrap().contains("page at ")
        });
        for _ in 0..10 {
            page.signal(Signal::HUP);
        }
        page.end();
    }
}
