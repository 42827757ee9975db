//! Pods that are deleted and updated while their network runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::compare::{Paths, wait_pair};
use super::pods::Pods;
use super::{Machines, names};
use crate::content::Content;
use crate::support::eventually;

/// An AS in the middle, with a child that has two parents.
const MOVES: &str = "1-ff00:0:120";
/// Two ASes with two paths that share no AS between them, and ASes of which each is on one of the paths.
const ENDS: [&str; 2] = ["2-ff00:0:223", "2-ff00:0:210"];
const ON_PATHS: [&str; 2] = ["2-ff00:0:211", "2-ff00:0:221"];
/// The same of the other ISD, for the time in which the first two are updated.
const OTHER_ENDS: [&str; 2] = ["1-ff00:0:111", "1-ff00:0:130"];
const ON_OTHER_PATHS: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:120"];
/// Bytes of which most are content.
const CONTENT: u64 = 200_000;
/// So that a download takes longer than an update.
const LIMIT: &str = "4mbit";

/// Waits until a pod has all its paths, in both directions.
fn wait_back(machines: &Machines, isd_as: &str, expected: &Paths) {
    let ask = |from: &str, args: &[&str]| machines[from].hawser(args);
    for ((from, to), paths) in expected {
        if from == isd_as || to == isd_as {
            wait_pair(&ask, from, to, Some(paths));
        }
    }
}

/// A pod is deleted, and started again at another address: its neighbours find it.
pub fn a_pod_comes_back_at_another_address(pods: &Pods, machines: &mut Machines, expected: &Paths) {
    let name = &names()[MOVES];
    let before = pods.address(name);
    pods.remove(name);
    let begun = Instant::now();
    pods.play(name);
    assert_ne!(pods.address(name), before);
    machines.insert(MOVES.to_owned(), pods.machine(name));
    wait_back(machines, MOVES, expected);
    println!(
        "a pod at another address had all its paths after {:.1} s",
        begun.elapsed().as_secs_f64()
    );
}

/// Pods get another image, one after the other, each once the one before has its paths again, while downloads
/// run over two paths: all of them, or those on the paths. Each download is complete in the end.
pub fn images_are_updated_while_transfers_run(
    pods: &Pods,
    machines: &mut Machines,
    expected: &Paths,
) {
    pods.update("next");
    let begun = Instant::now();
    let all = names().into_keys().filter(|one| {
        let on_paths = [ENDS, ON_PATHS].concat();
        super::is_slow() || on_paths.contains(&one.as_str())
    });
    let (ends, others): (Vec<String>, Vec<String>) =
        all.partition(|one| ENDS.contains(&one.as_str()));
    let count = ends.len() + others.len();
    let mut transfers = 0;
    for (between, on_paths, updated) in [
        (ENDS, ON_PATHS, &others),
        (OTHER_ENDS, ON_OTHER_PATHS, &ends),
    ] {
        transfers += update_during(pods, machines, expected, (between, on_paths), updated);
    }
    println!(
        "{count} pods had another image after {:.1} s, in which {transfers} downloads were completed",
        begun.elapsed().as_secs_f64()
    );
}

/// Gives pods another image while downloads run between two others. Returns how many were completed.
fn update_during(
    pods: &Pods,
    machines: &mut Machines,
    expected: &Paths,
    ([from, to], on_paths): ([&str; 2], [&str; 2]),
    updated: &[String],
) -> usize {
    let names = names();
    let content = Content::new();
    let (_seeder, peer) = content.seed(|args| machines[from].command(args));
    let received = |machines: &Machines| on_paths.map(|one| machines[one].received());
    let before = received(machines);
    let here = machines.remove(to).unwrap();
    let is_done = AtomicBool::new(false);
    let paths = thread::scope(|scope| {
        let downloads = scope.spawn(|| {
            let mut paths = Vec::new();
            while paths.is_empty() || !is_done.load(Ordering::Relaxed) {
                let start = |args: &[&str]| here.command(&[args, &["--limit", LIMIT]].concat());
                paths.push(content.get(start, &peer));
            }
            paths
        });
        // Downloads end also if this fails.
        let done = SetAtEnd(&is_done);
        eventually("content comes over both paths", || {
            let now = received(machines).into_iter().zip(before);
            now.into_iter().all(|(now, before)| now > before + CONTENT)
        });
        for isd_as in updated {
            let name = &names[isd_as];
            pods.play(name);
            assert_eq!(pods.image(name), "localhost/hawser:next");
            let machine = pods.machine(name);
            let ask = |_: &str, args: &[&str]| machine.hawser(args);
            for end in [from, to] {
                let pair = (isd_as.clone(), end.to_owned());
                wait_pair(&ask, isd_as, end, Some(&expected[&pair]));
            }
            machines.insert(isd_as.clone(), machine);
        }
        drop(done);
        downloads.join().unwrap()
    });
    machines.insert(to.to_owned(), here);
    // A path that takes the place of one that has failed counts, too.
    assert!(paths.iter().all(|paths| *paths >= 2), "{paths:?}");
    paths.len()
}

/// Sets the flag at the end, also if that is a panic.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
