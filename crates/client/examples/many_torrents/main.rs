//! What many torrents cost a daemon: time until it serves, memory, processor time at rest.
//!
//! `cargo run --release -p hawser-client --example many_torrents [TORRENTS] [ACTIVE]`, by default 10,000 and
//! 100. Each torrent is a complete file of 16 KiB, in a temporary folder; no peer is found. The daemon runs twice,
//! each time in a process of its own: at first all content is hashed, then nothing has changed. Where
//! Transmission's daemon is installed, that runs after each of the two, with the same torrents.

mod process;
mod transmission;

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hawser_client::{
    Announcement, Bounds, Client, Dates, Engine, Limit, Origin, Record, Settings, StateFolder,
    Status, Totals,
};
use hawser_discovery::PeerFinder;
use hawser_torrent::{CreateOptions, Listener, Metainfo, Network, create};
use tokio_util::sync::CancellationToken;

use transmission::Transmission;

/// Bytes of the content of each torrent.
const SIZE: usize = 16 << 10;
/// How long the daemon is watched at rest.
const REST: Duration = Duration::from_secs(10);
/// Time between two looks at the torrents.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait for the torrents to seed.
const PATIENCE: Duration = Duration::from_secs(600);

/// First argument of the process of a daemon. The folder and how many torrents are active follow.
const DAEMON: &str = "daemon";

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [first, dir, active] if first == DAEMON => {
            let runtime = tokio::runtime::Runtime::new()?;
            let taken = runtime.block_on(run(Path::new(dir), active.parse()?))?;
            println!("{taken}");
            Ok(())
        }
        numbers => compare(numbers),
    }
}

/// Runs hawser and Transmission in turn.
fn compare(numbers: &[String]) -> Result<(), Failure> {
    let mut numbers = numbers.iter().map(|text| text.parse::<usize>());
    let count = numbers.next().transpose()?.unwrap_or(10_000);
    let active = numbers.next().transpose()?.unwrap_or(100);
    let active = active.min(count);
    let dir = tempfile::tempdir()?;
    let metainfo = fill(dir.path(), count)?;
    let downloads = dir.path().join("downloads");
    let other = Transmission::new(dir.path(), &metainfo, &downloads, active)?;
    println!("{count} torrents, {active} active");
    for title in ["all hashed", "nothing changed"] {
        println!("{title}: hawser: {}", run_alone(dir.path(), active)?);
        match other.run(count, active)? {
            Some(taken) => println!("{title}: Transmission: {taken}"),
            None => println!("{title}: Transmission is not installed"),
        }
    }
    Ok(())
}

/// What a daemon took.
struct Taken {
    /// Until the records were read, until all served, and of one list of all.
    times: [Duration; 3],
    /// In MiB.
    memory: u64,
    open_files: usize,
    /// Share of a processor at rest.
    rest: f64,
}

impl Taken {
    /// Watches a process at rest.
    fn at_rest(pid: u32, times: [Duration; 3]) -> Result<Self, Failure> {
        let before = process::processor_time(pid)?;
        std::thread::sleep(REST);
        let busy = process::processor_time(pid)? - before;
        Ok(Self {
            times,
            memory: process::memory(pid)?,
            open_files: process::open_files(pid)?,
            rest: busy.as_secs_f64() / REST.as_secs_f64(),
        })
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [read, serves, listed] = self.times.map(|time| time.as_secs_f64());
        write!(
            f,
            "records read after {read:.2} s, all serve after {serves:.2} s, listed in {:.1} ms; {} MiB of \
             memory, {} open files, {:.2} % of a processor at rest",
            listed * 1e3,
            self.memory,
            self.open_files,
            self.rest * 100.0,
        )
    }
}

/// Writes the records of torrents that are complete, and their content. Returns their metainfo files.
fn fill(dir: &Path, count: usize) -> Result<Vec<PathBuf>, Failure> {
    let (state, ..) = StateFolder::open(&dir.join("state"))?;
    let downloads = dir.join("downloads");
    let metainfo_files = dir.join("metainfo");
    let mut files = Vec::new();
    fs::create_dir(&downloads)?;
    fs::create_dir(&metainfo_files)?;
    for number in 0..count {
        let path = downloads.join(format!("{number}.bin"));
        let content = number.to_le_bytes().repeat(SIZE / size_of::<usize>());
        fs::write(&path, &content)?;
        let bytes = create(&path, &CreateOptions::default(), |_, _| {})?;
        let metainfo = Metainfo::parse(&bytes)?;
        let info_hash = metainfo.info_hash;
        state.save_metainfo(info_hash, &bytes)?;
        let file = metainfo_files.join(format!("{number}.torrent"));
        fs::write(&file, &bytes)?;
        files.push(file);
        state.save(&Record {
            info_hash,
            name: metainfo.name,
            origin: Origin::Metainfo,
            size: Some(SIZE as u64),
            folder: downloads.clone(),
            started: true,
            outcome: None,
            labels: Vec::new(),
            settings: Settings::default(),
            rank: number as u64,
            peers: Vec::new(),
            dates: Dates {
                added: 1,
                completed: Some(1),
                ..Dates::default()
            },
            totals: Totals::default(),
            pending: None,
            rechecks: false,
            announcement: Announcement::None,
        })?;
    }
    Ok(files)
}

/// Runs a daemon in a process of its own, whose memory has held nothing else, and returns what it prints.
fn run_alone(dir: &Path, active: usize) -> Result<String, Failure> {
    let mut daemon = Command::new(std::env::current_exe()?);
    daemon.arg(DAEMON).arg(dir).arg(active.to_string());
    let output = daemon.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?.trim_end().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

/// Runs a daemon until it is at rest, and says what it took.
async fn run(dir: &Path, active: usize) -> Result<Taken, Failure> {
    let began = Instant::now();
    let (state, records, _) = StateFolder::open(&dir.join("state"))?;
    let read = began.elapsed();
    let listener = Listener::bind("127.0.0.1:0".parse()?).await?;
    let network = Network::ip().with_listener(listener);
    let engine = Engine::new(network, PeerFinder::default());
    let mut bounds = Bounds::default();
    bounds.all.queue.seeds = Limit::to(active);
    let stop = CancellationToken::new();
    let downloads = dir.join("downloads");
    let (client, task) = Client::start(engine, state, records, bounds, &downloads, stop.clone());
    let mut changes = client.changes();
    let seeding = async {
        loop {
            changes.borrow_and_update();
            let views = client.views().await?;
            let seeds = views.iter().filter(|view| view.status == Status::Seeding);
            if seeds.count() >= active {
                return Ok::<_, Failure>(());
            }
            changes.changed().await?;
            // Looking takes the daemon's time, too.
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    };
    tokio::time::timeout(PATIENCE, seeding).await??;
    let serves = began.elapsed();
    let asked = Instant::now();
    client.views().await?;
    let listed = asked.elapsed();
    let own = std::process::id();
    let taken = tokio::task::spawn_blocking(move || Taken::at_rest(own, [read, serves, listed]));
    let taken = taken.await??;
    stop.cancel();
    task.await?;
    Ok(taken)
}
