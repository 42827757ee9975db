//! Labs for tests, through the command line.

// Benchmarks include this file by its path.
#[path = "support/watch.rs"]
mod watch;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::watch::Watch;

/// The user `nobody`: an ordinary user for tests that run as root.
pub const NOBODY: u32 = 65534;

/// Two ASes whose link, and whose own networks, have SCION's smallest MTU. With IPv6 hosts the headers
/// leave less than QUIC's 1200 bytes of it.
pub const NARROW: &str = r#"
ASes:
  "1-ff00:0:110": {core: true, underlay: UDP/IPv6, mtu: 1280}
  "1-ff00:0:111": {core: true, underlay: UDP/IPv6, mtu: 1280}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, underlay: UDP/IPv6, mtu: 1280}
"#;

/// The user that runs `hawser`, and the place of that user's labs.
#[derive(Clone, Default)]
pub struct As {
    /// An ordinary user's program and runtime folder; `None` for those of the test.
    pub nobody: Option<(PathBuf, PathBuf)>,
    /// A runtime folder of its own, so that commands of other tests do not see its labs.
    pub runtime: Option<PathBuf>,
}

impl As {
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = match &self.nobody {
            None => Command::new(env!("CARGO_BIN_EXE_hawser")),
            Some((program, runtime)) => {
                let mut command = Command::new(program);
                command.uid(NOBODY).gid(NOBODY);
                command.env("XDG_RUNTIME_DIR", runtime).current_dir("/");
                command
            }
        };
        if let Some(runtime) = &self.runtime {
            command.env("XDG_RUNTIME_DIR", runtime);
        }
        command.args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The standard output of a command, which must succeed.
    pub fn print(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line of a command's error, with exit code 1.
    pub fn refuse(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
        error
    }

    pub fn names(&self) -> String {
        self.print(&["lab", "list"])
    }

    /// Brings a lab up; `None`, with a message, where labs are not allowed.
    pub fn up(&self, topology: &str, what: &str) -> Option<TestLab> {
        self.up_with(topology, what, &[])
    }

    /// Brings a lab up with further flags.
    pub fn up_with(&self, topology: &str, what: &str, flags: &[&str]) -> Option<TestLab> {
        let name = format!("test-{what}-{}", std::process::id());
        // The lab must not outlive its test, even if that fails.
        let owner = std::process::id().to_string();
        let mut args = vec!["lab", "up", topology, "--name", &name, "--pid", &owner];
        args.extend(flags);
        let output = self.run(&args);
        let error = String::from_utf8_lossy(&output.stderr);
        if error.contains("user namespaces are not allowed here") {
            eprintln!("skipped: {error}");
            return None;
        }
        assert!(output.status.success(), "{error}");
        Some(TestLab::named(self.clone(), name))
    }
}

/// The routers, control services and emulators of a lab's status.
fn processes(status: &Value) -> Vec<&Value> {
    let ases = status["ases"].as_array().unwrap();
    ases.iter()
        .flat_map(|a| {
            let routers = a["routers"].as_array().unwrap();
            let emulator = Some(&a["emulator"]).filter(|emulator| !emulator.is_null());
            routers.iter().chain([&a["control"]]).chain(emulator)
        })
        .collect()
}

/// A lab that is taken down at the end of its test.
pub struct TestLab {
    pub by: As,
    pub name: String,
    _watch: Watch,
}

impl Drop for TestLab {
    fn drop(&mut self) {
        // Has an effect only if the test has not taken the lab down.
        let _ = self.by.run(&["lab", "down", "--name", &self.name]);
    }
}

impl TestLab {
    /// The lab with this name, which may not be up yet.
    pub fn named(by: As, name: String) -> Self {
        let _watch = Watch::new();
        Self { by, name, _watch }
    }

    /// The lab's status as JSON; checks that the exit code shows dead services.
    pub fn status(&self) -> Value {
        let output = self
            .by
            .run(&["lab", "status", "--json", "--name", &self.name]);
        let dead = |json: &Value| {
            let dead = |s: &&Value| s["ours"] == true && s["alive"] == false;
            json["running"] == false || processes(json).iter().any(dead)
        };
        let json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.success(), !dead(&json), "{output:?}");
        json
    }

    pub fn down(&self) {
        self.by.print(&["lab", "down", "--name", &self.name]);
    }

    pub fn set(&self, interface: &str, change: &[&str]) {
        let mut args = vec!["lab", "link", "set", interface, "--name", &self.name];
        args.extend(change);
        self.by.print(&args);
    }

    /// A command inside an AS.
    pub fn exec(&self, isd_as: &str, command: &[&str]) -> Command {
        let mut args = vec!["lab", "exec", isd_as, "--name", &self.name, "--"];
        args.extend(command);
        self.by.command(&args)
    }

