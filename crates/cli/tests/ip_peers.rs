//! IP peers alone, over the loopback: no SCION network, no root.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "ip_peers/daemon.rs"]
mod daemon;
#[path = "ip_peers/dht.rs"]
mod dht;
#[path = "ip_peers/finding.rs"]
mod finding;
#[path = "ip_peers/flood.rs"]
mod flood;
#[path = "ip_peers/local.rs"]
mod local;
#[path = "ip_peers/selecting.rs"]
mod selecting;
#[path = "ip_peers/version_two.rs"]
mod version_two;
#[path = "ip_peers/web_seeds.rs"]
mod web_seeds;

/// Longest wait for an event that must happen, far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Bytes of the content.
const SIZE: u64 = 3 << 20;

/// Whether this host is in no SCION network; prints a message if it is in one.
fn no_scion_here() -> bool {
    let daemon = TcpStream::connect("127.0.0.1:30255").is_ok();
    let folder = Path::new("/etc/scion/topology.json").exists();
    if daemon || folder {
        eprintln!("skipped: this host is in a SCION network");
    }
    !daemon && !folder
}

/// A `hawser` command whose environment names no SCION network.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args(args).stdin(Stdio::null());
    for name in ["SCION_DAEMON", "SCION_DAEMON_ADDRESS", "SCION_LOCAL_ADDR"] {
        command.env_remove(name);
    }
    command
}

/// A running `hawser`, which is killed at the end of its test.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(args: &[&str]) -> Self {
        Self::spawn(&mut command(args)).unwrap()
    }

    fn spawn(command: &mut Command) -> std::io::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Ok(Self {
            child,
            stdout,
            stderr,
        })
    }

    /// The next line of JSON on its standard output.
    fn json(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            panic!("it ended: {}", self.log());
        }
        serde_json::from_str(&line).unwrap()
    }

    /// The address for IP peers, which it prints first.
    fn listens(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening to IP peers at ");
        address.unwrap_or_else(|| panic!("{line:?}")).to_owned()
    }

    /// The rest of its standard error.
    fn log(&mut self) -> String {
        let mut log = String::new();
        self.stderr.read_to_string(&mut log).unwrap();
        log
    }

    fn signal(&self, name: &str) {
        let kill = ["-c", &format!("kill -{name} {}", self.child.id())].map(str::to_owned);
        assert!(Command::new("sh").args(kill).status().unwrap().success());
    }

    /// Whether it has a UDP socket over IPv4 at this port, by /proc/PID/fd and /proc/net/udp.
    fn has_udp_port(&self, port: u16) -> bool {
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        let inodes: Vec<String> = table
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields[1].ends_with(&format!(":{port:04X}")))
            .map(|fields| format!("socket:[{}]", fields[9]))
            .collect();
        let files = fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let targets = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        let mut targets = targets.map(|target| target.to_string_lossy().into_owned());
        targets.any(|target| inodes.contains(&target))
    }

    /// Whether SIGINT and SIGTERM leave its end to itself.
    fn watches_signals(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        [2, 15].iter().all(|signal| mask >> (signal - 1) & 1 == 1)
    }

    /// Waits for its end, and returns its exit code.
    fn code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a successful end, after which nothing else may be printed.
    fn end(mut self) {
        let code = self.code();
        assert_eq!(code, Some(0), "{}", self.log());
        let mut more = String::new();
        self.stdout.read_to_string(&mut more).unwrap();
        assert_eq!(more, "");
    }
}

/// A temporary folder with content and its torrent.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = Self { folder };
        // No two pieces are equal, so that a misplaced block is detected.
        let words = (0..SIZE / 8).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        fs::write(files.path("data"), words.collect::<Vec<u8>>()).unwrap();
        let (content, torrent) = (files.name("data"), files.name("data.torrent"));
        let create = ["torrent", "create", &content, "-o", &torrent];
        assert!(command(&create).output().unwrap().status.success());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Whether the download in a folder equals the content.
    fn same(&self, folder: &str) -> bool {
        fs::read(self.path(folder).join("data")).unwrap() == fs::read(self.path("data")).unwrap()
    }

    /// Starts a seeder for IP peers at an address; returns it with the JSON that it prints first.
    fn seed(&self, at: &str) -> (Running, Value) {
        let (torrent, content) = (self.name("data.torrent"), self.name("data"));
        let args = ["seed", &torrent, &content, "--json", "--no-scion"];
        let mut seeder = Running::start(&[&args[..], &["--tcp", at]].concat());
        let ready = seeder.json();
        (seeder, ready)
    }

    /// Starts a download into a folder.
    fn get(&self, folder: &str, more: &[&str]) -> Running {
        let (torrent, folder) = (self.name("data.torrent"), self.name(folder));
        let args = ["get", &torrent, "-o", &folder, "--json"];
        Running::start(&[&args[..], more].concat())
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    let value = object[key].as_str();
    value.unwrap_or_else(|| panic!("no {key}: {object}"))
}

