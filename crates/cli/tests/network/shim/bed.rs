//! Two hosts with shims in a lab with four disjoint paths, and TCP connections between them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use hawser_kernel::namespace::{enter_net, is_privileged};
use rustix::net::sockopt;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{As, TestLab, eventually, topology};

pub const CLIENT: &str = "1-ff00:0:110";
pub const SERVER: &str = "1-ff00:0:111";

/// Destinations of programs that are mapped to the server's host.
pub const MAPPED: [&str; 2] = ["10.99.0.1", "fd99::1"];

/// The carrier of most tests: what the kernels do with subflows, and that connections outlive a carrier,
/// is theirs. Servers are brought up without, and take either.
pub const MPTCP: [&str; 2] = ["--carrier", "mptcp"];

/// Four links between two ASes.
const TOPOLOGY: &str = r#"
ASes:
  "1-ff00:0:110": { core: true }
  "1-ff00:0:111": { core: true }
links:
  - { a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, rate: 40mbit }
  - { a: "1-ff00:0:110#2", b: "1-ff00:0:111#2", linkAtoB: CORE, rate: 40mbit }
  - { a: "1-ff00:0:110#3", b: "1-ff00:0:111#3", linkAtoB: CORE, rate: 40mbit }
  - { a: "1-ff00:0:110#4", b: "1-ff00:0:111#4", linkAtoB: CORE, rate: 40mbit }
"#;

/// Longest wait of a program for the other one.
const PATIENCE: Duration = Duration::from_secs(300);

/// The network namespace of an AS, where programs run.
pub struct Host(File);

impl Host {
    fn new(lab: &TestLab, isd_as: &str) -> Self {
        let process = lab.leave_behind(isd_as);
        Self(File::open(format!("/proc/{process}/ns/net")).unwrap())
    }

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

