//! The paths between all pairs of ASes, compared.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How many ASes are asked at once.
const THREADS: usize = 4;
/// Longest wait for the paths of a pair.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// The paths of each pair of ASes, each as the interfaces on it.
pub type Paths = BTreeMap<(String, String), BTreeSet<String>>;

/// Runs a hawser command in an AS.
pub type Ask<'a> = &'a (dyn Fn(&str, &[&str]) -> Output + Sync);

/// Waits until there are paths between all pairs of ASes, and all of them are alive.
pub fn wait_paths(ask: Ask<'_>) -> Paths {
    let ases: Vec<String> = super::names().into_keys().collect();
    let left = Mutex::new(ases.iter());
    let found = Mutex::new(Paths::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(from) = left.lock().unwrap().next() else {
                        return;
                    };
                    for to in ases.iter().filter(|to| *to != from) {
                        let paths = wait_pair(ask, from, to);
                        let pair = (from.clone(), to.clone());
                        found.lock().unwrap().insert(pair, paths);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// Waits until there are paths between two ASes, and all are alive.
pub fn wait_pair(ask: Ask<'_>, from: &str, to: &str) -> BTreeSet<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = ask(
            from,
            &["paths", to, "-m", "0", "--timeout", "60s", "--json"],
        );
        let listing: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let paths = listing["paths"].as_array().map_or(&[][..], Vec::as_slice);
        if !paths.is_empty() && paths.iter().all(|path| path["status"] == "alive") {
            let sequences = paths.iter().map(|path| path["sequence"].as_str().unwrap());
            return sequences.map(str::to_owned).collect();
        }
        assert!(Instant::now() < deadline, "{from} to {to}: {output:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Asserts that all pairs have the paths that are expected.
pub fn assert_same(expected: &Paths, found: &Paths) {
    assert_eq!(found.len(), 20 * 19);
    for (pair, paths) in expected {
        assert_eq!(&found[pair], paths, "from {} to {}", pair.0, pair.1);
    }
}
