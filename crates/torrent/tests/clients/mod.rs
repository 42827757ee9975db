//! Other BitTorrent programs, the content they share with us, and the tracker that announces us to
//! them.
#![allow(dead_code, reason = "each test uses a part of it")]

mod aria2;
mod lftp;
mod libtorrent;
mod qbittorrent;
mod rtorrent;
mod transmission;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hawser_magnet::Magnet;
use hawser_torrent::{CreateOptions, Metainfo, Version, create};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Longest wait for another program: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A BitTorrent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Aria2,
    Transmission,
    Libtorrent,
    QBittorrent,
    RTorrent,
    Lftp,
}

impl Kind {
    fn is_installed(self) -> bool {
        match self {
            Self::Aria2 => is_installed("aria2c"),
            Self::Transmission => {
                is_installed("transmission-daemon") && is_installed("transmission-remote")
            }
            Self::Libtorrent => libtorrent::is_installed(),
            Self::QBittorrent => is_installed("qbittorrent-nox"),
            Self::RTorrent => is_installed("rtorrent"),
            Self::Lftp => is_installed("lftp"),
        }
    }
}

/// What a program is to do.
pub struct Task<'a> {
    /// The file or the link.
    pub torrent: Torrent,
    /// The folder that has the content, or gets it.
    pub dir: &'a Path,
    /// The address for peers.
    addr: SocketAddr,
    /// A folder for what the program keeps.
    home: &'a Path,
    manner: Manner,
}

/// A torrent as a program is told of it.
#[derive(Debug, Clone)]
pub enum Torrent {
    File(PathBuf),
    Magnet(String),
}

impl AsRef<OsStr> for Torrent {
    fn as_ref(&self) -> &OsStr {
        match self {
            Self::File(path) => path.as_ref(),
            Self::Magnet(link) => link.as_ref(),
        }
    }
}

/// How a program behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// KiB per second that it uploads at most.
    pub rate: Option<u32>,
    /// KiB per second that it downloads at most.
    pub download_rate: Option<u32>,
    /// Whether it accepts encrypted connections only (MSE, RC4).
    pub encrypts: bool,
    /// Whether it uses uTP alone, in place of TCP alone; libtorrent and qBittorrent can.
    pub utp: bool,
    /// How it finds peers.
    pub finds: Finds,
}

/// How a program finds peers: in one way alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finds {
    /// By the trackers of the torrent.
    #[default]
    Tracker,
    /// Connected peers tell it (BEP 11).
    Exchange,
    /// By the DHT (BEP 5), which it enters at this node.
    Dht(SocketAddr),
}

impl Finds {
    pub fn exchanges(self) -> bool {
        self == Self::Exchange
    }

    /// The node at which it enters the DHT.
    pub fn node(self) -> Option<SocketAddr> {
        match self {
            Self::Dht(node) => Some(node),
            Self::Tracker | Self::Exchange => None,
        }
    }
}

/// The address, inside a namespace, of the nodes by whose names qBittorrent enters the public DHT. The names are
/// written in the program.
pub const PUBLIC_NODE: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, 100)), 6881);

/// Those names.
const PUBLIC_NODES: &str = "dht.libtorrent.org dht.transmissionbt.com router.bittorrent.com \
                            router.utorrent.com dht.aelitis.com";

/// With this variable, a test with another program that fails is run once more, and what it printed is added to
/// the file that the variable names: those programs fail now and then by themselves.
const AGAIN: &str = "HAWSER_INTEROP_AGAIN";

