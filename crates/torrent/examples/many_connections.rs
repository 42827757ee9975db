//! What many connections cost a seeder over TCP on this host: memory of each, processor time per byte, and
//! how evenly it serves.
//!
//! `cargo run --release -p hawser-torrent --example many_connections [CONNECTIONS] [ACTIVE] [SECONDS]`, by
//! default 1,000, 150 and 10. The seeder is a process of its own, with as many slots as connections are
//! active. Those ask for blocks all the time; the others stay connected. The figures of one active
//! connection alone come first.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hawser_torrent::{
    CreateOptions, EncryptionPolicy, Listener, Metainfo, Network, Seed, SeedOptions, create,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Bytes of the content: it stays in the kernel's cache.
const SIZE: usize = 64 << 20;
/// Bytes of a piece.
const PIECE_LENGTH: u32 = 256 << 10;
/// Bytes of a block.
const BLOCK: u32 = 16 << 10;
/// Requests that each active connection keeps open.
const REQUESTS: u32 = 64;
/// How long the seeder has for its choker to serve all active connections.
const WARM_UP: Duration = Duration::from_secs(15);

const UNCHOKE: u8 = 1;
const INTERESTED: u8 = 2;
const REQUEST: u8 = 6;
const PIECE: u8 = 7;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [role, dir, slots] = &args[..]
        && role == "seed"
    {
        return seed(Path::new(dir), slots.parse()?).await;
    }
    let numbers = args.iter().map(|text| text.parse::<usize>());
    let numbers: Vec<usize> = numbers.collect::<Result<_, _>>()?;
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (connections, active) = (number(0, 1000), number(1, 150));
    let time = Duration::from_secs(number(2, 10) as u64);
    let dir = tempfile::tempdir()?;
    let metainfo = fill(dir.path())?;
    let alone = measure(dir.path(), &metainfo, (1, 1), time).await?;
    println!("1 connection: {alone}");
    let many = measure(dir.path(), &metainfo, (connections, active), time).await?;
    println!("{connections} connections, {active} active: {many}");
    println!(
        "processor time per byte: {:.2} times that of one; {:.1} KiB of memory a connection",
        many.cpu_per_gb / alone.cpu_per_gb,
        many.memory.saturating_sub(alone.memory) as f64 / 1024.0 / (connections - 1) as f64,
    );
    Ok(())
}

/// Writes content and its torrent.
fn fill(dir: &Path) -> Result<Metainfo, Failure> {
    let file = dir.join("content.bin");
    let mut content = vec![0; SIZE];
    fastrand::Rng::with_seed(1).fill(&mut content);
    fs::write(&file, content)?;
    let options = CreateOptions {
        piece_length: Some(PIECE_LENGTH),
        ..CreateOptions::default()
    };
    let torrent = create(&file, &options, |_, _| {})?;
    fs::write(dir.join("content.torrent"), &torrent)?;
    Ok(Metainfo::parse(&torrent)?)
}

/// The seeder's process: says its address, and serves until its standard input ends.
async fn seed(dir: &Path, slots: usize) -> Result<(), Failure> {
    let metainfo = Metainfo::parse(&fs::read(dir.join("content.torrent"))?)?;
    let listener = Listener::bind("127.0.0.1:0".parse()?).await?;
    println!("{}", listener.local_addr());
    let network = Network::ip()
        .with_listener(listener)
        .with_encryption(EncryptionPolicy::Disable);
    let options = SeedOptions {
        slots: Some(slots),
        ..SeedOptions::default()
    };
    let file = dir.join("content.bin");
    let seed = Seed::start(metainfo, file, network, options, |_, _| {}).await?;
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    seed.stop().await?;
    Ok(())
}

/// A seeder's process, which ends with this value.
struct Seeder {
    child: Child,
    addr: SocketAddr,
    _stdin: ChildStdin,
}

impl Seeder {
    fn start(dir: &Path, slots: usize) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("seed")
            .arg(dir)
            .arg(slots.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut line = String::new();
        BufReader::new(stdout.ok_or("no output")?).read_line(&mut line)?;
        Ok(Self {
            addr: line.trim().parse()?,
            _stdin: stdin.ok_or("no input")?,
            child,
        })
    }
}

