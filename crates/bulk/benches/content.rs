//! Measures reading, hashing and writing of content without a network: many small files beside one
//! file of as many bytes.
//!
//! `cargo bench -p hawser-bulk --bench content [-- FILES [BYTES [THREADS]]]`: `FILES` (100,000 by
//! default) of `BYTES` each (4096 by default), by as many threads (2 by default), in the folder for
//! temporary files. Prints the seconds of each step; *again* finds that all is there.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{env, fs};

use hawser_bulk::content::{Landing, LandingOptions, ScanOptions, Source, scan, tree};

fn main() {
    let numbers = env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (files, bytes, threads) = (number(0, 100_000), number(1, 4096), number(2, 2));
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str, files: u64, bytes: u64| {
        for file in 0..files {
            let folder = dir.path().join(name).join((file / 1000).to_string());
            if file % 1000 == 0 {
                fs::create_dir_all(&folder).unwrap();
            }
            let mut content = vec![0; bytes as usize];
            let mut output = blake3::Hasher::new()
                .update(&file.to_be_bytes())
                .finalize_xof();
            output.fill(&mut content);
            fs::write(folder.join(file.to_string()), content).unwrap();
        }
    };
    create("many", files, bytes);
    create("one", 1, files * bytes);
    println!("{files} files of {bytes} bytes, and one of their sum, by {threads} threads; seconds");
    println!(
        "{:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "scan", "hash", "prepare", "write", "complete", "again"
    );
    for round in 0..3 {
        for name in ["many", "one"] {
            // Removing many files would slow down what follows.
            let to = dir.path().join(format!("{name}-{round}"));
            measure(&dir.path().join(name), &to, threads);
        }
    }
}

fn measure(from: &Path, to: &Path, threads: u64) {
    let mut steps = Vec::new();
    let start = Instant::now();
    let mut lap = Instant::now();
    let mut step = || {
        steps.push(lap.elapsed().as_secs_f64());
        lap = Instant::now();
    };
    let source = Source::open(scan(&[from.to_owned()], ScanOptions::default()).unwrap());
    step();
    let total = source.manifest().length();
    let values = on_threads(total, threads, |range, bytes| {
        source.read_at(range * tree::RANGE, bytes).unwrap();
        tree::chaining_value(range, bytes, total)
    });
    step();
    let options = LandingOptions {
        sync: false,
        ..LandingOptions::default()
    };
    let prepare = || {
        let manifest = Arc::clone(source.manifest());
        Landing::prepare(manifest, to, options.clone()).unwrap()
    };
    let landing = prepare();
    step();
    on_threads(total, threads, |range, bytes| {
        source.read_at(range * tree::RANGE, bytes).unwrap();
        landing.write_range(range, bytes).unwrap();
    });
    step();
    landing.complete().unwrap();
    step();
    let mut found = BTreeMap::new();
    prepare()
        .existing(|range, value| found.insert(range, value).is_none())
        .unwrap();
    step();
    assert!(found == values);
    let name = from.file_name().unwrap().display();
    let steps: Vec<String> = steps
        .iter()
        .map(|seconds| format!("{seconds:8.3}"))
        .collect();
    println!(
        "{name:>6} {}   all {:.3}",
        steps.join(" "),
        start.elapsed().as_secs_f64()
    );
}

/// Does `work` for every range, with a buffer of its length.
fn on_threads<T: Send>(
    total: u64,
    threads: u64,
    work: impl Fn(u64, &mut [u8]) -> T + Sync,
) -> BTreeMap<u64, T> {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut results = Vec::new();
        let mut buffer = vec![0; tree::RANGE as usize];
        loop {
            let range = next.fetch_add(1, Ordering::Relaxed);
            let positions = tree::range(range, total);
            if positions.is_empty() {
                return results;
            }
            let bytes = &mut buffer[..(positions.end - positions.start) as usize];
            results.push((range, work(range, bytes)));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    })
}
