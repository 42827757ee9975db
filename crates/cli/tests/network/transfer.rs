//! Whole transfers: seeder and leecher as programs in a network.

mod alike;
mod choice;
mod daemon;
mod faults;
mod finding;
mod forged;
mod free_rider;
mod hosts;
mod ip;
mod mixed;
mod policy;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{As, TestLab, eventually};

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";

/// A program that is killed at the end of its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts `hawser` inside an AS.
    fn start(lab: &TestLab, isd_as: &str, args: &[String]) -> Self {
        Self::start_with(lab, isd_as, &[], args)
    }

    /// Starts `hawser` inside an AS with these environment variables (`NAME=value`).
    fn start_with(lab: &TestLab, isd_as: &str, env: &[&str], args: &[String]) -> Self {
        let mut command = vec!["env"];
        command.extend(env);
        command.push(env!("CARGO_BIN_EXE_hawser"));
        command.extend(args.iter().map(String::as_str));
        let mut command: Command = lab.exec(isd_as, &command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Waits for its end, which must be successful; returns its report and its log.
    fn end(mut self) -> (Value, String) {
        let mut log = String::new();
        let stderr = self.0.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            BufReader::new(stderr).read_to_string(&mut log).unwrap();
            log
        });
        let mut text = String::new();
        let stdout = self.0.stdout.as_mut().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        let log = reader.join().unwrap();
        assert!(self.0.wait().unwrap().success(), "{log}");
        (serde_json::from_str(&text).unwrap(), log)
    }

    /// Starts a seeder, and returns its address once it listens.
    fn seed(lab: &TestLab, isd_as: &str, torrent: &Path, content: &Path) -> (Self, String) {
        Self::seed_with(lab, isd_as, torrent, content, &[])
    }

    /// Starts a seeder with further flags.
    fn seed_with(
        lab: &TestLab,
        isd_as: &str,
        torrent: &Path,
        content: &Path,
        more: &[&str],
    ) -> (Self, String) {
        let (seeder, ready) = Self::seed_told(lab, isd_as, torrent, content, more);
        (seeder, ready["listening"].as_str().unwrap().to_owned())
    }

    /// Starts a seeder with further flags; returns the JSON that it prints once it listens.
    fn seed_told(
        lab: &TestLab,
        isd_as: &str,
        torrent: &Path,
        content: &Path,
        more: &[&str],
    ) -> (Self, Value) {
        let (torrent, content) = (torrent.to_str().unwrap(), content.to_str().unwrap());
        let mut args = vec!["seed", torrent, content, "--json"];
        args.extend(more);
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        let mut seeder = Self::start(lab, isd_as, &args);
        let mut line = String::new();
        let out = seeder.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut error = String::new();
            let stderr = seeder.0.stderr.as_mut().unwrap();
            stderr.read_to_string(&mut error).unwrap();
            panic!("the seeder did not start: {error}");
        }
        (seeder, serde_json::from_str(&line).unwrap())
    }
}