/// Runs the ignored test `name` of this file in a network namespace whose loopback interface also
/// has the address `host`; prints the reason if that is not possible.
pub fn inside(kind: Kind, name: &str, host: &str) {
    if !kind.is_installed() {
        println!("skipped: {kind:?} is not installed");
        return;
    }
    for program in ["unshare", "ip"] {
        if !is_installed(program) {
            println!("skipped: {program} is not installed");
            return;
        }
    }
    let isolated = ["--user", "--map-root-user", "--net", "--mount"];
    let allowed = Command::new("unshare").args(isolated).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("skipped: this user may not make a network namespace");
        return;
    }
    let names = tempfile::NamedTempFile::new().unwrap();
    let (file, node) = (names.path().display(), PUBLIC_NODE.ip());
    fs::write(
        &names,
        format!("127.0.0.1 localhost\n{node} {PUBLIC_NODES}\n"),
    )
    .unwrap();
    let script = format!(
        "ip link set lo up && ip addr add {host}/24 dev lo && mount --bind {file} /etc/hosts && \
         exec \"$0\" \"$@\""
    );
    let run = || {
        let output = Command::new("unshare")
            .args(isolated)
            .args(["sh", "-c", &script])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", name])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said, failed)
    };
    let (mut passed, mut said, mut failed) = run();
    if !passed && let Some(list) = std::env::var_os(AGAIN) {
        let mut list = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(list)
            .unwrap();
        writeln!(list, "{name} failed at first:\n{said}\n{failed}").unwrap();
        (passed, said, failed) = run();
    }
    println!("{said}");
    assert!(passed, "{failed}");
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

/// Files across piece boundaries.
const SEVERAL: [(&str, usize); 5] = [
    ("set/a.bin", 9_000_000),
    ("set/b/empty", 0),
    ("set/b/one", 1),
    ("set/b/c.bin", 14_000_003),
    ("set/z.bin", 700_000),
];

/// A folder of several files.
pub fn several_files() -> Shared {
    Shared::new(&SEVERAL, None)
}

/// A folder of several files, in a torrent of a version that is made here.
pub fn several_files_of(version: Version) -> Shared {
    Shared::of(&SEVERAL, Some(64 << 10), version)
}

/// One file in a torrent of version 2 alone, of more pieces than one answer has hashes for.
pub fn single_file_of_version_two() -> Shared {
    Shared::of(&[("single.bin", 24_000_001)], Some(16 << 10), Version::Two)
}

/// The same in a torrent of versions 1 and 2 (BEP 52) with padding files (BEP 47), made by libtorrent.
pub fn hybrid() -> Shared {
    made_by_libtorrent("hybrid")
}

/// The same in a torrent of version 2 alone, made by libtorrent.
pub fn version_two() -> Shared {
    made_by_libtorrent("2")
}

fn made_by_libtorrent(version: &str) -> Shared {
    let mut shared = Shared::new(&SEVERAL, None);
    let made = shared.dir.path().join("made.torrent");
    libtorrent::create(&shared.content(), &made, version, None);
    shared.torrent = fs::read(made).unwrap();
    shared.metainfo = Metainfo::parse(&shared.torrent).unwrap();
    shared
}

impl Shared {
    fn new(files: &[(&str, usize)], piece_length: Option<u32>) -> Self {
        Self::of(files, piece_length, Version::One)
    }

