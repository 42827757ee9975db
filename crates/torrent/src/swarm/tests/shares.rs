//! Paths that carry no more than their share, `spread:N%`.

use super::*;
use crate::testing::{Shape, State, TestPath};
use crate::wire::BLOCK;

/// A download from host 1 with this strategy, over paths without a common AS between the ends.
struct Spread {
    net: Net,
    stage: Stage,
    paths: Vec<TestPath>,
    download: Download,
    _seed: Seed,
}

impl Spread {
    async fn new(select: &str, length: usize, shapes: &[Shape]) -> Self {
        let net = Net::default();
        let stage = Stage::one_file(length, 65536);
        let seed = stage.seed(&net.host(1)).await;
        let paths = (101..).zip(shapes);
        let paths = paths.map(|(via, shape)| net.between(0, via, 1, *shape, None));
        let paths = paths.collect();
        let options = with_paths(|paths| paths.select = select.parse().unwrap());
        let download = stage.download_with(&net.host(0), &[1], options);
        Self {
            net,
            stage,
            paths,
            download,
            _seed: seed,
        }
    }

    /// Waits until more than `enough` bytes have been fetched. Returns the bytes of each path.
    async fn until(&self, enough: u64) -> Vec<u64> {
        let mut progress = self.download.progress();
        let wanted = progress.wait_for(|progress| progress.fetched_bytes > enough);
        let waited = tokio::time::timeout(PATIENCE, wanted).await;
        let progress = waited.expect("it never comes to that").unwrap().clone();
        let bytes = |path: &TestPath| {
            let mut all = progress.paths.iter();
            let path = all.find(|one| one.fingerprint == path.fingerprint());
            path.map_or(0, |path| path.bytes)
        };
        self.paths.iter().map(bytes).collect()
    }

    /// Waits until the download is complete. Returns the bytes of each path.
    async fn end(self) -> Vec<u64> {
        let summary = finish(self.download).await.unwrap();
        self.stage.check();
        let bytes = |path: &TestPath| {
            let mut all = summary.paths.iter();
            let path = all.find(|one| one.fingerprint == path.fingerprint());
            path.map_or(0, |path| path.bytes)
        };
        self.paths.iter().map(bytes).collect()
    }
}

/// Bytes that a path may carry beyond its share. Each of two blocks requested twice at the very end
/// may arrive over one path although it was counted for the other.
fn slack(all: u64) -> u64 {
    (16 * u64::from(BLOCK)).max(all / 100) + 2 * u64::from(BLOCK)
}

/// Checks that no path carried more than one part in `paths` plus the slack.
fn is_shared_among(paths: u64, carried: &[u64]) {
    let all: u64 = carried.iter().sum();
    for bytes in carried {
        assert!(*bytes <= all.div_ceil(paths) + slack(all), "{carried:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_path_waits_for_a_slow_one() {
    let shapes = [mbit(60.0, 2), mbit(8.0, 20)];
    let scene = Spread::new("spread:50%", 3_000_000, &shapes).await;
    is_shared_among(2, &scene.end().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_paths_carry_a_third_each() {
    let shapes = [mbit(60.0, 2), mbit(6.0, 20), mbit(20.0, 60)];
    let scene = Spread::new("spread:34%", 4_000_000, &shapes).await;
    is_shared_among(3, &scene.end().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_blocks_are_shared_out_before_the_end_is_near() {
    // So fast that most blocks are requested before the rest is shared out by plan.
    let scene = Spread::new("spread:50%", 40_000_000, &[FAST, mbit(100.0, 2)]).await;
    is_shared_among(2, &scene.end().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_path_dies_another_takes_over_its_share() {
    // The second path is one of the two taken first.
    let shapes = [mbit(10.0, 5), mbit(80.0, 2), mbit(10.0, 5)];
    let scene = Spread::new("spread:50%", 8_000_000, &shapes).await;
    let before = scene.until(4_000_000).await;
    assert!(before[1] > 0, "{before:?}");
    let dying = if before[0] > 0 { 0 } else { 2 };
    scene.net.set(&scene.paths[dying], State::Down);
    let carried = scene.end().await;
    let all: u64 = carried.iter().sum();
    assert!(carried.iter().all(|bytes| *bytes > 0), "{carried:?}");
    // Shares were assigned twice, each time with slack. Blocks under way over the path that died,
    // at most half a second's worth, made room but never arrived.
    let lost = 10_000_000 / 8 / 2;
    for bytes in &carried {
        assert!(*bytes <= all / 2 + 2 * slack(all) + lost / 2, "{carried:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_path_left_carries_the_rest() {
    let shapes = [mbit(60.0, 2), mbit(8.0, 5)];
    let scene = Spread::new("spread:50%", 6_000_000, &shapes).await;
    let before = scene.until(3_000_000).await;
    scene.net.set(&scene.paths[1], State::Frozen);
    // Requests over the slow path count already: three quarters of a second's worth.
    let asked = 750_000;
    let then = before.iter().sum::<u64>() + asked;
    assert!(before[0] <= then / 2 + slack(then), "{before:?}");
    let carried = scene.end().await;
    let all: u64 = carried.iter().sum();
    assert!(carried[0] > all / 2 + slack(all), "{carried:?}");
}
