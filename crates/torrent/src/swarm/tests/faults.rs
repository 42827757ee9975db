//! Paths that go down, freeze, and come back.

use std::collections::HashSet;

use tokio::sync::watch;

use super::*;
use crate::testing::{Shape, State, TestPath};
use crate::{PathState, Progress};

/// Waits until `so` holds for the progress.
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

/// A seeder, and a download from it.
struct Scene {
    net: Net,
    stage: Stage,
    seed: Seed,
    paths: Vec<TestPath>,
    download: Download,
    progress: watch::Receiver<Progress>,
}

impl Scene {
    /// A download of one file over paths of these shapes.
    async fn new(length: usize, shapes: &[Shape], options: DownloadOptions) -> Self {
        let net = Net::default();
        let stage = Stage::one_file(length, 65536);
        let seed = stage.seed(&net.host(1)).await;
        let paths = shapes.iter().map(|shape| net.path(1, *shape)).collect();
        let download = stage.download_with(&net.host(0), &[1], options);
        Self {
            net,
            stage,
            seed,
            paths,
            progress: download.progress(),
            download,
        }
    }

    /// 6 MB over two paths of 16 Mbit/s: 1.5 s when both work all the time.
    async fn over_two() -> Self {
        Self::new(6_000_000, &[SLOW, SLOW], DownloadOptions::default()).await
    }

    /// Waits until both paths have carried more than `enough` bytes.
    async fn until_both_carried(&mut self, enough: u64) {
        let paths = self.paths.clone();
        self.until(|p| paths.iter().all(|path| bytes(p, path) > enough))
            .await;
    }

    /// Waits until a path has carried more than `more` further bytes.
    async fn until_more(&mut self, path: usize, more: u64) {
        let path = self.paths[path].clone();
        let before = bytes(&self.progress.borrow(), &path);
        self.until(|p| bytes(p, &path) > before + more).await;
    }

    async fn until(&mut self, so: impl Fn(&Progress) -> bool) {
        until(&mut self.progress, so).await;
    }

    fn set(&self, path: usize, state: State) {
        self.net.set(&self.paths[path], state);
    }

    /// Waits until the download is complete.
    async fn end(self) -> Summary {
        let summary = finish(self.download).await.unwrap();
        self.stage.check();
        summary
    }
}

const SLOW: Shape = Shape {
    rate: Some(16_000_000),
    delay: Duration::from_millis(5),
};

#[tokio::test(flavor = "multi_thread")]
async fn a_path_goes_down_and_comes_back() {
    let mut scene = Scene::over_two().await;
    scene.until_both_carried(500_000).await;
    scene.set(0, State::Down);
    let one = scene.paths[0].clone();
    scene
        .until(|p| state(p, &one) != Some(PathState::Active))
        .await;
    scene.until_more(1, 300_000).await;
    scene.set(0, State::Up);
    scene.until_more(0, 300_000).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_freezes_and_thaws() {
    let mut scene = Scene::over_two().await;
    scene.until_both_carried(200_000).await;
    scene.set(0, State::Frozen);
    let one = scene.paths[0].clone();
    scene
        .until(|p| state(p, &one) == Some(PathState::Stalled))
        .await;
    scene.set(0, State::Up);
    scene.until_more(0, 0).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_requested_over_a_frozen_path_arrive_over_the_other() {
    let mut scene = Scene::over_two().await;
    scene.until_both_carried(200_000).await;
    scene.set(0, State::Frozen);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_paths_go_down_and_one_comes_back() {
    let mut scene = Scene::over_two().await;
    scene.until(|p| p.fetched_bytes > 500_000).await;
    scene.set(0, State::Down);
    scene.set(1, State::Down);
    let one = scene.paths[0].clone();
    scene
        .until(|p| state(p, &one) != Some(PathState::Active))
        .await;
    scene.set(1, State::Up);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_cannot_be_dialed_is_replaced() {
    // Only one path may be used; it fails without being withdrawn.
    let options = with_paths(|paths| paths.subflows = 1);
    let mut scene = Scene::new(1_000_000, &[SLOW, SLOW], options).await;
    scene.until(|p| p.fetched_bytes > 100_000).await;
    let carried = |path| bytes(&scene.progress.borrow(), path) > 0;
    let used = scene.paths.iter().position(carried).unwrap();
    scene.set(used, State::Frozen);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_paths_are_used_than_configured() {
    let options = with_paths(|paths| paths.subflows = 2);
    let scene = Scene::new(1_000_000, &[FAST; 5], options).await;
    let (net, progress) = (scene.net.clone(), scene.progress.clone());
    let summary = scene.end().await;
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
async fn a_seeder_that_restarts_is_dialed_again() {
    let mut scene = Scene::over_two().await;
    scene.until(|p| p.fetched_bytes > 500_000).await;
    let Scene {
        net,
        stage,
        seed,
        download,
        mut progress,
        ..
    } = scene;
    // Stop the seeder first: without its host it would end by itself.
    seed.stop().await.unwrap();
    net.remove_host(1);
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
    let (narrow, wide) = (net.narrow_path(1), net.path(1, FAST));
    let download = stage.download(&net.host(0), &[1]);
    let progress = download.progress();
    finish(download).await.unwrap();
    stage.check();
    let last = progress.borrow().clone();
    assert_eq!(state(&last, &narrow), Some(PathState::Left));
    let mut paths = last.paths.into_iter();
    let left = paths.find(|path| path.fingerprint == narrow.fingerprint());
    let decision = left.unwrap().decision.unwrap();
    assert_eq!(decision.to_string(), "left: the path is too narrow");
    assert_eq!(net.dials(), [(addr(1), wide.fingerprint())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_with_only_narrow_paths_fails() {
    let net = Net::default();
    let stage = Stage::one_file(1_000, 16384);
    net.narrow_path(1);
    let error = finish(stage.download(&net.host(0), &[1])).await;
    let error = error.unwrap_err();
    assert!(matches!(error, DownloadError::NoPath { .. }), "{error}");
    assert!(error.to_string().contains("too narrow"), "{error}");
    assert_eq!(net.dials(), []);
}
