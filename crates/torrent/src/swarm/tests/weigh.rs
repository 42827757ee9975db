//! Paths that wait, and paths that are used for sensing.

use hawser_path::Verdict;

use super::*;
use crate::{PathProgress, PathState};

/// Downloads, and passes every path to `look` at each progress report.
async fn watched(download: Download, mut look: impl FnMut(&PathProgress)) -> Summary {
    let mut progress = download.progress();
    let looking = async {
        while progress.changed().await.is_ok() {
            progress
                .borrow_and_update()
                .paths
                .iter()
                .for_each(&mut look);
        }
    };
    let (result, ()) = tokio::join!(finish(download), looking);
    result.unwrap()
}

fn is_waiting(path: &PathProgress) -> bool {
    let decision = path.decision.as_ref();
    decision.is_some_and(|decision| decision.verdict == Verdict::Waiting)
}

#[tokio::test(flavor = "multi_thread")]
async fn unequal_paths_are_both_used_all_the_time() {
    let net = Net::default();
    let stage = Stage::one_file(12_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(30.0, 5));
    net.path(1, mbit(3.0, 100));
    let mut waited = false;
    let download = stage.download(&net.host(0), &[1]);
    let summary = watched(download, |path| waited |= is_waiting(path)).await;
    stage.check();
    assert!(!waited);
    assert_eq!(summary.paths.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_far_below_the_best_waits_connected() {
    let net = Net::default();
    let stage = Stage::one_file(10_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    let best = net.path(1, mbit(30.0, 5));
    let poor = net.path(1, mbit(1.0, 5));
    let options = with_paths(|paths| {
        paths.slots.min_weight = 0.3;
        paths.slots.time_slot = Duration::from_millis(200);
    });
    let mut states = Vec::new();
    let download = stage.download_with(&net.host(0), &[1], options);
    watched(download, |path| {
        if is_waiting(path) {
            states.push((path.fingerprint, path.state));
        }
    })
    .await;
    stage.check();
    assert!(states.contains(&(poor.fingerprint(), PathState::Idle)));
    assert!(states.iter().all(|(path, _)| *path != best.fingerprint()));
    // Each path was dialed once: no connection was closed.
    assert_eq!(net.dials().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_shares_a_link_is_used_only_with_sensing() {
    for sensing in [false, true] {
        let net = Net::default();
        let stage = Stage::one_file(8_000_000, 65536);
        let _seed = stage.seed(&net.host(1)).await;
        net.bridged_path(1, mbit(20.0, 5));
        net.bridged_path(1, mbit(20.0, 5));
        let options = with_paths(|paths| {
            paths.sensing = sensing;
            paths.slots.time_slot = Duration::from_millis(200);
        });
        finish(stage.download_with(&net.host(0), &[1], options))
            .await
            .unwrap();
        stage.check();
        assert_eq!(net.dials().len() > 1, sensing);
    }
}
