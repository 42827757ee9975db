//! Pods that are deleted and updated while their network runs.

use std::thread;
use std::time::Instant;

use super::compare::{Paths, wait_pair};
use super::pods::Pods;
use super::{Machines, names};
use crate::content::Content;
use crate::support::eventually;

/// An AS in the middle, with a child that has two parents.
const MOVES: &str = "1-ff00:0:120";
/// Two ASes with two paths that share no AS between them.
const FROM: &str = "2-ff00:0:223";
const TO: &str = "2-ff00:0:210";
/// The ASes on these paths, and one of each path.
const UPDATED: [&str; 3] = ["2-ff00:0:211", "2-ff00:0:221", "2-ff00:0:220"];
const ON_PATHS: [&str; 2] = ["2-ff00:0:211", "2-ff00:0:221"];
/// Bytes of which most are content.
const CONTENT: u64 = 200_000;
/// So that a download takes some seconds.
const LIMIT: &str = "8mbit";

/// Waits until a pod has all its paths, in both directions.
fn wait_back(machines: &Machines, isd_as: &str, expected: &Paths) {
    let ask = |from: &str, args: &[&str]| machines[from].hawser(args);
    for ((from, to), paths) in expected {
        if from == isd_as || to == isd_as {
            assert_eq!(&wait_pair(&ask, from, to), paths, "from {from} to {to}");
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

/// The pods between two ASes get another image one after the other, each while a download runs over two
/// paths and once all paths are there again after the pod before. Each download is complete in the end.
pub fn images_are_updated_while_transfers_run(
    pods: &Pods,
    machines: &mut Machines,
    expected: &Paths,
) {
    let names = names();
    pods.update("next");
    let content = Content::new();
    let (_seeder, peer) = content.seed(|args| machines[FROM].command(args));
    for isd_as in UPDATED {
        let name = &names[isd_as];
        let received = || ON_PATHS.map(|one| machines[one].received());
        let before = received();
        let paths = thread::scope(|scope| {
            let download = scope.spawn(|| {
                let start = |args: &[&str]| {
                    let limited = [args, &["--limit", LIMIT]].concat();
                    machines[TO].command(&limited)
                };
                content.get(start, &peer)
            });
            eventually("content comes over both paths", || {
                let now = received().into_iter().zip(before);
                now.into_iter().all(|(now, before)| now > before + CONTENT)
            });
            pods.play(name);
            download.join().unwrap()
        });
        // One that takes the place of a path that has failed counts, too.
        assert!(paths >= 2, "{paths} paths while {isd_as} was updated");
        assert_eq!(pods.image(name), "localhost/hawser:next");
        machines.insert(isd_as.to_owned(), pods.machine(name));
        wait_back(machines, isd_as, expected);
    }
}