/// A temporary folder with content, its torrent, and a place for the download.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    /// Content under `data`: one file, or several in folders.
    fn new(files: &[(&str, usize)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (seed, (name, size)) in (1_u64..).zip(files) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // No two pieces are equal, so that a misplaced block is detected.
            let mut bytes = vec![0; *size];
            fastrand::Rng::with_seed(seed).fill(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
        let files = Self { folder };
        let output = files.create();
        assert!(output.status.success(), "{output:?}");
        files
    }

    fn create(&self) -> Output {
        Command::new(env!("CARGO_BIN_EXE_hawser"))
            .args(["torrent", "create"])
            .arg(self.content())
            .arg("-o")
            .arg(self.torrent())
            .output()
            .unwrap()
    }

    fn content(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    fn torrent(&self) -> std::path::PathBuf {
        self.folder.path().join("data.torrent")
    }

    fn downloads(&self) -> std::path::PathBuf {
        self.folder.path().join("downloads")
    }

    /// Arguments that download from a peer.
    fn get_args(&self, peer: &str) -> Vec<String> {
        let (torrent, downloads) = (self.torrent(), self.downloads());
        let (torrent, downloads) = (torrent.to_str().unwrap(), downloads.to_str().unwrap());
        ["get", torrent, "-o", downloads, "--peer", peer, "--json"]
            .map(str::to_owned)
            .into()
    }

    fn same(&self, name: &str) -> bool {
        let name = Path::new(name);
        let got = fs::read(self.downloads().join(name)).unwrap();
        got == fs::read(self.folder.path().join(name)).unwrap()
    }
}

/// Runs a download to its end, and returns the report.
fn get(lab: &TestLab, isd_as: &str, files: &Files, peer: &str, more: &[&str]) -> Value {
    let mut args = files.get_args(peer);
    args.extend(more.iter().map(|&word| word.to_owned()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = lab.hawser(isd_as, &args);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Bytes that the seeder's router has sent on each link.
fn sent(lab: &TestLab) -> Vec<u64> {
    let mut sent = None;
    // A busy router may not say its counters in time.
    eventually("all routers say their counters", || {
        let status = lab.status();
        let links = status["links"].as_array().unwrap().iter();
        let counted = links.map(|link| link["b"]["counters"]["tx_bytes"].as_u64());
        sent = counted.collect::<Option<Vec<u64>>>();
        sent.is_some()
    });
    sent.unwrap()
}

#[test]
fn a_file_crosses_two_paths_at_once() {
    let Some(lab) = As::default().up("fig4", "two-paths") else {
        return;
    };
    let files = Files::new(&[("data", 24 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let report = get(&lab, A, &files, &peer, &["--paths", "2"]);
    assert!(files.same("data"));
    assert_eq!(report["fetched_bytes"], 24 << 20);
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{report}");
    for path in paths {
        // The links are equal: neither may be nearly unused.
        assert!(path["bytes"].as_u64().unwrap() > 4 << 20, "{report}");
    }
    let sent = sent(&lab);
    assert!(sent.iter().all(|&bytes| bytes > 4 << 20), "{sent:?}");
}

#[test]
fn an_interrupted_seeder_ends_quietly() {
    let Some(lab) = As::default().up("fig4", "interrupted") else {
        return;
    };
    let files = Files::new(&[("data", 1 << 20)]);
    let (mut seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    get(&lab, A, &files, &peer, &[]);
    let interrupt = format!("kill -INT {}", seeder.0.id());
    let told = Command::new("sh").args(["-c", &interrupt]).status();
    assert!(told.unwrap().success());
    let mut error = String::new();
    let stderr = seeder.0.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut error).unwrap();
    assert!(seeder.0.wait().unwrap().success(), "{error}");
    assert!(!error.contains("panicked"), "{error}");
}

#[test]
fn strategy_and_limit_of_paths_are_obeyed() {
    let Some(lab) = As::default().up("fig7a", "select") else {
        return;
    };
    let files = Files::new(&[("data", 1 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, "1-ff00:0:4", &files.torrent(), &files.content());
    let hops = |select: &[&str]| {
        let _ = fs::remove_dir_all(files.downloads());
        let report = get(&lab, "1-ff00:0:1", &files, &peer, select);
        assert!(files.same("data"));
        let paths = report["paths"].as_array().unwrap().clone();
        let mut hops: Vec<_> = paths.iter().map(|p| p["hops"].as_u64().unwrap()).collect();
        hops.sort_unstable();
        hops
    };
    assert_eq!(hops(&["--select", "shortest", "--paths", "1"]), [3]);
    assert_eq!(hops(&["--select", "shortest", "--paths", "2"]), [3, 4]);
    assert_eq!(hops(&["--select", "disjoint", "--paths", "3"]), [3, 5]);
}

#[test]
fn folders_are_complete_after_lossy_links() {
    let Some(lab) = As::default().up("fig4", "lossy") else {
        return;
    };
    for id in ["#1", "#2"] {
        let change = ["--delay", "5ms", "--jitter", "2ms", "--loss", "1%"];
        lab.set(&format!("{A}{id}"), &change);
    }
    let names = ["data/a", "data/deep/er/b", "data/empty", "data/z"];
    let files = Files::new(&[
        (names[0], 3_000_001),
        (names[1], 17),
        (names[2], 0),
        (names[3], 700_000),
    ]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    get(&lab, A, &files, &peer, &[]);
    for name in names {
        assert!(files.same(name), "{name} differs");
    }
}

#[test]
fn a_download_survives_a_dead_link_and_uses_it_again() {
    let Some(lab) = As::default().up("fig4", "link-dies") else {
        return;
    };
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--rate", "20mbit"]);
    }
    let files = Files::new(&[("data", 40 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let leecher = Running::start(&lab, A, &files.get_args(&peer));
    let grows_by = |link: usize, from: &[u64], bytes: u64| sent(&lab)[link] > from[link] + bytes;

    eventually("both links carry the file", || {
        sent(&lab).iter().all(|&bytes| bytes > 1 << 20)
    });
    lab.set(&format!("{A}#1"), &["--down"]);
    let down = sent(&lab);
    eventually("the other link goes on", || grows_by(1, &down, 2 << 20));
    // The link drops what the router still sends before it is counted.
    assert!(!grows_by(0, &down, 1 << 20), "the dead link was used");
    lab.set(&format!("{A}#1"), &["--up"]);
    let up = sent(&lab);
    eventually("the link is used again", || grows_by(0, &up, 1 << 20));

    let (report, _) = leecher.end();
    assert_eq!(report["fetched_bytes"], 40 << 20);
    assert!(files.same("data"));
}

#[test]
fn a_killed_download_resumes_from_the_disk() {
    let Some(lab) = As::default().up("fig4", "killed") else {
        return;
    };
    let files = Files::new(&[("data", 30 << 20)]);
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--rate", "30mbit"]);
    }
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let mut leecher = Running::start(&lab, A, &files.get_args(&peer));
    eventually("a part of it has come", || {
        sent(&lab).iter().sum::<u64>() > 10 << 20
    });
    // It does not complete before it is killed, however long that takes.
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--rate", "1mbit"]);
    }
    leecher.0.kill().unwrap();
    leecher.0.wait().unwrap();
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--rate", "30mbit"]);
    }
    let before: u64 = sent(&lab).iter().sum();

    let report = get(&lab, A, &files, &peer, &[]);
    let resumed = report["resumed_bytes"].as_u64().unwrap();
    let fetched = report["fetched_bytes"].as_u64().unwrap();
    // Blocks in flight or waiting for the disk are lost.
    assert!(resumed > 2 << 20, "{report}");
    assert_eq!(resumed + fetched, 30 << 20);
    // Resumed content did not cross the network again: headers are less than a fifth.
    let again = sent(&lab).iter().sum::<u64>() - before;
    assert!(again < fetched / 4 * 5, "{again} for {fetched}");
    assert!(files.same("data"));
}

#[test]
fn a_download_whose_files_are_removed_fails() {
    let Some(lab) = As::default().up("fig4", "removed") else {
        return;
    };
    let files = Files::new(&[("data", 8 << 20)]);
    let rate = |rate| {
        for id in ["#1", "#2"] {
            lab.set(&format!("{A}{id}"), &["--rate", rate]);
        }
    };
    // It does not complete before its files are removed.
    rate("2mbit");
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let mut leecher = Running::start(&lab, A, &files.get_args(&peer));
    eventually("some of it has come", || {
        sent(&lab).iter().sum::<u64>() > 512 << 10 && files.downloads().join("data").exists()
    });
    fs::remove_dir_all(files.downloads()).unwrap();
    rate("100mbit");
    let mut error = String::new();
    let stderr = leecher.0.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut error).unwrap();
    assert_eq!(leecher.0.wait().unwrap().code(), Some(1), "{error}");
    assert!(error.contains("downloads/data"), "{error}");
}

#[test]
fn delay_and_loss_are_the_requested_ones() {
    let Some(lab) = As::default().up("fig4", "shape") else {
        return;
    };
    let ping = |timeout: &str| {
        let host = format!("{B},10.0.2.1");
        let ping = ["ping", &host, "-c", "3", "--interval", "50ms", "--json"];
        let output = lab.hawser(A, &[&ping[..], &["--timeout", timeout]].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["statistics"].clone()
    };
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--delay", "30ms"]);
    }
    let report = ping("60s");
    assert_eq!(report["received"], 3, "{report}");
    assert!(report["min_rtt"].as_f64().unwrap() >= 60.0, "{report}");
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--delay", "0", "--loss", "100%"]);
    }
    assert_eq!(ping("1s")["received"], 0);
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--loss", "0"]);
    }
    eventually("all are answered again", || ping("2s")["received"] == 3);
}

#[test]
fn no_path_and_a_full_disk_are_reported_in_one_line() {
    let Some(lab) = As::default().up("fig4", "refused") else {
        return;
    };
    let files = Files::new(&[("data", 4 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let nowhere = files.get_args("1-ff00:0:999,10.0.0.1:31000");
    let nowhere: Vec<&str> = nowhere.iter().map(String::as_str).collect();
    let output = lab.hawser(A, &nowhere);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("no path to 1-ff00:0:999"), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");

    // A limit on the size of files stands for a full disk, because making a full one needs more
    // rights than the test may have.
    let command = format!(
        "trap '' XFSZ; ulimit -f 1024; exec {} get {} -o {} --peer {peer}",
        env!("CARGO_BIN_EXE_hawser"),
        files.torrent().display(),
        files.downloads().display(),
    );
    let output = lab.exec(A, &["sh", "-c", &command]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("downloads/data"), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}

/// The report of a command that brings labs up itself; `None`, with a message, where labs are not
/// allowed.
pub fn report(by: &As, args: &[&str]) -> Option<Value> {
    let output = by.run(args);
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("user namespaces are not allowed here") {
        eprintln!("skipped: {error}");
        return None;
    }
    assert!(output.status.success(), "{error}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_demo_shows_each_run() {
    let by = As::default();
    let args = ["demo", "--topology", "fig4", "--size", "8MiB", "--json"];
    let Some(report) = report(&by, &args) else {
        return;
    };
    assert_eq!(report["topology"], "fig4");
    assert_eq!(report["bytes"], 8 << 20);
    assert_eq!(report["sha256_ok"], true);
    let runs = report["runs"].as_array().unwrap();
    for (run, (select, paths)) in runs.iter().zip([("one-path", 1), ("disjoint", 2)]) {
        assert_eq!(run["select"], select);
        let used = run["paths"].as_array().unwrap();
        assert_eq!(used.len(), paths, "{run}");
        let bytes: u64 = used.iter().map(|p| p["bytes"].as_u64().unwrap()).sum();
        assert!(bytes >= 8 << 20, "{run}");
        // Two links of 300 Mbit/s, of which headers leave 80 to 95 %.
        let ceiling = run["ceiling_mbit"].as_f64().unwrap() / paths as f64;
        assert!((240.0..285.0).contains(&ceiling), "{run}");
        assert!(run["goodput_mbit"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(runs.len(), 2);
}

#[test]
fn an_experiment_compares_its_variants() {
    let by = As::default();
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("fig8.svg");
    let mut args = vec!["bench", "fig8", "--repeat", "1", "--size", "2MiB", "--json"];
    args.extend(["--only", "naive,disjoint", "--plot"]);
    args.push(figure.to_str().unwrap());
    let Some(report) = report(&by, &args) else {
        return;
    };
    assert_eq!(report["experiment"], "fig8");
    let rows = report["rows"].as_array().unwrap();
    for (row, variant) in rows.iter().zip(["naive", "disjoint"]) {
        assert_eq!(row["variant"], variant, "{report}");
        assert_eq!(row["runs_mbit"].as_array().unwrap().len(), 1);
        let goodput = row["runs_mbit"][0].as_f64().unwrap();
        let ceiling = row["ceiling_mbit"].as_f64().unwrap();
        assert!(goodput > 0.0 && goodput < ceiling, "{report}");
    }
    assert_eq!(rows.len(), 2, "{report}");
    // Independent of speed: the sum of the limits is three times that of the shared link.
    assert!(rows[1]["ceiling_mbit"].as_f64() > rows[0]["ceiling_mbit"].as_f64());
    assert!(report["ratio"].is_number(), "{report}");
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}
