//! Whole transfers between engines, over pipes.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

mod choking;
mod clients;
mod content;
mod crowds;
mod disk;
mod faults;
mod found;
mod hostile;
mod limits;
mod networks;
mod padded;
mod peer_limit;
mod policy;
mod reporting;
mod resume;
mod revealing;
mod seeding;
mod selecting;
mod sensing;
mod shares;
mod two;
mod uploads;
mod weigh;

use super::*;
use crate::testing::{FAST, Host, Net, addr, mbit};
use crate::{
    CreateOptions, Download, DownloadError, DownloadOptions, PathOptions, Progress, Seed,
    SeedOptions, SelectBy, Summary, create,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Content of a seeder, and a folder to download to.
struct Stage {
    dir: TempDir,
    metainfo: Metainfo,
}

impl Stage {
    fn new(files: &[(&str, usize)], piece_length: u32) -> Self {
        Self::filled(files, piece_length, |bytes| {
            fastrand::Rng::new().fill(bytes)
        })
    }

    fn zeros(length: usize, piece_length: u32) -> Self {
        Self::filled(&[("file.bin", length)], piece_length, |_| {})
    }

    fn filled(files: &[(&str, usize)], piece_length: u32, fill: impl Fn(&mut [u8])) -> Self {
        let options = CreateOptions {
            piece_length: piece_length.into(),
            ..CreateOptions::default()
        };
        Self::made(files, &options, fill)
    }

    fn made(files: &[(&str, usize)], options: &CreateOptions, fill: impl Fn(&mut [u8])) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, length) in files {
            let path = dir.path().join("seed").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut bytes = vec![0u8; *length];
            fill(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
        let top = Path::new(files[0].0).components().next().unwrap();
        let content = dir.path().join("seed").join(top);
        let torrent = create(&content, options, |_, _| {}).unwrap();
        Self {
            metainfo: Metainfo::parse(&torrent).unwrap(),
            dir,
        }
    }

    fn one_file(length: usize, piece_length: u32) -> Self {
        Self::new(&[("file.bin", length)], piece_length)
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("get")
    }

    async fn seed(&self, host: &Host) -> Seed {
        let content = self.dir.path().join("seed").join(&self.metainfo.name);
        let options = SeedOptions::default();
        Seed::over(
            host.clone(),
            self.metainfo.clone(),
            content,
            options,
            |_, _| {},
        )
        .await
        .unwrap()
    }

    fn download(&self, host: &Host, peers: &[u16]) -> Download {
        self.download_with(host, peers, DownloadOptions::default())
    }

    fn download_with(&self, host: &Host, peers: &[u16], options: DownloadOptions) -> Download {
        let peers = peers.iter().map(|n| addr(*n)).collect();
        Download::over(
            host.clone(),
            self.metainfo.clone(),
            self.target(),
            peers,
            options,
        )
    }

    /// Checks that every file was fetched and equals the original.
    fn check(&self) {
        let files = self.metainfo.files.iter();
        for file in files.filter(|file| !file.padding) {
            let read = |dir: &str| fs::read(self.dir.path().join(dir).join(&file.path)).unwrap();
            assert!(
                read("seed") == read("get"),
                "{} differs",
                file.path.display()
            );
        }
    }
}

/// The default options, with path options changed.
fn with_paths(change: impl FnOnce(&mut PathOptions)) -> DownloadOptions {
    let mut options = DownloadOptions::default();
    change(&mut options.paths);
    options
}

/// The default options, with paths chosen by `side`.
fn selected_by(side: SelectBy) -> DownloadOptions {
    DownloadOptions {
        select_by: side,
        ..DownloadOptions::default()
    }
}

/// The default options, with this time after which a download gives up.
fn giving_up_after(time: Duration) -> DownloadOptions {
    DownloadOptions {
        give_up_after: time,
        ..DownloadOptions::default()
    }
}

async fn finish(download: Download) -> Result<Summary, DownloadError> {
    tokio::time::timeout(PATIENCE, download.wait())
        .await
        .expect("the download hangs")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_crosses_two_paths() {
    let net = Net::default();
    let stage = Stage::one_file(5_000_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    net.path(1, FAST);
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    assert_eq!(summary.fetched_bytes, 5_000_000);
    assert_eq!(summary.resumed_bytes, 0);
    let carried: u64 = summary.paths.iter().map(|path| path.bytes).sum();
    assert_eq!(carried, 5_000_000 + summary.wasted_bytes);
    seed.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_blocks_may_be_under_way_from_peers_they_are_requested_from() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    // Not from the downloader, of which the seeder wants nothing.
    assert_eq!(net.expecting(), [addr(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_folder_are_fetched_across_piece_boundaries() {
    let net = Net::default();
    let stage = Stage::new(
        &[
            ("set/a", 100_000),
            ("set/empty", 0),
            ("set/sub/b", 1),
            ("set/sub/c", 70_000),
            ("set/z", 16384),
        ],
        32768,
    );
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn leechers_serve_what_they_have() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 32768);
    let (left, right) = (net.host(1), net.host(2));
    net.path(1, FAST);
    net.path(2, FAST);
    let whole = fs::read(stage.dir.path().join("seed/file.bin")).unwrap();
    let half = |folder: &str, range: std::ops::Range<usize>| {
        let mut bytes = vec![0; whole.len()];
        bytes[range.clone()].copy_from_slice(&whole[range]);
        let dir = stage.dir.path().join(folder);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file.bin"), bytes).unwrap();
        dir
    };
    let start = |host: &Host, dir, peer| {
        let options = DownloadOptions::default();
        let peers = vec![addr(peer)];
        Download::over(host.clone(), stage.metainfo.clone(), dir, peers, options)
    };
    let one = start(&left, half("one", 0..1_000_000), 2);
    let two = start(&right, half("two", 900_000..2_000_000), 1);
    // The first to finish leaves, perhaps before the other has everything.
    let (summary, dir) = tokio::select! {
        summary = finish(one) => (summary.unwrap(), "one"),
        summary = finish(two) => (summary.unwrap(), "two"),
    };
    assert!(summary.fetched_bytes > 0 && summary.resumed_bytes > 0);
    let got = fs::read(stage.dir.path().join(dir).join("file.bin")).unwrap();
    assert!(got == whole);
}

/// Not a test but a measurement: `cargo test -p hawser-torrent unequal -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, to be read by people"]
async fn goodput_over_unequal_paths() {
    for (rates, delays, size) in [
        ([10.0, 20.0], [5, 5], 30_000_000),
        ([10.0, 20.0], [5, 5], 5_000_000),
        ([10.0, 20.0], [5, 60], 30_000_000),
        ([1.0, 20.0], [5, 5], 10_000_000),
        ([300.0, 300.0], [1, 1], 300_000_000),
    ] {
        let net = Net::default();
        let piece_length = (size / 1500usize).next_power_of_two().max(16384);
        let stage = Stage::one_file(size, piece_length as u32);
        let _seed = stage.seed(&net.host(1)).await;
        for (rate, delay) in rates.into_iter().zip(delays) {
            net.path(1, mbit(rate, delay));
        }
        let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
        let seconds = summary.download_time.as_secs_f64();
        let ceiling = rates.iter().sum::<f64>() * 1e6 / 8.0;
        let part = size as f64 / seconds / ceiling * 100.0;
        let bytes: Vec<u64> = summary.paths.iter().map(|path| path.bytes).collect();
        println!(
            "{rates:?} Mbit/s, {delays:?} ms, {size} bytes: {seconds:.3} s, {part:.1} % of the \
             ceiling, {} wasted, {bytes:?}",
            summary.wasted_bytes
        );
    }
}

/// Not a test but a measurement, in an optimised build: `cargo test --release -p hawser-torrent --
/// --ignored --nocapture gigabytes`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, to be read by people"]
async fn several_gigabytes_over_a_pipe() {
    let size = 4usize << 30;
    let net = Net::default();
    // Zeros would suffice on the wire, but not to show that holes do not count as content.
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    fs::create_dir(dir.path().join("seed")).unwrap();
    let content = dir.path().join("seed/file.bin");
    let mut block = vec![0u8; 1 << 20];
    let mut file = fs::File::create(&content).unwrap();
    for _ in 0..size >> 20 {
        fastrand::Rng::new().fill(&mut block[..]);
        std::io::Write::write_all(&mut file, &block).unwrap();
    }
    let begun = Instant::now();
    let torrent = create(&content, &CreateOptions::default(), |_, _| {}).unwrap();
    println!("create {:.2} s", begun.elapsed().as_secs_f64());
    let metainfo = Metainfo::parse(&torrent).unwrap();
    let stage = Stage { dir, metainfo };
    let begun = Instant::now();
    let _seed = stage.seed(&net.host(1)).await;
    println!("verify {:.2} s", begun.elapsed().as_secs_f64());
    net.path(1, FAST);
    let before = processor_seconds();
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    let used = processor_seconds() - before;
    let seconds = summary.download_time.as_secs_f64();
    let rate = size as f64 * 8e-9 / seconds;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    println!(
        "{seconds:.2} s, {rate:.2} Gbit/s, both sides {used:.2} s of processor, {peak}, {} wasted",
        summary.wasted_bytes
    );
}

/// Processor time of this process in seconds, at the usual 100 ticks a second.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum::<f64>()
        / 100.0
}