    /// Connects to `to`, for example `10.99.0.1:7000`.
    pub fn connect(&self, to: &str) -> TcpStream {
        let connect = || {
            let connected = TcpStream::connect(to);
            connected.unwrap_or_else(|error| panic!("{to}: {error}\n{}", routes()))
        };
        let stream = self.run(connect);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A listener of a server at any port of `ip`.
    pub fn listen(&self, ip: &str) -> (TcpListener, u16) {
        let listener = self.run(|| TcpListener::bind((ip, 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }
}

/// The rules, routes and addresses of the calling thread's network namespace.
fn routes() -> String {
    let show = "for f in -4 -6; do ip $f rule; ip $f route show table all; ip $f addr; done";
    let output = Command::new("sh").args(["-c", show]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Accepts a connection. If none comes, the test fails: its other threads may have failed already, and
/// would be waited for without end.
pub fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    sockopt::set_socket_timeout(listener, sockopt::Timeout::Recv, Some(PATIENCE)).unwrap();
    let (stream, from) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    (stream, from)
}

/// Reads until the other side has closed its direction.
pub fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Ends this side's direction.
pub fn finish(stream: &TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
}

/// `length` bytes that no other `seed` has.
pub fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// A carrier that runs; it is killed when this is dropped.
pub struct Carrier {
    child: Child,
    pub address: String,
    pub key: String,
}

impl Carrier {
    pub fn pid(&self) -> i64 {
        self.child.id().into()
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) {
        self.child.wait().unwrap();
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lab and both hosts.
pub struct Bed {
    pub lab: TestLab,
    pub folder: TempDir,
    pub client: Host,
    pub server: Host,
}

impl Drop for Bed {
    fn drop(&mut self) {
        for isd_as in [CLIENT, SERVER] {
            if thread::panicking() {
                let output = self.shim(isd_as, &["status", "--json"]);
                let status = String::from_utf8_lossy(&output.stdout).into_owned();
                eprintln!("the shim of {isd_as}: {status}");
            }
            // The test may have taken it down.
            let _ = self.shim(isd_as, &["down"]);
        }
    }
}

impl Bed {
    /// A lab without shims; `None`, with a message, where there cannot be any.
    pub fn new(what: &str) -> Option<Self> {
        Self::with_topology(what, TOPOLOGY)
    }

    /// The same with the network of `text`, which has both ASes.
    pub fn with_topology(what: &str, text: &str) -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let lab = As::default().up(&topology(folder.path(), text), what)?;
        let (client, server) = (Host::new(&lab, CLIENT), Host::new(&lab, SERVER));
        fs::write(folder.path().join("none.toml"), "[destinations]\n").unwrap();
        Some(Self {
            lab,
            folder,
            client,
            server,
        })
    }

    /// Sets all four links of the network: `--down` or `--up`.
    pub fn set_links(&self, state: &str) {
        for link in 1..=4 {
            self.lab.set(&format!("{CLIENT}#{link}"), &[state]);
        }
    }

    /// The path of a file in the test's folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The name of the shim in an AS.
    fn name(&self, isd_as: &str) -> String {
        format!("{}-{}", self.lab.name, isd_as.replace(':', "-"))
    }

    /// The process of the holder of the shim in an AS.
    pub fn holder(&self, isd_as: &str) -> i32 {
        let wanted = format!("\0internal\0shim-holder\0{}\0", self.name(isd_as));
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut numbers = processes.filter_map(|one| one.file_name().to_str()?.parse().ok());
        let holder = numbers.find(|process: &i32| {
            let line = fs::read_to_string(format!("/proc/{process}/cmdline"));
            line.is_ok_and(|line| line.contains(&wanted))
        });
        holder.expect("a holder")
    }

    /// How many descriptors the holder of the shim in an AS has open.
    pub fn descriptors(&self, isd_as: &str) -> usize {
        let open = fs::read_dir(format!("/proc/{}/fd", self.holder(isd_as)));
        open.unwrap().count()
    }

    /// The arguments of a command of the shim in an AS.
    fn args<'a>(&'a self, name: &'a str, args: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec![env!("CARGO_BIN_EXE_hawser"), "shim"];
        all.extend(args);
        all.extend(["--name", name]);
        all
    }

    /// Runs a command of the shim in an AS to its end.
    pub fn shim(&self, isd_as: &str, args: &[&str]) -> Output {
        let name = self.name(isd_as);
        let mut command = self.lab.exec(isd_as, &self.args(&name, args));
        // Keeps the user's keys out.
        command.env("XDG_CONFIG_HOME", self.folder.path());
        command.output().unwrap()
    }

    /// Brings the shim of an AS up.
    pub fn up(&self, isd_as: &str, flags: &[&str]) -> Carrier {
        self.start(isd_as, &[], flags)
    }

    /// The same, with a command that runs it.
    fn start(&self, isd_as: &str, before: &[&str], flags: &[&str]) -> Carrier {
        let (name, key) = (self.name(isd_as), self.path(&format!("{isd_as}.key")));
        let args = [&["up", "--json", "--key", &key], flags].concat();
        let args = [before, &self.args(&name, &args)].concat();
        let mut command = self.lab.exec(isd_as, &args);
        command.env("XDG_CONFIG_HOME", self.folder.path());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let up: Value = serde_json::from_str(&line).unwrap();
        let text = |field: &str| up[field].as_str().unwrap().to_owned();
        Carrier {
            child,
            address: text("listening"),
            key: text("key"),
        }
    }

    /// Brings the server's shim up, for any client.
    pub fn serve(&self, flags: &[&str]) -> Carrier {
        let none = self.path("none.toml");
        self.up(SERVER, &[&["--allow-any", "--map", &none], flags].concat())
    }

    /// Brings the server's shim up on a host whose kernel has no MPTCP, for any client.
    pub fn serve_without_mptcp(&self, flags: &[&str]) -> Carrier {
        let none = self.path("none.toml");
        let flags = [&["--allow-any", "--map", &none], flags].concat();
        let hide = "mount -t tmpfs none /proc/sys/net; exec \"$@\"";
        self.start(SERVER, &["unshare", "-m", "sh", "-ec", hide, "sh"], &flags)
    }

    /// Brings the client's shim up, which knows `server`, with MPTCP as the carrier.
    pub fn use_shim(&self, server: &Carrier, flags: &[&str]) -> Carrier {
        self.use_carrier(server, &[&MPTCP, flags].concat())
    }

    /// Brings the client's shim up, which knows `server`, with the carrier that `flags` name.
    pub fn use_carrier(&self, server: &Carrier, flags: &[&str]) -> Carrier {
        let map = self.map(MAPPED.map(|ip| (ip, server.address.as_str())));
        let known = ["--map", &map, "--server-key", &server.key];
        self.up(CLIENT, &[&known[..], &["--paths", "4"], flags].concat())
    }

    /// Writes the client's map.
    pub fn map<'a>(&self, entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let entries = entries.into_iter();
        let lines: String = entries
            .map(|(destination, target)| format!("{destination:?} = {target:?}\n"))
            .collect();
        let path = self.path("map.toml");
        let new = self.path("map.new");
        fs::write(&new, format!("[destinations]\n{lines}")).unwrap();
        fs::rename(new, &path).unwrap();
        path
    }

    /// The status of the shim in an AS.
    pub fn status(&self, isd_as: &str) -> Value {
        let output = self.shim(isd_as, &["status", "--json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The paths of the client's only session.
    pub fn paths(&self) -> Vec<Value> {
        let status = self.status(CLIENT);
        let paths = status["sessions"][0]["paths"].as_array();
        paths.cloned().unwrap_or_default()
    }

    /// The reasons of connections of a shim that failed.
    pub fn failures(&self, isd_as: &str) -> Vec<String> {
        let status = self.status(isd_as);
        let failures = status["failures"].as_array().unwrap().iter();
        let texts = failures.map(|one| one["text"].as_str().unwrap().to_owned());
        texts.collect()
    }

    /// Waits until the client's session has `count` paths over which datagrams get through.
    pub fn wait_for_paths(&self, count: usize) {
        let up = |path: &&Value| path["state"] == "up";
        eventually("the paths are connected", || {
            self.paths().iter().filter(up).count() == count
        });
    }
}