    fn of(files: &[(&str, usize)], piece_length: Option<u32>, version: Version) -> Self {
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
            version,
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

    /// Writes the torrent with a tracker's address.
    pub fn torrent_announced_at(&self, tracker: SocketAddr) -> Torrent {
        self.torrent_announced_to(&format!("http://{tracker}/announce"))
    }

    /// Writes the torrent with a tracker's URL, which comes first as keys are sorted.
    pub fn torrent_announced_to(&self, url: &str) -> Torrent {
        let mut bytes = format!("d8:announce{}:{url}", url.len()).into_bytes();
        bytes.extend_from_slice(&self.torrent[1..]);
        self.write(&bytes)
    }

    /// Writes the torrent without a tracker.
    pub fn torrent_without_tracker(&self) -> Torrent {
        self.write(&self.torrent)
    }

    fn write(&self, torrent: &[u8]) -> Torrent {
        let path = self.dir.path().join("it.torrent");
        fs::write(&path, torrent).unwrap();
        Torrent::File(path)
    }

    /// Writes the torrent with a web seed and without trackers, as this program makes it.
    pub fn torrent_with_web_seed(&self, url: &str) -> Torrent {
        let options = CreateOptions {
            piece_length: Some(self.metainfo.pieces.length),
            web_seeds: vec![url.to_owned()],
            ..CreateOptions::default()
        };
        let torrent = create(&self.content(), &options, |_, _| {}).unwrap();
        let path = self.dir.path().join("web.torrent");
        fs::write(&path, torrent).unwrap();
        Torrent::File(path)
    }

    /// Has libtorrent make the torrent, of both versions and with padding files, with a web seed.
    pub fn made_with_web_seed(&self, url: &str) -> Metainfo {
        let made = self.dir.path().join("theirs.torrent");
        libtorrent::create(&self.content(), &made, "hybrid", Some(url));
        Metainfo::parse(&fs::read(made).unwrap()).unwrap()
    }

    /// The link to it, with a tracker's address.
    pub fn magnet_announced_at(&self, tracker: SocketAddr) -> Torrent {
        let magnet = Magnet {
            info_hashes: self.metainfo.info_hashes(),
            name: Some(self.metainfo.name.clone()),
            trackers: vec![format!("http://{tracker}/announce")],
            ..Magnet::default()
        };
        Torrent::Magnet(magnet.to_string())
    }

    /// Whether every file in `dir` is right; some programs do not create empty ones.
    pub fn is_same_in(&self, dir: &Path) -> bool {
        let mut files = self.metainfo.files.iter().filter(|file| !file.padding);
        files.all(|file| {
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

/// A tracker that announces one peer to every client (BEP 3, BEP 23), and is asked every five seconds.
pub struct Tracker {
    pub addr: SocketAddr,
    peer: Arc<Mutex<SocketAddr>>,
    task: tokio::task::JoinHandle<()>,
}

impl Tracker {
    pub async fn start(host: &str, peer: SocketAddr) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let peer = Arc::new(Mutex::new(peer));
        let announced = Arc::clone(&peer);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n")
                    && stream.read_buf(&mut asked).await.is_ok_and(|read| read > 0)
                {
                }
                let answer = announcing(*announced.lock().unwrap());
                // A client that does not wait for the answer repeats the request.
                let _ = stream.write_all(&answer).await;
            }
        });
        Self { addr, peer, task }
    }

    /// Announces another peer from now on.
    pub fn announce(&self, peer: SocketAddr) {
        *self.peer.lock().unwrap() = peer;
    }
}

fn announcing(peer: SocketAddr) -> Vec<u8> {
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
    [head.into_bytes(), body].concat()
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
    pub fn start(kind: Kind, torrent: Torrent, dir: &Path, host: &str, manner: Manner) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir).unwrap();
        // The port is bound again at once, and no other program runs in the namespace.
        let port = std::net::TcpListener::bind((host, 0)).unwrap();
        let addr = port.local_addr().unwrap();
        drop(port);
        let task = Task {
            torrent,
            dir,
            addr,
            home: home.path(),
            manner,
        };
        let mut command = match kind {
            Kind::Aria2 => aria2::command(&task),
            Kind::Transmission => transmission::command(&task),
            Kind::Libtorrent => libtorrent::command(&task),
            Kind::QBittorrent => qbittorrent::command(&task),
            Kind::RTorrent => rtorrent::command(&task),
            Kind::Lftp => lftp::command(&task),
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
    pub async fn until(&self, so: impl FnMut() -> bool) {
        let is_so = self.is_within(PATIENCE, so).await;
        assert!(is_so, "never so:\n{}", self.log());
    }

    /// Waits until `so` returns true, for as long as `wait`; returns whether it did.
    pub async fn is_within(&self, wait: Duration, mut so: impl FnMut() -> bool) -> bool {
        let begun = Instant::now();
        while !so() {
            if begun.elapsed() >= wait {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        true
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
