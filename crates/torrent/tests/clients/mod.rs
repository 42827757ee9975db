//! Other BitTorrent programs, the content they share with us, and the tracker that announces us to
//! them.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hawser_torrent::{CreateOptions, Metainfo, create};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Longest wait for another program: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A BitTorrent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Aria2,
    Transmission,
}

impl Kind {
    fn program(self) -> &'static str {
        match self {
            Self::Aria2 => "aria2c",
            Self::Transmission => "transmission-daemon",
        }
    }
}

/// How a program behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// KiB per second that it uploads at most.
    pub rate: Option<u32>,
    /// Whether it accepts encrypted connections only (MSE, RC4).
    pub encrypts: bool,
}

/// Runs the ignored test `name` of this file in a network namespace whose loopback interface also
/// has the address `host`; prints the reason if that is not possible.
pub fn inside(kind: Kind, name: &str, host: &str) {
    for program in [kind.program(), "unshare", "ip"] {
        if !is_installed(program) {
            println!("skipped: {program} is not installed");
            return;
        }
    }
    let isolated = ["--user", "--map-root-user", "--net"];
    let allowed = Command::new("unshare").args(isolated).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("skipped: this user may not make a network namespace");
        return;
    }
    let script = format!("ip link set lo up && ip addr add {host}/24 dev lo && exec \"$0\" \"$@\"");
    let output = Command::new("unshare")
        .args(isolated)
        .args(["sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", name])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{failed}");
    assert!(said.contains("1 passed"), "nothing was run");
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Content in a folder, and its torrent.
pub struct Shared {
    pub dir: TempDir,
    pub metainfo: Metainfo,
    torrent: Vec<u8>,
}

/// One file in pieces of 16 KiB, more of them than requests that any program queues.
pub fn single_file() -> Shared {
    Shared::new(&[("single.bin", 24_000_001)], Some(16 << 10))
}

/// A folder of several files, across piece boundaries.
pub fn several_files() -> Shared {
    let files = [
        ("set/a.bin", 9_000_000),
        ("set/b/empty", 0),
        ("set/b/one", 1),
        ("set/b/c.bin", 14_000_003),
        ("set/z.bin", 700_000),
    ];
    Shared::new(&files, None)
}

impl Shared {
    fn new(files: &[(&str, usize)], piece_length: Option<u32>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, length) in files {
            let path = dir.path().join("seeded").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut bytes = vec![0u8; *length];
            fastrand::Rng::new().fill(&mut bytes[..]);
            fs::write(path, bytes).unwrap();
        }
        let top = Path::new(files[0].0).components().next().unwrap();
        let content = dir.path().join("seeded").join(top);
        let options = CreateOptions {
            piece_length,
            ..CreateOptions::default()
        };
        let torrent = create(&content, &options, |_, _| {}).unwrap();
        let metainfo = Metainfo::parse(&torrent).unwrap();
        Self {
            dir,
            metainfo,
            torrent,
        }
    }

    /// The file or folder.
    pub fn content(&self) -> PathBuf {
        self.seeded_from().join(&self.metainfo.name)
    }

    /// The folder that contains it.
    pub fn seeded_from(&self) -> PathBuf {
        self.dir.path().join("seeded")
    }

    /// Writes the torrent with a tracker's address, which comes first as keys are sorted.
    pub fn torrent_announced_at(&self, tracker: SocketAddr) -> PathBuf {
        let url = format!("http://{tracker}/announce");
        let mut bytes = format!("d8:announce{}:{url}", url.len()).into_bytes();
        bytes.extend_from_slice(&self.torrent[1..]);
        let path = self.dir.path().join("it.torrent");
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Whether every file in `dir` is right; some programs do not create empty ones.
    pub fn is_same_in(&self, dir: &Path) -> bool {
        self.metainfo.files.iter().all(|file| {
            let length = fs::metadata(dir.join(&file.path)).map(|metadata| metadata.len());
            if file.length == 0 && length.is_err() {
                return true;
            }
            if !length.is_ok_and(|length| length == file.length) {
                return false;
            }
            let there = fs::read(dir.join(&file.path));
            let right = fs::read(self.seeded_from().join(&file.path)).unwrap();
            there.is_ok_and(|there| there == right)
        })
    }
}

