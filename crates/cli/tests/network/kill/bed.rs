//! A lab with a seeder, in temporary folders.

mod transfer;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

pub use self::transfer::Transfer;
use crate::support::{As, eventually};

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";

/// The seeder's address, the same at each start.
const LISTEN: &str = "1-ff00:0:111,10.0.2.1:32000";
const BYTES: usize = 12 << 20;
/// An environment variable of every process, by which all are found.
const MARK: &str = "HAWSER_TEST_MARK";

/// The running processes with a mark. One that begins a program has no environment for a moment, and is not
/// among them then.
pub fn marked(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|b| b.is_ascii_digit()))
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let is_mark =
                |variable: &[u8]| variable.starts_with(format!("{MARK}={mark}").as_bytes());
            environment.split(|byte| *byte == 0).any(is_mark)
        })
        .collect()
}

/// The lab, its folders and its processes.
pub struct Bed {
    folder: tempfile::TempDir,
    mark: String,
    shows: usize,
    seeder: Option<Child>,
}

impl Bed {
    /// Brings the lab up; `None`, with a message, where labs are not allowed.
    pub fn make() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["run", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let run = folder.path().join("run");
        fs::set_permissions(run, fs::Permissions::from_mode(0o700)).unwrap();
        let mut state = 7_u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(BYTES)
        .collect();
        fs::write(folder.path().join("data"), bytes).unwrap();
        let mut bed = Self {
            folder,
            mark: format!("{}-", std::process::id()),
            shows: 0,
            seeder: None,
        };
        let [data, torrent] = [bed.path("data"), bed.path("data.torrent")];
        let created = bed.run(&["torrent", "create", &data, "-o", &torrent]);
        assert!(created.status.success(), "{created:?}");
        let up = bed.run(&bed.up_args());
        let error = String::from_utf8_lossy(&up.stderr);
        if error.contains("user namespaces are not allowed here") {
            eprintln!("skipped: {error}");
            return None;
        }
        assert!(up.status.success(), "{error}");
        bed.limit();
        bed.seed();
        Some(bed)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, args: &[&str], mark: &str) -> Command {
        let mut command = As::default().command(args);
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("TMPDIR", self.path("tmp"));
        // Keeps the user's keys out.
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env(MARK, mark);
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> std::process::Output {
        self.command(args, &self.mark).output().unwrap()
    }

    fn up_args(&self) -> [&'static str; 3] {
        ["lab", "up", "fig4"]
    }

    /// Brings the lab up again.
    pub fn up(&self) {
        let up = self.run(&self.up_args());
        assert!(up.status.success(), "{up:?}");
        self.limit();
    }

    /// Makes a download take longer than the time until the kill.
    fn limit(&self) {
        for id in ["#1", "#2"] {
            let interface = format!("{A}{id}");
            let set = self.run(&["lab", "link", "set", &interface, "--rate", "40mbit"]);
            assert!(set.status.success(), "{set:?}");
        }
    }

    pub fn status(&self) -> Value {
        let output = self.run(&["lab", "status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// A command inside an AS.
    fn inside(&self, isd_as: &str, args: &[&str]) -> Command {
        let mut all = vec!["lab", "exec", isd_as, "--", env!("CARGO_BIN_EXE_hawser")];
        all.extend(args);
        self.command(&all, &self.mark)
    }

    /// Starts the seeder, and waits until it listens.
    pub fn seed(&mut self) {
        let (torrent, data) = (self.path("data.torrent"), self.path("data"));
        let args = ["seed", &torrent, &data, "--listen", LISTEN, "--json"];
        let mut seeder = None;
        eventually("the seeder listens", || {
            let mut command = self.inside(B, &args);
            command.stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            let out = child.stdout.take().unwrap();
            BufReader::new(out).read_line(&mut line).unwrap();
            // The seeder ends while the daemon is being restarted.
            match line.is_empty() {
                true => child.wait().map(drop).unwrap(),
                false => seeder = Some(child),
            }
            seeder.is_some()
        });
        self.seeder = seeder;
    }

    pub fn kill_seed(&mut self) {
        let mut seeder = self.seeder.take().unwrap();
        // The seeder may have ended before.
        let _ = seeder.kill();
        seeder.wait().unwrap();
    }

    /// Starts or resumes a download.
    pub fn get(&self) -> Child {
        let (torrent, into) = (self.path("data.torrent"), self.path("into"));
        let args = ["get", &torrent, "-o", &into, "--peer", LISTEN, "--json"];
        let mut command = self.inside(A, &args);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub fn seeder(&self) -> u32 {
        self.seeder.as_ref().unwrap().id()
    }

    /// The process of the router or of the control service of one of the two ASes.
    pub fn service(&self, is_router: bool, at: usize) -> i64 {
        let status = self.status();
        let service = match is_router {
            true => &status["ases"][at]["routers"][0],
            false => &status["ases"][at]["control"],
        };
        service["pid"].as_i64().unwrap()
    }

    /// Waits for the end of a download, and compares its file with the seeded one.
    pub fn finish(&self, get: impl FnOnce(&Self) -> Child) {
        let output = get(self).wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(!log.contains("was dropped"), "{log}");
        self.compare();
    }

    /// Asserts that the file has arrived, and removes it.
    fn compare(&self) {
        let [sent, got] = ["data", "into/data"].map(|name| fs::read(self.path(name)).unwrap());
        assert!(sent == got, "the files differ");
        fs::remove_dir_all(self.path("into")).unwrap();
    }

    /// Starts a command with its own network; returns it with its mark.
    pub fn show(&mut self, args: &[&str]) -> (Child, String) {
        self.shows += 1;
        let mark = format!("show-{}{}", self.mark, self.shows);
        let mut command = self.command(args, &mark);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        (command.spawn().unwrap(), mark)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let path: PathBuf = self.path(folder).into();
        let entries = fs::read_dir(path).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.collect()
    }

    /// The folders that are left over.
    fn left(&self) -> Vec<String> {
        let labs = self.names("run/hawser/lab").into_iter();
        let mut left: Vec<String> = labs.filter(|name| name != "default").collect();
        left.extend(self.names("tmp"));
        left
    }

    /// Waits for the end of all that a command with this mark started, and for a change that removes the
    /// rest: of a lab that was killed while it was set up.
    pub fn await_end(&self, mark: &str) {
        let other = format!("none-{mark}");
        eventually("the end of all it started, and nothing is left", || {
            if !marked(mark).is_empty() {
                return false;
            }
            self.run(&["lab", "down", "--name", &other]);
            self.left().is_empty()
        });
        assert_eq!(self.names("run/hawser/lab"), ["default"]);
    }

    /// Takes everything down, and asserts that nothing remains.
    pub fn clear(mut self) {
        let down = self.run(&["lab", "down"]);
        assert!(down.status.success(), "{down:?}");
        self.kill_seed();
        assert_eq!(marked(&self.mark), [""; 0]);
        assert_eq!(marked(&format!("show-{}", self.mark)), [""; 0]);
        assert_eq!(self.names("run/hawser/lab"), [""; 0]);
        assert_eq!(self.names("tmp"), [""; 0]);
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // Has an effect only after a failure.
        let _ = self.run(&["lab", "down"]);
        if let Some(mut seeder) = self.seeder.take() {
            let _ = seeder.kill();
            let _ = seeder.wait();
        }
    }
}
