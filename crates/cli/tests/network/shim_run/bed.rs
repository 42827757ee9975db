//! Two hosts in a lab, with a shim on the one that serves.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, TcpListener};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use hawser_kernel::namespace::{enter_net, is_privileged};
use serde_json::Value;
use tempfile::TempDir;

use super::program;
use crate::support::{As, TestLab, kill, topology};

pub const CLIENT: &str = "1-ff00:0:110";
pub const SERVER: &str = "1-ff00:0:111";

/// Destinations that are mapped to the server's host.
pub const MAPPED: [&str; 2] = ["10.99.0.1", "fd99::1"];

const TOPOLOGY: &str = r#"
ASes:
  "1-ff00:0:110": { core: true }
  "1-ff00:0:111": { core: true }
links:
  - { a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE }
  - { a: "1-ff00:0:110#2", b: "1-ff00:0:111#2", linkAtoB: CORE }
"#;

/// The network namespace of an AS.
pub struct Host(File);

impl Host {
    /// Runs `job` inside the namespace.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                enter_net(self.0.as_fd()).unwrap();
                job()
            });
            inside.join().unwrap()
        })
    }
}

/// A carrier that runs, until this is dropped.
pub struct Carrier(Child);

impl Carrier {
    /// Ends it as a user does.
    pub fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }

    /// Kills it, and its holder.
    pub fn kill_all(mut self, bed: &Bed) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        let name = bed.name(CLIENT);
        let is_holder = |pid: &i64| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = arguments.split(|byte| *byte == 0);
            words.any(|word| word == b"shim-holder") && words.any(|word| word == name.as_bytes())
        };
        let holders: Vec<i64> = processes().into_iter().filter(is_holder).collect();
        assert_eq!(holders.len(), 1);
        kill(&holders);
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Bed {
    pub client: Host,
    pub server: Host,
    /// The address of the server's shim.
    pub address: String,
    key: String,
    serving: Option<Carrier>,
    lab: TestLab,
    folder: TempDir,
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.serving = None;
        for isd_as in [CLIENT, SERVER] {
            let _ = self.shim(isd_as, &["down"]);
        }
    }
}

impl Bed {
    /// `None`, with a message, where there cannot be one.
    pub fn new(what: &str) -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let lab = As::default().up(&topology(folder.path(), TOPOLOGY), what)?;
        let host = |isd_as: &str| {
            let process = lab.leave_behind(isd_as);
            Host(File::open(format!("/proc/{process}/ns/net")).unwrap())
        };
        let mut bed = Self {
            client: host(CLIENT),
            server: host(SERVER),
            address: String::new(),
            key: String::new(),
            serving: None,
            lab,
            folder,
        };
        // As most systems have it.
        let groups = "/proc/sys/net/ipv4/ping_group_range";
        bed.client.run(|| fs::write(groups, "0 0")).unwrap();
        fs::write(bed.path("none.toml"), "[destinations]\n").unwrap();
        let none = bed.path("none.toml");
        let (carrier, up) = bed.start(SERVER, &["--expose", "all", "--allow-any", "--map", &none]);
        bed.serving = Some(carrier);
        bed.address = up["listening"].as_str().unwrap().to_owned();
        bed.key = up["key"].as_str().unwrap().to_owned();
        let lines = MAPPED.map(|ip| format!("{ip:?} = {:?}\n", bed.address));
        let map = format!("[destinations]\n{}", lines.concat());
        fs::write(bed.path("map.toml"), map).unwrap();
        Some(bed)
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The name of the shim in an AS.
    pub fn name(&self, isd_as: &str) -> String {
        format!("{}-{}", self.lab.name, isd_as.replace(':', "-"))
    }

    /// A command in an AS, without the user's keys.
    fn exec(&self, isd_as: &str, command: &[&str]) -> Command {
        let mut command = self.lab.exec(isd_as, command);
        command.env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    /// Runs a command of the shim in an AS to its end.
    pub fn shim(&self, isd_as: &str, args: &[&str]) -> Output {
        let (program, name) = (self.lab.program(), self.name(isd_as));
        let words = [&[program, "shim"], args, &["--name", &name]].concat();
        self.exec(isd_as, &words).output().unwrap()
    }

    /// The sessions of the server's shim.
    pub fn served_sessions(&self) -> Vec<Value> {
        let output = self.shim(SERVER, &["status", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["sessions"].as_array().unwrap().clone()
    }

    /// Starts the shim of an AS. Returns what it prints, too.
    fn start(&self, isd_as: &str, flags: &[&str]) -> (Carrier, Value) {
        let (program, name) = (self.lab.program(), self.name(isd_as));
        let key = self.path(&format!("{isd_as}.key"));
        let words = [
            program, "shim", "up", "--json", "--name", &name, "--key", &key,
        ];
        let mut command = self.exec(isd_as, &[&words, flags].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        (Carrier(child), serde_json::from_str(&line).unwrap())
    }

    /// The flags by which a client knows the server.
    fn known(&self) -> [String; 4] {
        let map = self.path("map.toml");
        ["--map".into(), map, "--server-key".into(), self.key.clone()]
    }

    /// Brings the client's shim up.
    pub fn up(&self) -> Carrier {
        let known = self.known();
        self.start(CLIENT, &known.each_ref().map(String::as_str)).0
    }

    /// `hawser run` of a command on the client's host.
    pub fn run_command(&self, flags: &[&str], command: &[&str]) -> Command {
        let (known, key) = (self.known(), self.path("run.key"));
        let known = known.each_ref().map(String::as_str);
        let run = [self.lab.program(), "run", "--key", &key];
        self.exec(
            CLIENT,
            &[&run, &known[..], flags, &["--"], command].concat(),
        )
    }

    /// `hawser run` of a program for tests.
    pub fn run(&self, flags: &[&str], job: &str) -> Command {
        let words = program::words();
        let mut command = self.run_command(flags, &words.each_ref().map(String::as_str));
        command.env(program::JOB, job);
        command
    }

    /// A program for tests, on the client's host.
    pub fn program(&self, job: &str) -> Command {
        let words = program::words();
        let mut command = self.exec(CLIENT, &words.each_ref().map(String::as_str));
        command.env(program::JOB, job);
        command
    }

    /// A listener on the server's host, and its port.
    pub fn listen(&self) -> (TcpListener, u16) {
        let listener = self.server.run(|| TcpListener::bind(("0.0.0.0", 0)));
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    /// An IPv4 address of the client's host.
    pub fn own_address(&self) -> IpAddr {
        let addresses = self.client.run(hawser_kernel::interface::addresses);
        let mut ips = addresses.unwrap().into_iter().map(|(_, ip)| ip);
        ips.find(|ip| ip.is_ipv4() && !ip.is_loopback()).unwrap()
    }

    /// The processes that a process has started.
    pub fn children(&self, of: &Child) -> Vec<i64> {
        let parent = of.id().to_string();
        let is_child = |pid: &i64| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name in parentheses, the state, the parent.
            let rest = stat.rsplit_once(") ").map(|(_, rest)| rest);
            rest.and_then(|rest| rest.split(' ').nth(1)) == Some(&*parent)
        };
        processes().into_iter().filter(is_child).collect()
    }
}

/// All processes.
fn processes() -> Vec<i64> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|one| one.file_name().to_str()?.parse().ok());
    pids.collect()
}
