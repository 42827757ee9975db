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
    of_all(|from, to| wait_pair(ask, from, to, None))
}

/// Waits until all pairs of ASes have the paths that are expected, all of them alive.
pub fn wait_same(expected: &Paths, ask: Ask<'_>) {
    let all = of_all(|from, to| {
        let pair = (from.to_owned(), to.to_owned());
        wait_pair(ask, from, to, Some(&expected[&pair]))
    });
    assert_eq!(all.len(), 20 * 19);
}

/// The paths of all pairs of ASes, some of which are asked for at once.
fn of_all(of_pair: impl Fn(&str, &str) -> BTreeSet<String> + Sync) -> Paths {
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
                        let paths = of_pair(from, to);
                        let pair = (from.clone(), to.clone());
                        found.lock().unwrap().insert(pair, paths);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// Waits until there are paths between two ASes, those that are expected if they are known, and all are
/// alive. A control service withholds paths for a while whose links were reported to be down.
pub fn wait_pair(
    ask: Ask<'_>,
    from: &str,
    to: &str,
    expected: Option<&BTreeSet<String>>,
) -> BTreeSet<String> {
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
            let found = sequences.map(str::to_owned).collect();
            if expected.is_none_or(|expected| *expected == found) {
                return found;
            }
        }
        assert!(
            Instant::now() < deadline,
            "{from} to {to}: {}",
            what_differs(&output, paths, expected)
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// What a listing of paths has that is not expected, in few lines: logs of tests leave out long ones.
fn what_differs(output: &Output, paths: &[Value], expected: Option<&BTreeSet<String>>) -> String {
    let sequence = |path: &Value| path["sequence"].as_str().unwrap_or_default().to_owned();
    let found: BTreeSet<String> = paths.iter().map(sequence).collect();
    let of = |which: &mut dyn Iterator<Item = String>| which.collect::<Vec<_>>().join("\n  ");
    let not_alive = paths.iter().filter(|path| path["status"] != "alive");
    let not_alive = of(&mut not_alive.map(|path| format!("{} {}", path["status"], sequence(path))));
    let none = BTreeSet::new();
    let expected = expected.unwrap_or(&none);
    format!(
        "{} of {} paths ({}, {})\nnot alive:\n  {not_alive}\nmissing:\n  {}\nnot expected:\n  {}",
        found.len(),
        expected.len(),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim(),
        of(&mut expected.difference(&found).cloned()),
        of(&mut found.difference(expected).cloned()),
    )
}
