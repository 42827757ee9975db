//! A coordinator, three attachment points and twenty user ASes, each in a network namespace of its
//! own. A lab without services gives the namespaces, with plain IP among them by way of a hub.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{enter_net, is_privileged};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{As, TestLab, eventually, topology};

/// Where the coordinator runs.
const HUB: &str = "1-ff00:0:100";
/// The attachment points.
pub const POINTS: [&str; 3] = ["1-ff00:0:110", "1-ff00:0:120", "1-ff00:0:130"];
/// The user ASes, each with the attachment point that it has a link to.
pub const USERS: [(&str, usize); 20] = [
    ("1-ff00:0:1", 0),
    ("1-ff00:0:2", 0),
    ("1-ff00:0:3", 1),
    ("1-ff00:0:4", 1),
    ("1-ff00:0:5", 2),
    ("1-ff00:0:6", 2),
    ("1-ff00:0:7", 0),
    ("1-ff00:0:8", 1),
    ("1-ff00:0:9", 2),
    ("1-ff00:0:a", 0),
    ("1-ff00:0:b", 1),
    ("1-ff00:0:c", 2),
    ("1-ff00:0:d", 0),
    ("1-ff00:0:e", 1),
    ("1-ff00:0:f", 2),
    ("1-ff00:0:10", 0),
    ("1-ff00:0:11", 1),
    ("1-ff00:0:12", 2),
    ("1-ff00:0:13", 0),
    ("1-ff00:0:14", 1),
];
/// A device at the attachment point of the last user AS, which the limits of its link are set at.
pub const SPARE: &str = "spare";
const PORT: u16 = 8040;
/// Longest wait for an answer or a line.
const PATIENCE: Duration = Duration::from_secs(300);

/// All ASes that join.
pub fn ases() -> impl Iterator<Item = &'static str> {
    POINTS.into_iter().chain(USERS.map(|(isd_as, _)| isd_as))
}

/// A network namespace.
struct Namespace(File);

impl Namespace {
    fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                enter_net(self.0.as_fd()).unwrap();
                job()
            });
            inside.join().unwrap()
        })
    }
}

/// A process that is ended when this is dropped.
pub struct Process {
    child: Child,
    /// The lines of its standard output, read by a thread so that it never waits.
    lines: Mutex<Receiver<String>>,
}

impl Process {
    /// Starts a command that prints lines.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let lines = Mutex::new(lines);
        Self { child, lines }
    }

    /// Waits for a line of JSON.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&Value) -> bool) {
        let mut seen = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        let lines = self.lines.lock().unwrap();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                panic!("{what} never came: {seen:#?}");
            };
            if serde_json::from_str(&line).is_ok_and(|value| wanted(&value)) {
                return;
            }
            seen.push(line);
        }
    }

    /// What it has reported since this was asked last.
    pub fn events(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        lines
            .try_iter()
            .filter_map(|line| serde_json::from_str(&line).ok())
            .collect()
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Ends it as systemd does, and waits until it has ended.
    pub fn terminate(mut self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request over a connection to a coordinator; the answer's status and body.
pub fn request(
    mut stream: TcpStream,
    (method, path): (&str, &str),
    token: &str,
    body: &Value,
) -> (u16, Vec<u8>) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        stream.peer_addr().unwrap(),
        body.len()
    );
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|part| part == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(!head.to_lowercase().contains("transfer-encoding"), "{head}");
    (status, answer[end + 4..].to_vec())
}