/// A tracker that announces one peer to every client (BEP 3, BEP 23).
pub struct Tracker {
    pub addr: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Tracker {
    pub async fn start(host: &str, peer: SocketAddr) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let IpAddr::V4(ip) = peer.ip() else {
            panic!("{peer} is not IPv4")
        };
        let mut body = b"d8:intervali5e5:peers6:".to_vec();
        body.extend(ip.octets());
        body.extend(peer.port().to_be_bytes());
        body.push(b'e');
        let head = format!(
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = [head.into_bytes(), body].concat();
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n")
                    && stream.read_buf(&mut asked).await.is_ok_and(|read| read > 0)
                {
                }
                // A client that does not wait for the answer repeats the request.
                let _ = stream.write_all(&answer).await;
            }
        });
        Self { addr, task }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A running program; dropping this ends it.
pub struct Client {
    /// The address at which it listens for peers.
    pub addr: SocketAddr,
    child: Child,
    home: TempDir,
}

impl Client {
    /// Starts it with a torrent. The content is in `dir`, or is downloaded into it.
    pub fn start(kind: Kind, torrent: &Path, dir: &Path, host: &str, manner: Manner) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir).unwrap();
        // The port is bound again at once, and no other program runs in the namespace.
        let port = std::net::TcpListener::bind((host, 0)).unwrap();
        let addr = port.local_addr().unwrap();
        drop(port);
        let mut command = match kind {
            Kind::Aria2 => aria2(torrent, dir, addr, manner),
            Kind::Transmission => transmission(torrent, dir, addr, home.path(), manner),
        };
        let log = fs::File::create(home.path().join("log")).unwrap();
        command.env("HOME", home.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        Self { addr, child, home }
    }

    /// Stops the process, or lets it continue.
    pub fn pause(&self, is_paused: bool) {
        let signal = if is_paused { "STOP" } else { "CONT" };
        let script = format!("kill -{signal} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &script]).status();
        assert!(sent.unwrap().success());
    }

    /// Its output so far.
    pub fn log(&self) -> String {
        let log = fs::read(self.home.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Waits until `so` returns true.
    pub async fn until(&self, mut so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !so() {
            assert!(begun.elapsed() < PATIENCE, "never so:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until it listens for peers.
    pub async fn until_seeding(&self) {
        let addr = self.addr;
        self.until(|| std::net::TcpStream::connect(addr).is_ok())
            .await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn aria2(torrent: &Path, dir: &Path, addr: SocketAddr, manner: Manner) -> Command {
    let rate = manner.rate.unwrap_or(0);
    let mut command = Command::new("aria2c");
    command
        .args([
            "--no-conf=true",
            "--enable-dht=false",
            "--enable-dht6=false",
        ])
        .args(["--bt-enable-lpd=false", "--enable-peer-exchange=false"])
        .args(["--seed-ratio=0.0", "--check-integrity=true"])
        .args(["--file-allocation=none", "--summary-interval=0"])
        .arg(format!("--listen-port={}", addr.port()))
        .arg(format!("--max-overall-upload-limit={rate}K"))
        .arg(format!("--bt-require-crypto={}", manner.encrypts))
        .args(manner.encrypts.then_some("--bt-min-crypto-level=arc4"))
        .arg("--dir")
        .arg(dir)
        .arg(torrent);
    command
}

fn transmission(
    torrent: &Path,
    dir: &Path,
    addr: SocketAddr,
    home: &Path,
    manner: Manner,
) -> Command {
    let watched = home.join("watched");
    fs::create_dir(&watched).unwrap();
    fs::copy(torrent, watched.join("it.torrent")).unwrap();
    let settings = settings(dir, &watched, addr, manner);
    fs::write(home.join("settings.json"), settings).unwrap();
    let mut command = Command::new("transmission-daemon");
    command.args(["--foreground", "--log-debug", "--config-dir"]);
    command.arg(home);
    command.args(manner.encrypts.then_some("--encryption-required"));
    command
}

/// TCP only, with no peers except the tracker's; otherwise it would try uTP first.
fn settings(dir: &Path, watched: &Path, addr: SocketAddr, manner: Manner) -> String {
    format!(
        r#"{{
  "bind-address-ipv4": "{ip}",
  "dht-enabled": false,
  "download-dir": "{dir}",
  "encryption": {encryption},
  "incomplete-dir-enabled": false,
  "lpd-enabled": false,
  "peer-port": {port},
  "pex-enabled": false,
  "port-forwarding-enabled": false,
  "rename-partial-files": false,
  "rpc-enabled": false,
  "speed-limit-up": {rate},
  "speed-limit-up-enabled": {limited},
  "start-added-torrents": true,
  "utp-enabled": false,
  "watch-dir": "{watched}",
  "watch-dir-enabled": true
}}"#,
        ip = addr.ip(),
        encryption = if manner.encrypts { 2 } else { 0 },
        port = addr.port(),
        rate = manner.rate.unwrap_or(0),
        limited = manner.rate.is_some(),
        dir = dir.display(),
        watched = watched.display(),
    )
}