/// The peers that carried a part of a download.
fn peers(report: &Value) -> Vec<&str> {
    let paths = report["paths"].as_array().unwrap().iter();
    paths.map(|path| text(path, "peer")).collect()
}

#[test]
fn a_seeder_without_scion_serves_ip_peers_and_reports_it() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    let (torrent, content) = (files.name("data.torrent"), files.name("data"));
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let args = ["seed", &torrent, &content, "--json", "--tcp", at];
        let mut seeder = Running::start(&args);
        let ready = seeder.json();
        assert_eq!(ready["listening"], Value::Null, "{ready}");
        assert!(text(&ready, "no_scion").contains("127.0.0.1:30255"));
        let address = text(&ready, "listening_tcp");
        let mut leecher = files.get("got", &["--peer", address]);
        let report = leecher.json();
        assert_eq!(report["fetched_bytes"], SIZE);
        assert_eq!(peers(&report), [address]);
        leecher.end();
        assert!(files.same("got"));
        fs::remove_dir_all(files.path("got")).unwrap();
        seeder.signal("INT");
        assert_eq!(seeder.code(), Some(0));
        let log = seeder.log();
        assert!(log.contains("no SCION here"), "{log}");
        assert_eq!(log.trim_end().lines().count(), 1, "{log}");
    }
}

#[test]
fn a_seeder_without_scion_refuses_flags_that_need_it() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    let (torrent, content) = (files.name("data.torrent"), files.name("data"));
    let refuse = |more: &[&str], env: &[(&str, &str)], words: &[&str]| {
        let mut command = command(&[&["seed", &torrent, &content], more].concat());
        let output = command.envs(env.iter().copied()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{more:?}: {error}");
        for word in words {
            assert!(error.contains(word), "{word:?} is not in: {error}");
        }
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
        assert!(output.stdout.is_empty());
    };
    // The error names both remedies.
    refuse(&[], &[], &["127.0.0.1:30255", "SCION_DAEMON", "--tcp"]);
    let nowhere = [("SCION_DAEMON", "127.0.0.1:1")];
    refuse(&[], &nowhere, &["127.0.0.1:1", "--tcp", "--no-scion"]);
    // Requested flags are not silently ignored.
    let tcp = ["--tcp", "127.0.0.1:0"];
    let with = |more: &[&'static str]| [&tcp[..], more].concat();
    refuse(&tcp, &nowhere, &["127.0.0.1:1", "--no-scion"]);
    refuse(&with(&["--sciond", "127.0.0.1:2"]), &[], &["127.0.0.1:2"]);
    refuse(&with(&["--config-dir", "/nowhere"]), &[], &["/nowhere"]);
    for flag in [
        &["--listen", "1-ff00:0:110,127.0.0.1:31000"][..],
        &["--listen", "127.0.0.1:0"],
        &["--local", "127.0.0.1"],
        &["--acl", "+"],
        &["--sequence", "0*"],
        &["--select", "latency"],
        &["--select-by", "downloader"],
        &["--no-sensing"],
    ] {
        refuse(&with(flag), &[], &["leave", flag[0]]);
    }
}

#[test]
fn with_no_scion_a_seeder_ignores_scion_networks() {
    let files = Files::new();
    let (torrent, content) = (files.name("data.torrent"), files.name("data"));
    let args = ["seed", &torrent, &content, "--json", "--no-scion"];
    let mut command = command(&[&args[..], &["--tcp", "127.0.0.1:0"]].concat());
    command.env("SCION_DAEMON", "127.0.0.1:1");
    command.stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("listening_tcp"), "{line:?}");
}

