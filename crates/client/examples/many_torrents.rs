//! What many torrents cost a daemon: time until it serves, memory, processor time at rest.
//!
//! `cargo run --release -p hawser-client --example many_torrents [TORRENTS] [ACTIVE]`, by default 10,000 and
//! 100. Each torrent is a complete file of 16 KiB, in a temporary folder; no peer is found. It runs twice: at
//! first all content is hashed, then nothing has changed.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hawser_client::{
    Announcement, Bounds, Client, Dates, Engine, Limit, Origin, Record, Settings, StateFolder,
    Status, Totals,
};
use hawser_discovery::PeerFinder;
use hawser_torrent::{CreateOptions, Listener, Metainfo, Network, create};
use tokio_util::sync::CancellationToken;

/// Bytes of the content of each torrent.
const SIZE: usize = 16 << 10;
/// How long the daemon is watched at rest.
const REST: Duration = Duration::from_secs(10);
/// Time between two looks at the torrents.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait for the torrents to seed.
const PATIENCE: Duration = Duration::from_secs(600);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let count = numbers.next().transpose()?.unwrap_or(10_000);
    let active = numbers.next().transpose()?.unwrap_or(100);
    let dir = tempfile::tempdir()?;
    fill(dir.path(), count)?;
    println!("{count} torrents, {active} active");
    for title in ["all hashed", "nothing changed"] {
        println!("{title}: {}", run(dir.path(), active.min(count)).await?);
    }
    Ok(())
}

/// Writes the records of torrents that are complete, and their content.
fn fill(dir: &Path, count: usize) -> Result<(), Failure> {
    let (state, ..) = StateFolder::open(&dir.join("state"))?;
    let downloads = dir.join("downloads");
    fs::create_dir(&downloads)?;
    for number in 0..count {
        let path = downloads.join(format!("{number}.bin"));
        let content = number.to_le_bytes().repeat(SIZE / size_of::<usize>());
        fs::write(&path, &content)?;
        let bytes = create(&path, &CreateOptions::default(), |_, _| {})?;
        let metainfo = Metainfo::parse(&bytes)?;
        let info_hash = metainfo.info_hash;
        state.save_metainfo(info_hash, &bytes)?;
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
            },
            totals: Totals::default(),
            pending: None,
            rechecks: false,
            announcement: Announcement::None,
        })?;
    }
    Ok(())
}

/// Runs a daemon until it is at rest, and says what it took.
async fn run(dir: &Path, active: usize) -> Result<String, Failure> {
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
    let before = processor_time()?;
    tokio::time::sleep(REST).await;
    let busy = processor_time()? - before;
    let report = format!(
        "records read after {:.2} s, all serve after {:.2} s, listed in {:.1} ms; {} MiB of memory, {} open \
         files, {:.2} % of a processor at rest",
        read.as_secs_f64(),
        serves.as_secs_f64(),
        listed.as_secs_f64() * 1e3,
        status("VmRSS")? / 1024,
        fs::read_dir("/proc/self/fd")?.count(),
        100.0 * busy.as_secs_f64() / REST.as_secs_f64(),
    );
    stop.cancel();
    task.await?;
    Ok(report)
}

/// A number of `/proc/self/status`.
fn status(name: &str) -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/self/status")?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines
        .find(|(key, _)| *key == name)
        .ok_or("no such number")?;
    let digits = value.split_whitespace().next().ok_or("no number")?;
    Ok(digits.parse()?)
}

/// Time that this process has had of processors, in user and system mode (proc(5), in ticks of 10 ms).
fn processor_time() -> Result<Duration, Failure> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = text.rsplit_once(')').ok_or("no name")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .ok_or("no field")?
            .parse::<u64>()
            .map_err(Failure::from)
    };
    Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}