    /// The path of the program.
    pub fn program(&self) -> &str {
        match &self.by.nobody {
            Some((program, _)) => program.to_str().unwrap(),
            None => env!("CARGO_BIN_EXE_hawser"),
        }
    }

    /// A hawser command inside an AS.
    pub fn hawser(&self, isd_as: &str, args: &[&str]) -> Output {
        let mut command = vec![self.program()];
        command.extend(args);
        self.exec(isd_as, &command).output().unwrap()
    }

    /// The interfaces of each path that `isd_as` has to `to`.
    pub fn paths(&self, isd_as: &str, to: &str) -> Vec<String> {
        let args = ["paths", to, "--json", "--no-probe", "--timeout", "60s"];
        let output = self.hawser(isd_as, &args);
        assert!(output.status.success(), "{output:?}");
        let listing: Value = serde_json::from_slice(&output.stdout).unwrap();
        let paths = listing["paths"].as_array().unwrap();
        paths.iter().map(|p| p["hops"].to_string()).collect()
    }

    /// Waits until a host answers an echo.
    pub fn assert_answers(&self, isd_as: &str, host: &str) {
        let what = format!("{host} answers {isd_as}");
        eventually(&what, || self.answers(isd_as, host));
    }

    /// Waits until `isd_as` has this number of paths to `to`.
    pub fn assert_paths(&self, isd_as: &str, to: &str, count: usize) {
        let what = format!("{isd_as} has {count} paths to {to}");
        eventually(&what, || self.paths(isd_as, to).len() == count);
    }

    /// Whether a host answers an echo at once. On a busy machine it may not, though it is reached.
    pub fn answers(&self, isd_as: &str, host: &str) -> bool {
        self.hawser(isd_as, &["ping", host, "-c", "1"])
            .status
            .success()
    }

    /// Starts a process in an AS that keeps running, and returns its number.
    pub fn leave_behind(&self, isd_as: &str) -> i64 {
        let script = "trap '' HUP; sleep 100000 >/dev/null 2>&1 & echo $!";
        let output = self.exec(isd_as, &["sh", "-c", script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().parse().unwrap()
    }

    pub fn supervisor(&self) -> i64 {
        self.status()["supervisor"]["pid"].as_i64().unwrap()
    }

    /// The numbers of its router, control service and emulator processes.
    pub fn services(&self) -> Vec<i64> {
        let status = self.status();
        let pids = processes(&status).into_iter().map(|p| &p["pid"]);
        pids.filter_map(Value::as_i64).collect()
    }

    /// Asserts that nothing of the lab remains, after it has ended.
    pub fn assert_gone(&self, folder: &Path, processes: &[i64]) {
        for &pid in processes {
            assert!(!runs(pid), "process {pid} of {} still runs", self.name);
        }
        assert!(!folder.exists(), "{folder:?} is still there");
        assert!(!self.by.names().contains(&self.name));
    }
}

/// Whether a process runs; a zombie does not. Its first thread may be one before the others have ended,
/// which until then hold what the process has open.
pub fn runs(pid: i64) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat"));
        let state = stat.ok().and_then(|s| {
            let (_, rest) = s.rsplit_once(") ")?;
            rest.chars().next()
        });
        !matches!(state, None | Some('Z' | 'X'))
    })
}

/// Waits until `holds` returns true, and fails after five minutes.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !holds() {
        assert!(Instant::now() < deadline, "never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Stops a process for `time`, as a busy machine may.
pub fn pause(pid: i64, time: Duration) {
    let signal = |name: &str| {
        let script = format!("kill -{name} {pid}");
        // The process may have ended.
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stderr(Stdio::null());
        command.status().unwrap();
    };
    signal("STOP");
    std::thread::sleep(time);
    signal("CONT");
}

/// Stops a process while `job` runs.
pub fn pause_until<T>(pid: i64, job: impl FnOnce() -> T) -> T {
    let signal = |name: &str| {
        let script = format!("kill -{name} {pid}");
        let status = Command::new("sh").args(["-c", &script]).status();
        assert!(status.unwrap().success(), "process {pid} has ended");
    };
    signal("STOP");
    let done = job();
    signal("CONT");
    done
}

/// Kills processes with SIGKILL, and waits until they have ended.
pub fn kill(pids: &[i64]) {
    for pid in pids {
        let status = Command::new("sh")
            .args(["-c", &format!("kill -9 {pid}")])
            .stderr(Stdio::null())
            .status();
        status.unwrap();
    }
    while pids.iter().any(|&pid| runs(pid)) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes a topology file.
pub fn topology(folder: &Path, text: &str) -> String {
    let path = folder.join("test.topo");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}