#[test]
fn a_download_that_continues_to_seed_replaces_its_seeder() {
    let files = Files::new();
    let (seeder, ready) = files.seed("127.0.0.1:0");
    let first = text(&ready, "listening_tcp");
    let tcp = ["--tcp", "127.0.0.1:0", "--seed"];
    let mut middle = files.get("middle", &[&["--peer", first][..], &tcp].concat());
    let second = middle.listens();
    let report = middle.json();
    assert_eq!(report["fetched_bytes"], SIZE);
    assert_eq!(report["listening"], Value::Null);
    assert_eq!(text(&report, "listening_tcp"), second);
    assert!(files.same("middle"));
    drop(seeder);

    let mut last = files.get("last", &["--peer", &second]);
    assert_eq!(peers(&last.json()), [&second]);
    last.end();
    assert!(files.same("last"));
    middle.signal("INT");
    let ended = middle.json();
    assert_eq!(ended["ended_by"], "interrupt", "{ended}");
    assert!(ended["uploaded_bytes"].as_u64().unwrap() >= SIZE, "{ended}");
    assert!(ended["ratio"].as_f64().unwrap() >= 1.0, "{ended}");
    middle.end();
}

#[test]
fn existing_content_is_seeded_without_any_peer() {
    let files = Files::new();
    fs::create_dir(files.path("got")).unwrap();
    fs::copy(files.path("data"), files.path("got").join("data")).unwrap();
    let mut seeder = files.get("got", &["--peer", "127.0.0.1:1", "--seed"]);
    assert_eq!(seeder.json()["resumed_bytes"], SIZE);
    // Without an address to listen at, a message shows how peers could connect.
    let mut line = String::new();
    seeder.stderr.read_line(&mut line).unwrap();
    assert!(line.contains("--tcp"), "{line:?}");
    seeder.signal("TERM");
    assert_eq!(seeder.json()["ended_by"], "interrupt");
    seeder.end();
}

#[test]
fn limits_end_seeding() {
    let files = Files::new();
    let (_seeder, ready) = files.seed("127.0.0.1:0");
    let first = text(&ready, "listening_tcp");
    let tcp = ["--peer", first, "--tcp", "127.0.0.1:0"];
    let ratio = ["--seed-ratio", "1", "--seed-time", "7d"];
    let mut middle = files.get("middle", &[&tcp[..], &ratio].concat());
    let second = middle.listens();
    middle.json();
    // Everything comes from a peer that ends once it has sent everything.
    let mut last = files.get("last", &["--peer", &second]);
    assert_eq!(peers(&last.json()), [&second]);
    last.end();
    assert!(files.same("last"));
    let ended = middle.json();
    assert_eq!(ended["ended_by"], "ratio", "{ended}");
    assert_eq!(ended["ratio"], 1.0, "{ended}");
    middle.end();

    let mut timed = files.get("timed", &["--peer", first, "--seed-time", "1ms"]);
    timed.json();
    let ended = timed.json();
    assert_eq!(
        (&ended["ended_by"], &ended["uploaded_bytes"]),
        (&"time".into(), &0.into())
    );
    timed.end();
}

#[test]
fn a_download_watches_signals_before_it_prints_where_it_listens() {
    let files = Files::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = silent.local_addr().unwrap().to_string();
    // Each meets the time between both with a certain probability.
    for _ in 0..10 {
        let mut download = files.get("got", &["--peer", &peer, "--tcp", "127.0.0.1:0"]);
        download.listens();
        assert!(download.watches_signals());
    }
}

#[test]
fn a_download_interrupted_before_its_end_fails_also_with_seeding() {
    let files = Files::new();
    // Accepts connections, and never sends anything.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = silent.local_addr().unwrap().to_string();
    let tcp = ["--peer", &peer, "--tcp", "127.0.0.1:0", "--seed"];
    let mut download = files.get("got", &tcp);
    download.listens();
    silent.accept().unwrap();
    download.signal("INT");
    assert_eq!(download.code(), Some(1));
    let log = download.log();
    assert!(log.contains("interrupted"), "{log}");
}

#[test]
fn three_downloads_that_fetch_from_each_other_complete() {
    let files = Files::new();
    let (seeder, ready) = files.seed("127.0.0.1:0");
    let first = text(&ready, "listening_tcp");
    let tcp = ["--tcp", "127.0.0.1:0", "--seed"];
    let mut one = files.get("one", &[&["--peer", first][..], &tcp].concat());
    let at_one = one.listens();
    let mut two = files.get("two", &[&["--peer", first, &at_one][..], &tcp].concat());
    let at_two = two.listens();
    let mut three = files.get("three", &["--peer", &at_one, &at_two]);
    one.json();
    two.json();
    drop(seeder);
    three.json();
    three.end();
    for folder in ["one", "two", "three"] {
        assert!(files.same(folder), "{folder} differs");
    }
}