impl Drop for Seeder {
    fn drop(&mut self) {
        // It is of no use any more, whatever it has come to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What serving has cost.
struct Cost {
    gbit: f64,
    /// Processor seconds of the seeder per GB.
    cpu_per_gb: f64,
    /// Bytes of its resident memory.
    memory: u64,
    /// Bytes of the active connections, fewest first.
    bytes: Vec<u64>,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (sum, squares) = self.bytes.iter().fold((0.0, 0.0), |(sum, squares), bytes| {
            let bytes = *bytes as f64;
            (sum + bytes, squares + bytes * bytes)
        });
        write!(
            f,
            "{:.2} Gbit/s, {:.2} processor s/GB, {:.1} MiB; each active one {:.1} to {:.1} MiB, Jain's index {:.3}",
            self.gbit,
            self.cpu_per_gb,
            mib(self.memory),
            mib(self.bytes.first().copied().unwrap_or(0)),
            mib(self.bytes.last().copied().unwrap_or(0)),
            sum * sum / squares / self.bytes.len() as f64,
        )
    }
}

async fn measure(
    dir: &Path,
    metainfo: &Metainfo,
    (connections, active): (usize, usize),
    time: Duration,
) -> Result<Cost, Failure> {
    let seeder = Seeder::start(dir, active)?;
    let counts: Vec<_> = (0..active).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let mut peers = JoinSet::new();
    for number in 0..connections {
        let stream = connect(number, seeder.addr, metainfo).await?;
        match counts.get(number) {
            Some(count) => drop(peers.spawn(fetch(stream, Arc::clone(count)))),
            None => drop(peers.spawn(idle(stream))),
        }
    }
    tokio::time::sleep(WARM_UP).await;
    let pid = seeder.child.id();
    let read = || counts.iter().map(|count| count.load(Ordering::Relaxed));
    let (bytes, cpu, began) = (
        read().collect::<Vec<_>>(),
        processor_time(pid)?,
        Instant::now(),
    );
    tokio::time::sleep(time).await;
    let mut bytes: Vec<u64> = read()
        .zip(bytes)
        .map(|(now, before)| now - before)
        .collect();
    let (cpu, seconds) = (processor_time(pid)? - cpu, began.elapsed().as_secs_f64());
    let memory = memory(pid)?;
    if let Some(ended) = peers.try_join_next() {
        ended??;
        return Err("a connection has ended".into());
    }
    bytes.sort_unstable();
    let sum: u64 = bytes.iter().sum();
    if sum == 0 {
        return Err("the seeder serves nothing".into());
    }
    Ok(Cost {
        gbit: sum as f64 * 8.0 / 1e9 / seconds,
        cpu_per_gb: cpu.as_secs_f64() / (sum as f64 / 1e9),
        memory,
        bytes,
    })
}

/// Connects from an address of its own, and shakes hands (BEP 3).
async fn connect(
    number: usize,
    seeder: SocketAddr,
    metainfo: &Metainfo,
) -> Result<TcpStream, Failure> {
    let [high, low] = u16::try_from(number)?.to_be_bytes();
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::new(127, 1, high, low), 0).into())?;
    let mut stream = socket.connect(seeder).await?;
    let mut handshake = b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0".to_vec();
    handshake.extend_from_slice(&metainfo.info_hash.0);
    handshake.extend_from_slice(format!("-XX0000-{number:012}").as_bytes());
    stream.write_all(&handshake).await?;
    let mut answer = [0; 68];
    stream.read_exact(&mut answer).await?;
    Ok(stream)
}

/// Reads what comes, which is little.
async fn idle(mut stream: TcpStream) -> Result<(), Failure> {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await? > 0 {}
    Err("the seeder has closed an idle connection".into())
}

/// Asks for blocks, one after the other, as long as it is unchoked.
async fn fetch(stream: TcpStream, count: Arc<AtomicU64>) -> Result<(), Failure> {
    let (read, mut write) = stream.into_split();
    let mut read = tokio::io::BufReader::with_capacity(256 << 10, read);
    write.write_all(&[0, 0, 0, 1, INTERESTED]).await?;
    let blocks = PIECE_LENGTH / BLOCK;
    let pieces = u32::try_from(SIZE)? / PIECE_LENGTH;
    let mut next = 0;
    let mut body = Vec::new();
    loop {
        let length = read.read_u32().await?;
        if length == 0 {
            continue;
        }
        body.resize(length as usize, 0);
        read.read_exact(&mut body).await?;
        let more = match body[0] {
            UNCHOKE => REQUESTS,
            PIECE => {
                count.fetch_add(u64::from(length) - 9, Ordering::Relaxed);
                1
            }
            _ => 0,
        };
        let mut requests = Vec::new();
        for _ in 0..more {
            requests.extend_from_slice(&[0, 0, 0, 13, REQUEST]);
            let (piece, block) = (next / blocks % pieces, next % blocks);
            for field in [piece, block * BLOCK, BLOCK] {
                requests.extend_from_slice(&field.to_be_bytes());
            }
            next = (next + 1) % (blocks * pieces);
        }
        write.write_all(&requests).await?;
    }
}

/// Resident memory of a process, in bytes.
fn memory(pid: u32) -> Result<u64, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("VmRSS:"));
    let value = lines.next().ok_or("no memory")?;
    let kib: u64 = value.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// Time that a process has had of processors (proc_pid_stat(5), in ticks of 10 ms).
fn processor_time(pid: u32) -> Result<Duration, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text.rsplit_once(')').ok_or("no name")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| {
        let field = fields.get(at).ok_or("no field")?;
        field.parse::<u64>().map_err(Failure::from)
    };
    Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}
