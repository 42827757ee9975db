//! Transfers that end before their time.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use super::*;

/// A file of the source: length in bytes, and whether it has a directory of its own.
type Shape = (u64, bool);

/// What a transfer does before it is killed.
#[derive(Debug, Clone)]
struct Run {
    /// Which of the missing ranges are written, in which order.
    written: Vec<prop::sample::Index>,
    /// Bytes that a write which was under way has left in a part file: which one, where.
    torn: Option<(prop::sample::Index, prop::sample::Index)>,
    /// The source changes a file: which one, where.
    changed: Option<(prop::sample::Index, prop::sample::Index)>,
}

fn any_run() -> impl Strategy<Value = Run> {
    let index = any::<prop::sample::Index>;
    let pair = || prop::option::weighted(0.3, (index(), index()));
    let written = proptest::collection::vec(index(), 0..10);
    (written, pair(), pair()).prop_map(|(written, torn, changed)| Run {
        written,
        torn,
        changed,
    })
}

fn part_files(folder: &Path) -> Vec<PathBuf> {
    let paths = list(folder).into_iter().map(|(path, ..)| folder.join(path));
    let is_part = |path: &PathBuf| path.as_os_str().as_bytes().ends_with(PART_SUFFIX);
    paths.filter(is_part).collect()
}

/// Overwrites some bytes of a file without changing its time to one seen before.
fn damage(path: &Path, at: prop::sample::Index) -> u64 {
    let file = fs::File::options().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    let at = at.index(length as usize) as u64;
    file.write_all_at(&bytes(32.min(length - at), at), at)
        .unwrap();
    at
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Killed at any point, with writes torn and the source changed in between: what was written is
    /// not sent again, and in the end everything is as at the source.
    #[test]
    fn what_was_written_is_not_sent_again(
        shapes in proptest::collection::vec((prop_oneof![0u64..3000, 0..5 * RANGE], any::<bool>()), 1..7),
        old in proptest::collection::vec(any::<bool>(), 7),
        runs in proptest::collection::vec(any_run(), 1..5),
    ) {
        let hosts = Hosts::new();
        fs::create_dir_all(hosts.to("")).unwrap();
        let name = |index: usize, (_, own): &Shape| match own {
            true => format!("{index}/file"),
            false => format!("{index}"),
        };
        for (index, shape) in shapes.iter().enumerate() {
            if shape.1 {
                fs::create_dir(hosts.from(&index.to_string())).unwrap();
                fs::create_dir(hosts.to(&index.to_string())).unwrap();
            }
            let mut content = bytes(shape.0, index as u64);
            fs::write(hosts.from(&name(index, shape)), &content).unwrap();
            if old[index] && !content.is_empty() {
                // An earlier version.
                let middle = content.len() / 2;
                content[middle] ^= 1;
                fs::write(hosts.to(&name(index, shape)), &content).unwrap();
            }
        }
        let mut confirmed = BTreeSet::new();
        for run in runs {
            let source = hosts.source();
            let landing = hosts.landing(&source);
            let mut missing = keep(&source, &landing);
            prop_assert!(missing.iter().all(|range| !confirmed.contains(range)), "{missing:?}, {confirmed:?}");
            confirmed = (0..tree::count(source.manifest().length())).collect();
            for at in run.written {
                if !missing.is_empty() {
                    let range = missing.swap_remove(at.index(missing.len()));
                    send(&source, &landing, vec![range]);
                }
            }
            for range in missing {
                confirmed.remove(&range);
            }
            drop(landing);
            // Damage goes beyond what a kill does: it may hit ranges that were confirmed.
            let parts = part_files(&hosts.to(""));
            if let Some((which, at)) = run.torn && !parts.is_empty() {
                damage(&parts[which.index(parts.len())], at);
                confirmed.clear();
            }
            if let Some((which, at)) = run.changed {
                let index = which.index(shapes.len());
                if shapes[index].0 > 0 {
                    damage(&hosts.from(&name(index, &shapes[index])), at);
                    confirmed.clear();
                }
            }
        }
        hosts.transfer();
        prop_assert!(hosts.transfer().is_empty());
    }
}

#[test]
fn a_transfer_of_many_threads_is_resumed() {
    let hosts = Hosts::new();
    for file in 0..40 {
        fs::write(hosts.from(&file.to_string()), bytes(file * 100_000, file)).unwrap();
    }
    let write = |ranges: Vec<u64>, source: &Source, landing: &Landing| {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mine = ranges
                    .iter()
                    .copied()
                    .filter(move |range| range % 4 == thread);
                let mine: Vec<u64> = mine.collect();
                scope.spawn(move || send(source, landing, mine));
            }
        });
    };
    let source = hosts.source();
    let count = tree::count(source.manifest().length());
    let landing = hosts.landing(&source);
    write(
        (0..count).filter(|range| range % 3 > 0).collect(),
        &source,
        &landing,
    );
    drop(landing);
    let landing = hosts.landing(&source);
    let missing = keep(&source, &landing);
    assert_eq!(missing, (0..count).step_by(3).collect::<Vec<_>>());
    write(missing, &source, &landing);
    landing.complete().unwrap();
    hosts.compare();
}