#[test]
fn an_address_in_use_is_reported_in_one_line() {
    let files = Files::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut download = files.get("got", &["--peer", "127.0.0.1:1", "--tcp", &address]);
    assert_eq!(download.code(), Some(1));
    let log = download.log();
    assert!(
        log.contains(&address) && log.contains("another port"),
        "{log}"
    );
    assert_eq!(log.trim_end().lines().count(), 1, "{log}");
    assert!(!files.path("got").exists());
}

#[test]
fn a_download_waits_for_peers_that_connect() {
    let files = Files::new();
    let mut waiting = files.get("got", &["--tcp", "127.0.0.1:0"]);
    let address = waiting.listens();
    fs::create_dir(files.path("whole")).unwrap();
    fs::copy(files.path("data"), files.path("whole").join("data")).unwrap();
    let _seeder = files.get("whole", &["--peer", &address, "--seed"]);
    assert_eq!(waiting.json()["fetched_bytes"], SIZE);
    waiting.end();
    assert!(files.same("got"));
}

#[test]
fn a_complete_copy_on_a_read_only_file_system_is_seeded() {
    let files = Files::new();
    fs::create_dir(files.path("got")).unwrap();
    fs::copy(files.path("data"), files.path("got").join("data")).unwrap();
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" || exit 77
        shift && exec \"$@\"";
    let (torrent, folder) = (files.name("data.torrent"), files.name("got"));
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", &folder]);
    command.args([env!("CARGO_BIN_EXE_hawser"), "get", &torrent, "-o", &folder]);
    command.args([
        "--json",
        "--seed",
        "--tcp",
        "127.0.0.1:0",
        "--peer",
        "127.0.0.1:1",
    ]);
    let Ok(mut seeder) = Running::spawn(command.stdin(Stdio::null())) else {
        eprintln!("skipped: needs unshare");
        return;
    };
    let mut line = String::new();
    seeder.stderr.read_line(&mut line).unwrap();
    let Some(address) = line.trim_end().strip_prefix("listening to IP peers at ") else {
        let code = seeder.code();
        assert!(
            matches!(code, Some(1 | 77)) && !line.contains("hawser"),
            "{line}"
        );
        eprintln!("skipped: needs mounts of its own: {line}");
        return;
    };
    assert_eq!(seeder.json()["resumed_bytes"], SIZE);
    let mut leecher = files.get("again", &["--peer", address]);
    assert_eq!(leecher.json()["fetched_bytes"], SIZE);
    leecher.end();
    assert!(files.same("again"));
    seeder.signal("INT");
    assert_eq!(seeder.json()["ended_by"], "interrupt");
    seeder.end();
}

#[test]
fn names_that_are_not_text_are_seeded_and_printed_on_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join(OsStr::from_bytes(b"set\n\xff"));
    fs::create_dir(&set).unwrap();
    fs::write(set.join("line\nfeed"), vec![7; 50_000]).unwrap();
    let torrent = folder.path().join("set.torrent");
    let torrent = torrent.to_str().unwrap();
    let mut create = command(&["torrent", "create", "-o", torrent]);
    let output = create.arg(&set).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        output.stdout.iter().filter(|byte| **byte == b'\n').count(),
        1
    );
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("hawser torrent show"), "{note}");
    let show = command(&["torrent", "show", torrent]).output().unwrap();
    let shown = String::from_utf8(show.stdout).unwrap();
    assert!(
        shown.contains("line_feed (listed as line\\nfeed)"),
        "{shown}"
    );

    let mut seed = command(&["seed", torrent, "--json", "--no-scion"]);
    seed.args(["--tcp", "127.0.0.1:0"]).arg(&set);
    let mut seeder = Running::spawn(&mut seed).unwrap();
    let ready = seeder.json();
    let got = folder.path().join("got");
    let (peer, to) = (text(&ready, "listening_tcp"), got.to_str().unwrap());
    let get = command(&["get", torrent, "-o", to, "--peer", peer]).output();
    let get = get.unwrap();
    assert!(get.status.success(), "{get:?}");
    assert_eq!(fs::read(got.join("set__/line_feed")).unwrap(), [7; 50_000]);

    // A change is reported, whatever the name.
    fs::write(set.join("line\nfeed"), b"other").unwrap();
    let change = seeder.json();
    assert!(text(&change, "file").contains("line\nfeed"), "{change}");
    assert!(text(&change, "error").contains("line\\nfeed"), "{change}");
}