/// The whole network.
pub struct Bed {
    // The processes end before their namespaces.
    nodes: Vec<(&'static str, Process)>,
    _coordinator: Process,
    hub: Namespace,
    at: SocketAddr,
    admin: String,
    folder: TempDir,
    pub lab: TestLab,
}

impl Bed {
    /// Brings the network up, without any AS joined; `None`, with a message, where it cannot.
    pub fn new() -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut text = format!("ASes:\n  \"{HUB}\": {{core: true}}\n");
        let mut links = "links:\n".to_owned();
        for (at, isd_as) in ases().enumerate() {
            text += &format!("  \"{isd_as}\": {{}}\n");
            links += &format!(
                "  - {{a: \"{HUB}#{}\", b: \"{isd_as}#1\", linkAtoB: CHILD}}\n",
                at + 1
            );
        }
        let mut flags = Vec::new();
        for isd_as in [HUB].into_iter().chain(ases()) {
            flags.extend(["--no-router", isd_as, "--no-control", isd_as]);
        }
        let path = topology(folder.path(), &(text + &links));
        let lab = As::default().up_with(&path, "coordinator", &flags)?;
        let pid = lab.leave_behind(HUB);
        let hub = Namespace(File::open(format!("/proc/{pid}/ns/net")).unwrap());
        let at: SocketAddr = (address(HUB).parse::<std::net::IpAddr>().unwrap(), PORT).into();
        let state = folder.path().join("state");
        let (listen, url) = (at.to_string(), format!("http://{at}"));
        let program = lab.program().to_owned();
        let state_text = state.to_str().unwrap();
        let args = [
            "coordinator",
            "--listen",
            &listen,
            "--state",
            state_text,
            "--url",
            &url,
            "--allow-plain-http",
        ];
        let coordinator = Process::start(lab.exec(HUB, &[&[program.as_str()][..], &args].concat()));
        let token = state.join("admin-token");
        let mut admin = String::new();
        eventually("the coordinator has an administrator", || {
            admin = fs::read_to_string(&token)
                .unwrap_or_default()
                .trim()
                .to_owned();
            !admin.is_empty()
        });
        let bed = Self {
            nodes: Vec::new(),
            _coordinator: coordinator,
            hub,
            at,
            admin,
            folder,
            lab,
        };
        eventually("the coordinator answers", || {
            bed.hub.run(|| TcpStream::connect(at)).is_ok()
        });
        Some(bed)
    }