/// More unfinished files than may be open.
#[test]
fn unfinished_files_are_closed_when_there_are_many() {
    let hosts = Hosts::new();
    let count = 600;
    for file in 0..count {
        // Each begins in one range and ends in the next one.
        let path = hosts.from(&format!("{file:04}"));
        let sparse = fs::File::create(path).unwrap();
        sparse.set_len(RANGE).unwrap();
        let offset = if file == 0 { RANGE / 2 } else { 0 };
        sparse
            .write_all_at(&bytes(RANGE - offset, file), offset)
            .unwrap();
    }
    let source = hosts.source();
    let ranges = tree::count(source.manifest().length());
    assert_eq!(ranges, count);
    let landing = hosts.landing(&source);
    let (even, odd) = (0..ranges).partition(|range| range % 2 == 0);
    // All files are unfinished then.
    send(&source, &landing, even);
    let open = fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open < 1000, "{open} open files");
    send(&source, &landing, odd);
    landing.complete().unwrap();
    hosts.compare();
}

#[test]
fn a_range_is_written_again_after_a_failure() {
    let hosts = Hosts::new();
    fs::write(hosts.from("a"), bytes(RANGE + 500, 1)).unwrap();
    fs::create_dir(hosts.from("b")).unwrap();
    fs::write(hosts.from("b/c"), bytes(500, 2)).unwrap();
    let source = hosts.source();
    let landing = hosts.landing(&source);
    send(&source, &landing, vec![0]);
    // The second range completes "a", but "b/c" cannot be written.
    let last = range_of(&source, 1);
    fs::remove_dir(hosts.to("b")).unwrap();
    fs::write(hosts.to("b"), "in the way").unwrap();
    let error = landing.write_range(1, &last).unwrap_err().to_string();
    assert!(error.contains("to/b"), "{error}");
    assert_eq!(landing.missing(), last.len() as u64);
    fs::remove_file(hosts.to("b")).unwrap();
    fs::create_dir(hosts.to("b")).unwrap();
    landing.write_range(1, &last).unwrap();
    landing.complete().unwrap();
    hosts.compare();
}

/// The folder of the hosts of [`writes_until_it_is_killed`].
const FOLDER: &str = "HAWSER_TEST_FOLDER";

/// Run by [`nothing_confirmed_is_lost_by_a_kill`] in a process of its own.
#[test]
#[ignore = "it is one part of another test"]
fn writes_until_it_is_killed() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let source = Source::open(scan(&[folder.join("from/data/")], ScanOptions::default()).unwrap());
    let manifest = Arc::clone(source.manifest());
    let options = LandingOptions::default();
    let landing = Landing::prepare(manifest, &folder.join("to"), options).unwrap();
    let missing = keep(&source, &landing);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let mine = missing.iter().skip(thread).step_by(3);
            let (source, landing) = (&source, &landing);
            scope.spawn(move || {
                for range in mine {
                    // One byte allows one write.
                    std::io::stdin().read_exact(&mut [0]).unwrap();
                    landing
                        .write_range(*range, &range_of(source, *range))
                        .unwrap();
                    println!("confirmed {range}");
                }
            });
        }
    });
    landing.complete().unwrap();
    println!("complete");
}

/// A real process, killed in the middle of its writes.
#[test]
fn nothing_confirmed_is_lost_by_a_kill() {
    let hosts = Hosts::new();
    for file in 0..30 {
        fs::write(hosts.from(&file.to_string()), bytes(file * 90_000, file)).unwrap();
    }
    let mut confirmed = BTreeSet::new();
    for writes in [1, 3, 2, 5, 1000] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .arg("content::landing::tests::resume::writes_until_it_is_killed")
            .env(FOLDER, hosts.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Two more than are waited for, so that the other threads write when it is killed.
        let mut input = child.stdin.take().unwrap();
        input.write_all(&vec![0; writes + 2]).unwrap();
        let mut is_complete = false;
        let mut sent = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            is_complete |= line == "complete";
            // The harness prints before the first one on the same line. What is printed until the
            // end was confirmed, too.
            if let Some((_, range)) = line.split_once("confirmed ") {
                sent.push(range.parse::<u64>().unwrap());
                if sent.len() == writes {
                    child.kill().unwrap();
                }
            }
        }
        child.wait().unwrap();
        assert_eq!(is_complete, writes == 1000);
        for range in sent {
            assert!(confirmed.insert(range), "range {range} was sent again");
        }
    }
    // The others were written, but the process was killed before it confirmed them.
    assert!(confirmed.len() >= 1 + 3 + 2 + 5);
    hosts.compare();
}
