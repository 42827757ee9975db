//! Services that outlast errors of the system: no descriptors are left, sockets and devices fail.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{As, TestLab, eventually, runs, topology};

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";
const B_HOST: &str = "1-ff00:0:111,10.0.2.1";

/// A process without a descriptor left until this is dropped. poll(2) waits for no more descriptors than
/// the lowest free one: the process must not have closed its first ones.
struct Exhausted {
    pid: i64,
    /// The soft limit before.
    before: String,
}

impl Exhausted {
    fn new(pid: i64) -> Self {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max open files"));
        let before = line.unwrap().split_whitespace().nth(3).unwrap().to_owned();
        let exhausted = Self { pid, before };
        let open = |number: &u32| fs::exists(format!("/proc/{pid}/fd/{number}")).unwrap();
        let free = (0..).find(|number| !open(number)).unwrap();
        assert!(exhausted.limit(&free.to_string()));
        exhausted
    }

    fn limit(&self, soft: &str) -> bool {
        let pid = self.pid.to_string();
        let limit = format!("--nofile={soft}:");
        let set = Command::new("prlimit")
            .args(["--pid", &pid, &limit])
            .status();
        set.unwrap().success()
    }
}

impl Drop for Exhausted {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.limit(&self.before);
    }
}

/// Connects to `sockets` of a process that cannot accept that for a while, then can.
fn exhaust(pid: i64, sockets: &[&Path]) {
    let exhausted = Exhausted::new(pid);
    let callers: Vec<_> = sockets.iter().map(UnixStream::connect).collect();
    std::thread::sleep(Duration::from_millis(500));
    assert!(runs(pid), "{pid} has ended");
    drop(exhausted);
    drop(callers);
}

#[test]
fn services_of_a_lab_outlast_a_lack_of_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let file = topology(
        folder.path(),
        "ASes:\n  \"1-ff00:0:110\": {core: true}\n  \"1-ff00:0:111\": {}\nlinks:\n  \
         - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#1\", linkAtoB: CHILD, delay: 1ms}\n",
    );
    let Some(lab) = As::default().up(&file, "outlast") else {
        return;
    };
    let (before, dir) = (lab.status(), lab.status()["dir"].clone());
    let dir = Path::new(dir.as_str().unwrap());
    let of_as = hawser_topology::AsDir::new(dir.join("1-ff00_0_110"));
    let as_ = &before["ases"][0];
    let pid = |service: &serde_json::Value| service["pid"].as_i64().unwrap();
    exhaust(pid(&as_["routers"][0]), &[&of_as.router_socket()]);
    exhaust(pid(&as_["control"]), &[&of_as.control_socket()]);
    exhaust(pid(&as_["emulator"]), &[&of_as.emulator_socket()]);
    let after = lab.status();
    assert_eq!(before["supervisor"]["pid"], after["supervisor"]["pid"]);
    let services = |status: &serde_json::Value| {
        let as_ = &status["ases"][0];
        [&as_["routers"][0], &as_["control"], &as_["emulator"]].map(pid)
    };
    assert_eq!(services(&before), services(&after));
    lab.set("1-ff00:0:110#1", &["--delay", "2ms"]);
    lab.assert_paths(A, B, 1);
    lab.down();
}

#[test]
fn an_emulator_outlasts_a_device_that_is_down_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let file = topology(
        folder.path(),
        "ASes:\n  \"1-ff00:0:110\": {core: true}\n  \"1-ff00:0:111\": {}\nlinks:\n  \
         - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#1\", linkAtoB: CHILD, delay: 1ms}\n  \
         - {a: \"1-ff00:0:110#2\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD, delay: 1ms}\n",
    );
    let Some(lab) = As::default().up(&file, "device") else {
        return;
    };
    let emulator = || lab.status()["ases"][0]["emulator"].clone();
    let before = emulator()["pid"].clone();
    let devices = lab.exec(A, &["ip", "-o", "link"]).output().unwrap();
    let devices = String::from_utf8(devices.stdout).unwrap();
    let held = devices
        .lines()
        .filter_map(|line| line.split([':', '@']).nth(1));
    let held: Vec<&str> = held
        .map(str::trim)
        .filter(|name| name.contains("held"))
        .collect();
    assert!(!held.is_empty(), "{devices}");
    for change in ["down", "up"] {
        let command = ["ip", "link", "set", held[0], change];
        assert!(lab.exec(A, &command).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(emulator()["pid"], before);
    assert_eq!(emulator()["restarts"], 0);
    lab.down();
}

#[test]
fn sockets_that_are_killed_go_on_receiving() {
    let Some(lab) = As::default().up("fig4", "sockets") else {
        return;
    };
    let server = Serving::start(&lab);
    // As `ss --kill` ends connections: it gives each socket an error.
    let ports = "( sport >= :31000 and sport <= :32767 )";
    let killed = lab
        .exec(B, &["ss", "-K", "-H", "-a", "-u", "-n", ports])
        .output()
        .unwrap();
    let killed = String::from_utf8(killed.stdout).unwrap();
    assert!(killed.lines().count() >= 2, "nothing was killed: {killed}");
    std::thread::sleep(Duration::from_millis(300));
    let file = server.folder.path().join("file");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let key = server.folder.path().join("sender.key");
    let to = [
        "send",
        file.to_str().unwrap(),
        "1-ff00:0:111,10.0.2.1:31000",
        "--any-server",
        "--key",
        key.to_str().unwrap(),
    ];
    let sent = lab.hawser(A, &to);
    assert!(sent.status.success(), "{sent:?}");
    lab.assert_answers(A, B_HOST);
    drop(server);
    lab.down();
}

/// `hawser receive` in B.
struct Serving {
    process: std::process::Child,
    folder: tempfile::TempDir,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Serving {
    fn start(lab: &TestLab) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (output, key) = (folder.path().join("in"), folder.path().join("key"));
        let args = [
            lab.program(),
            "receive",
            "--output",
            output.to_str().unwrap(),
            "--listen",
            "10.0.2.1:31000",
            "--allow-any",
            "--key",
            key.to_str().unwrap(),
        ];
        let process = lab.exec(B, &args).stdout(Stdio::null()).spawn().unwrap();
        let started = Self { process, folder };
        eventually("the receiver listens", || {
            let bound = lab
                .exec(B, &["ss", "-H", "-a", "-u", "-n", "sport = :31000"])
                .output();
            !bound.unwrap().stdout.is_empty()
        });
        started
    }
}