    /// A request to the coordinator; the answer's status and body.
    pub fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Vec<u8>) {
        let at = self.at;
        let stream = self.hub.run(|| TcpStream::connect(at)).unwrap();
        request(stream, (method, path), token, body)
    }

    /// A request of the administrator that must succeed.
    pub fn admin(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(method, path, &self.admin, body);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            (200..300).contains(&status),
            "{method} {path}: {status} {text}"
        );
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Adds all ASes, their users and their links; returns the owner's token and the number of the
    /// link of each user AS.
    pub fn fill(&self) -> Vec<(String, u64)> {
        self.sh(
            POINTS[USERS[19].1],
            &format!("ip link add {SPARE} type veth peer name far && ip link set {SPARE} up"),
        );
        for isd_as in POINTS {
            let new = json!({"isd_as": isd_as, "label": isd_as, "addresses": [address(isd_as)]});
            self.admin("POST", "/api/v1/attachment-points", &new);
        }
        for [a, b] in [[0, 1], [1, 2], [0, 2]] {
            let ends = json!({"ends": [POINTS[a], POINTS[b]]});
            self.admin("POST", "/api/v1/core-links", &ends);
        }
        let add = |(isd_as, point): (&str, usize)| {
            let user = json!({"name": isd_as, "role": "user"});
            let user = self.admin("POST", "/api/v1/users", &user);
            let token = user["token"].as_str().unwrap().to_owned();
            let owner = user["user"]["id"]
                .as_u64()
                .or_else(|| user["id"].as_u64())
                .unwrap();
            let new = json!({"isd_as": isd_as, "label": isd_as, "owner": owner,
                             "addresses": [address(isd_as)]});
            self.admin("POST", "/api/v1/ases", &new);
            let link = json!({"attachment_point": POINTS[point], "user_as": isd_as,
                              "device": (isd_as == USERS[19].0).then_some(SPARE),
                              "maximum": {"egress": 100_000_000, "ingress": 100_000_000}});
            let link = self.admin("POST", "/api/v1/links", &link);
            (token, link["id"].as_u64().unwrap())
        };
        USERS.map(add).to_vec()
    }

    /// Fetches the archive of an AS.
    pub fn archive(&self, isd_as: &str, token: Option<&str>) -> PathBuf {
        let path = format!("/api/v1/ases/{isd_as}/archive");
        let token = token.unwrap_or(&self.admin);
        let (status, archive) = self.ask("GET", &path, token, &Value::Null);
        assert_eq!(
            status,
            200,
            "{isd_as}: {}",
            String::from_utf8_lossy(&archive)
        );
        let file = self
            .folder
            .path()
            .join(format!("{}.tar.gz", isd_as.replace(':', "_")));
        fs::write(&file, archive).unwrap();
        file
    }

    /// Starts `hawser as join` in the namespace of an AS.
    pub fn join(&mut self, isd_as: &'static str, archive: &std::path::Path) {
        let dir = self.folder.path().join(isd_as.replace([':', '-'], "_"));
        let [archive, dir] = [archive, &dir].map(|path| path.to_str().unwrap());
        let args = [
            self.lab.program(),
            "as",
            "join",
            archive,
            "--state",
            dir,
            "--json",
        ];
        let process = Process::start(self.lab.exec(isd_as, &args));
        self.nodes.push((isd_as, process));
    }

    /// Waits until all that has come for an AS is in force there.
    pub fn wait_ready(&self, isd_as: &str) {
        self.node(isd_as)
            .wait_for(&format!("{isd_as} is ready"), |event| {
                event["event"] == "ready"
            });
    }

    /// Takes the node of an AS out.
    pub fn leave(&mut self, isd_as: &str) -> Process {
        let at = self.nodes.iter().position(|(of, _)| *of == isd_as).unwrap();
        self.nodes.remove(at).1
    }

    /// The node of an AS.
    pub fn node(&self, isd_as: &str) -> &Process {
        let (_, node) = self.nodes.iter().find(|(of, _)| *of == isd_as).unwrap();
        node
    }

    /// Runs shell commands in the namespace of an AS.
    pub fn sh(&self, isd_as: &str, commands: &str) {
        let output = self
            .lab
            .exec(isd_as, &["sh", "-ec", commands])
            .output()
            .unwrap();
        assert!(output.status.success(), "{commands}: {output:?}");
    }

    /// The queueing disciplines and filters of the devices in the namespace of an AS, but of [`SPARE`].
    pub fn disciplines(&self, isd_as: &str) -> String {
        let commands = format!(
            "for device in $(ip -o link | sed 's/^[0-9]*: \\([^@:]*\\).*/\\1/'); do \
             [ $device = {SPARE} ] || for kind in qdisc class 'filter root' 'filter ingress'; do \
             tc ${{kind%% *}} show dev $device ${{kind#${{kind%% *}}}}; done; done"
        );
        let mut shell = self.lab.exec(isd_as, &["sh", "-c", &commands]);
        String::from_utf8(shell.output().unwrap().stdout).unwrap()
    }

    /// Starts a hawser command in the namespace of an AS.
    pub fn start(&self, isd_as: &str, args: &[&str]) -> Child {
        let mut command = self
            .lab
            .exec(isd_as, &[&[self.lab.program()], args].concat());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// A hawser command in the namespace of an AS.
    pub fn hawser(&self, isd_as: &str, args: &[&str]) -> std::process::Output {
        self.lab.hawser(isd_as, args)
    }

    /// Packets from one AS's machine to the router of another one's link, as many as go, until this
    /// is dropped.
    pub fn flood(&self, from: &str, to: &str) -> Flood {
        let to: SocketAddr = format!("{}:50000", address(to)).parse().unwrap();
        let pid = self.lab.leave_behind(from);
        let namespace = Namespace(File::open(format!("/proc/{pid}/ns/net")).unwrap());
        let socket = namespace.run(|| UdpSocket::bind("0.0.0.0:0").unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // The queue of the limit may be full.
                let _ = socket.send_to(&[0; 1000], to);
                thread::sleep(Duration::from_micros(500));
            }
        });
        Flood {
            stop,
            thread: Some(thread),
        }
    }

    /// Bytes that the machine of an AS has received from the others.
    pub fn received(&self, isd_as: &str) -> u64 {
        let text = self
            .lab
            .exec(isd_as, &["cat", "/proc/self/net/dev"])
            .output()
            .unwrap();
        received_bytes(&String::from_utf8(text.stdout).unwrap())
    }

    /// The rate at which an AS's machine receives, in bit/s, over half a second.
    pub fn rate(&self, isd_as: &str) -> f64 {
        let (before, begun) = (self.received(isd_as), Instant::now());
        thread::sleep(Duration::from_millis(500));
        let bytes = self.received(isd_as) - before;
        bytes as f64 * 8.0 / begun.elapsed().as_secs_f64()
    }
}

/// Bytes that all devices but `lo` have received, of the text of `/proc/net/dev`.
pub fn received_bytes(text: &str) -> u64 {
    let devices = text
        .lines()
        .skip(2)
        .filter(|line| !line.trim().starts_with("lo:"));
    let bytes = devices.map(|line| {
        let (_, counters) = line.split_once(':').unwrap();
        counters
            .split_ascii_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    });
    bytes.sum()
}

/// The address of an AS's machine: labs number ASes from 1, in their order.
pub fn address(isd_as: &str) -> String {
    let all: Vec<_> = [HUB].into_iter().chain(ases()).collect();
    let at = all.iter().position(|one| *one == isd_as).unwrap();
    format!("10.0.{}.1", at + 1)
}

/// Packets that are sent until this is dropped.
pub struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
