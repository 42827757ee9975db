//! Paths that go down, freeze, and come back.

use tokio::sync::watch;

use super::*;
use crate::testing::{State, TestPath};
use crate::{PathState, Progress};

/// Waits until the progress is so.
async fn until(progress: &mut watch::Receiver<Progress>, so: impl Fn(&Progress) -> bool) {
    let waiting = progress.wait_for(|progress| so(progress));
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.expect("it never comes to that").unwrap();
}

fn state(progress: &Progress, path: &TestPath) -> Option<PathState> {
    let mut paths = progress.paths.iter();
    let path = paths.find(|p| p.fingerprint == path.fingerprint())?;
    Some(path.state)
}

fn bytes(progress: &Progress, path: &TestPath) -> u64 {
    let mut paths = progress.paths.iter();
    let path = paths.find(|p| p.fingerprint == path.fingerprint());
    path.map_or(0, |path| path.bytes)
}

/// A download over two paths of 16 Mbit/s, of 6 MB: 1.5 s when both work all the time.
async fn over_two() -> (Net, Stage, Seed, [TestPath; 2], Download) {
    let net = Net::default();
    let stage = Stage::one_file(6_000_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    let paths = [net.path(1, mbit(16.0, 5)), net.path(1, mbit(16.0, 5))];
    let download = stage.download(&net.host(0), &[1]);
    (net, stage, seed, paths, download)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_goes_down_and_comes_back() {
    let (net, stage, _seed, [one, two], download) = over_two().await;
    let mut progress = download.progress();
    until(&mut progress, |p| {
        bytes(p, &one) > 500_000 && bytes(p, &two) > 500_000
    })
    .await;
    net.set(&one, State::Down);
    until(&mut progress, |p| state(p, &one) != Some(PathState::Active)).await;
    let before = progress.borrow().clone();
    until(&mut progress, |p| {
        bytes(p, &two) > bytes(&before, &two) + 300_000
    })
    .await;
    net.set(&one, State::Up);
    until(&mut progress, |p| {
        bytes(p, &one) > bytes(&before, &one) + 300_000
    })
    .await;
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_freezes_and_thaws() {
    let (net, stage, _seed, [one, two], download) = over_two().await;
    let mut progress = download.progress();
    until(&mut progress, |p| {
        bytes(p, &one) > 200_000 && bytes(p, &two) > 200_000
    })
    .await;
    net.set(&one, State::Frozen);
    until(&mut progress, |p| {
        state(p, &one) == Some(PathState::Stalled)
    })
    .await;
    let before = progress.borrow().clone();
    net.set(&one, State::Up);
    until(&mut progress, |p| bytes(p, &one) > bytes(&before, &one)).await;
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_over_a_frozen_path_comes_over_the_other() {
    let (net, stage, _seed, [one, two], download) = over_two().await;
    let mut progress = download.progress();
    until(&mut progress, |p| {
        bytes(p, &one) > 200_000 && bytes(p, &two) > 200_000
    })
    .await;
    net.set(&one, State::Frozen);
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_paths_go_down_and_one_comes_back() {
    let (net, stage, _seed, [one, two], download) = over_two().await;
    let mut progress = download.progress();
    until(&mut progress, |p| p.fetched_bytes > 500_000).await;
    net.set(&one, State::Down);
    net.set(&two, State::Down);
    until(&mut progress, |p| state(p, &one) != Some(PathState::Active)).await;
    net.set(&two, State::Up);
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_cannot_be_dialed_is_replaced() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    let paths = [net.path(1, mbit(16.0, 5)), net.path(1, mbit(16.0, 5))];
    // One path is to be used; that one fails without being withdrawn.
    let options = || DownloadOptions::new().with_paths(1);
    let download = stage.download_with(&net.host(0), &[1], options());
    let mut progress = download.progress();
    until(&mut progress, |p| p.fetched_bytes > 100_000).await;
    let used = paths
        .iter()
        .find(|path| bytes(&progress.borrow(), path) > 0)
        .unwrap();
    net.set(used, State::Frozen);
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_paths_are_used_than_asked_for() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    (0..5).for_each(|_| {
        net.path(1, FAST);
    });
    let options = DownloadOptions::new().with_paths(2);
    let download = stage.download_with(&net.host(0), &[1], options);
    let progress = download.progress();
    let summary = finish(download).await.unwrap();
    assert!(summary.paths.len() <= 2);
    let last = progress.borrow().clone();
    assert_eq!(last.paths.len(), 5);
    let left = last
        .paths
        .iter()
        .filter(|path| path.state == PathState::Left);
    assert_eq!(left.count(), 3);
    assert!(last.paths.iter().all(|path| path.decision.is_some()));
    let dialed: HashSet<_> = net.dials().into_iter().collect();
    assert_eq!(dialed.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_that_comes_back_is_found_again() {
    let (net, stage, seed, _, download) = over_two().await;
    let mut progress = download.progress();
    until(&mut progress, |p| p.fetched_bytes > 500_000).await;
    net.remove_host(1);
    seed.stop().await.unwrap();
    until(&mut progress, |p| {
        p.paths
            .iter()
            .all(|p| p.state == PathState::Waiting && p.last_error.is_some())
    })
    .await;
    let _seed = stage.seed(&net.host(1)).await;
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_too_narrow_is_left_and_never_dialed() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    let narrow = net.narrow_path(1);
    let wide = net.path(1, FAST);
    let download = stage.download(&net.host(0), &[1]);
    let progress = download.progress();
    finish(download).await.unwrap();
    stage.check();
    let paths = &progress.borrow().paths;
    let of = |path: &TestPath| {
        let mut paths = paths.iter();
        paths.find(|p| p.fingerprint == path.fingerprint()).unwrap()
    };
    assert_eq!(of(&narrow).state, PathState::Left);
    let decision = of(&narrow).decision.clone().unwrap();
    assert_eq!(decision.to_string(), "left: the path is too narrow");
    assert_eq!(net.dials(), [(addr(1), wide.fingerprint())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_paths_too_narrow_are_no_paths() {
    let net = Net::default();
    let stage = Stage::one_file(1_000, 16384);
    net.narrow_path(1);
    let error = finish(stage.download(&net.host(0), &[1])).await;
    let error = error.unwrap_err();
    assert!(matches!(error, DownloadError::NoPath { .. }), "{error}");
    assert!(error.to_string().contains("too narrow"), "{error}");
    assert_eq!(net.dials(), []);
}
