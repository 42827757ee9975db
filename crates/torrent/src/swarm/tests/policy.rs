//! Paths that the policy of either end refuses carry nothing, whichever side dials or chooses.

use tokio::sync::watch;

use super::*;
use crate::close::CloseCode;
use crate::progress::Progress;
use crate::testing::{Shape, TestPath};
use crate::{SeedOptions, SelectBy};

const SEEDER: u16 = 9;
/// The AS on each of the two paths, and a policy that keeps only the first.
const VIA: [u16; 2] = [101, 102];
const FIRST_ONLY: &str = "- 1-ff00:0:66; +";

fn first_only() -> hawser_path::Policy {
    hawser_path::Policy::new().with_acl(FIRST_ONLY.parse().unwrap())
}

/// Answers every connection to `host` with this close, until the test is over.
fn close_all(host: Host, code: u64, text: &'static str) {
    tokio::spawn(async move {
        while let Some(connection) = host.accept_pipe().await {
            connection.close_with(code, text);
        }
    });
}

/// Downloads. Returns the bytes fetched over each of the two paths, and everything that the leecher
/// and the seeder showed.
async fn run(leecher: DownloadOptions, seeder: SeedOptions) -> ([u64; 2], Shown) {
    let net = Net::default();
    let stage = Stage::one_file(3_000_000, 65536);
    let content = stage.dir.path().join("seed").join(&stage.metainfo.name);
    let host = net.host(SEEDER);
    let seed = Seed::over(host, stage.metainfo.clone(), content, seeder, |_, _| {});
    let seed = seed.await.unwrap();
    let shape = Shape {
        rate: Some(16_000_000),
        delay: Duration::from_millis(2),
    };
    let paths = VIA.map(|via| net.between(1, via, SEEDER, shape, None));
    let download = stage.download_with(&net.host(1), &[SEEDER], leecher);
    let mut shown = Shown {
        paths: paths.clone(),
        download: Vec::new(),
        seed: Vec::new(),
    };
    let (mut progress, mut seeding) = (download.progress(), seed.progress());
    let finished = finish(download);
    let watch = async {
        loop {
            tokio::select! {
                changed = progress.changed() => match changed {
                    Ok(()) => shown.note(&mut progress),
                    Err(_) => return,
                },
                _ = seeding.changed() => {
                    let left = seeding.borrow_and_update().left.clone();
                    shown.seed.extend(left.into_iter().map(|left| left.decision.to_string()));
                }
            }
        }
    };
    let (summary, ()) = tokio::join!(finished, watch);
    let summary = summary.unwrap();
    stage.check();
    let bytes = paths.map(|path| {
        let of = summary
            .paths
            .iter()
            .filter(|p| p.fingerprint == path.fingerprint());
        of.map(|path| path.bytes).sum()
    });
    (bytes, shown)
}

#[derive(Debug)]
struct Shown {
    paths: [TestPath; 2],
    /// About the second path.
    download: Vec<String>,
    seed: Vec<String>,
}

impl Shown {
    fn note(&mut self, progress: &mut watch::Receiver<Progress>) {
        for path in &progress.borrow_and_update().paths {
            if path.fingerprint == self.paths[1].fingerprint() {
                self.download
                    .extend(path.decision.as_ref().map(ToString::to_string));
                self.download.extend(path.last_error.clone());
            }
        }
    }
}

fn has(said: &[String], what: &str) -> bool {
    said.iter().any(|said| said.contains(what))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_both_paths_carry() {
    for side in [SelectBy::Uploader, SelectBy::Downloader] {
        let options = selected_by(side);
        let (bytes, shown) = run(options, SeedOptions::default()).await;
        assert!(bytes.iter().all(|bytes| *bytes > 0), "{bytes:?} {shown:?}");
        assert!(!has(&shown.download, "policy"), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_a_downloader_holds_whichever_side_chooses() {
    for side in [SelectBy::Downloader, SelectBy::Uploader] {
        let mut options = selected_by(side);
        options.paths.policy = Some(first_only());
        let (bytes, shown) = run(options, SeedOptions::default()).await;
        assert_eq!(bytes[1], 0, "{shown:?}");
        let why = "left: policy: acl entry \"- 1-ff00:0:66\" at 1-ff00:0:66#";
        assert!(has(&shown.download, why), "{shown:?}");
        // The seeder learns of the refusal only if it would have used the path.
        let refused = has(&shown.seed, super::super::policy::REFUSED);
        assert_eq!(refused, side == SelectBy::Uploader, "{shown:?}");
        assert!(!has(&shown.seed, "acl"), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_a_seeder_holds_whichever_side_chooses() {
    for side in [SelectBy::Downloader, SelectBy::Uploader] {
        let options = selected_by(side);
        let mut seeder = SeedOptions::default();
        seeder.paths.policy = Some(first_only());
        let (bytes, shown) = run(options, seeder).await;
        assert_eq!(bytes[1], 0, "{shown:?}");
        match side {
            SelectBy::Downloader => {
                let refused = has(&shown.download, super::super::policy::REFUSED);
                assert!(refused, "{shown:?}");
            }
            SelectBy::Uploader => {
                let why = "left: policy: acl entry \"- 1-ff00:0:66\" at 1-ff00:0:66#";
                assert!(has(&shown.seed, why), "{shown:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_is_refused_by_code_not_by_text() {
    const UNKNOWN: u64 = 4_000_000_000_000;
    let net = Net::default();
    let stage = Stage::one_file(100_000, 65536);
    let (refuses, closes) = (net.host(1), net.host(2));
    for host in [1, 2] {
        net.path(host, FAST);
    }
    close_all(refuses, CloseCode::PathRefused as u64, "any text");
    close_all(closes, UNKNOWN, super::super::policy::REFUSED);
    let download = stage.download(&net.host(0), &[1, 2]);
    let dials_of = |host| {
        let dials = net.dials().into_iter();
        dials.filter(|(peer, _)| *peer == addr(host)).count()
    };
    let closed_again = async {
        while dials_of(2) < 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed_again).await.unwrap();
    assert_eq!(dials_of(1), 1);
    let shown = |progress: &Progress, host, text| {
        let mut paths = progress.paths.iter().filter(|path| path.peer == addr(host));
        paths.any(|path| path.last_error.as_deref() == Some(text))
    };
    let mut progress = download.progress();
    let both = progress.wait_for(|progress| {
        shown(progress, 1, "any text") && shown(progress, 2, super::super::policy::REFUSED)
    });
    tokio::time::timeout(PATIENCE, both).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_keeps_no_path_fails_at_once() {
    let net = Net::default();
    let stage = Stage::one_file(100_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let nothing = hawser_path::Policy::new().with_acl("-".parse().unwrap());
    let options = with_paths(|paths| paths.policy = Some(nothing));
    let error = finish(stage.download_with(&net.host(0), &[1], options)).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("no path to any peer") && error.contains("policy: acl"),
        "{error}"
    );
    assert_eq!(net.dials(), []);
}

/// Bytes that a download has fetched over each of these paths.
fn fetched(progress: &Progress, paths: &[TestPath; 2]) -> [u64; 2] {
    let of = |path: &TestPath| {
        let fingerprint = path.fingerprint();
        let rows = progress.paths.iter();
        rows.filter(|row| row.fingerprint == fingerprint)
            .map(|row| row.bytes)
            .sum()
    };
    [of(&paths[0]), of(&paths[1])]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_changes_moves_a_download_to_other_paths() {
    for side in [SelectBy::Downloader, SelectBy::Uploader] {
        let net = Net::default();
        let stage = Stage::one_file(24_000_000, 65536);
        let _seed = stage.seed(&net.host(SEEDER)).await;
        let shape = Shape {
            rate: Some(16_000_000),
            delay: Duration::from_millis(2),
        };
        let paths = VIA.map(|via| net.between(1, via, SEEDER, shape, None));
        let mut options = selected_by(side);
        options.paths.policy = Some(first_only());
        let download = stage.download_with(&net.host(1), &[SEEDER], options);
        let (policy, mut progress) = (download.policy(), download.progress());
        let mut until = async |what: &str, holds: &dyn Fn([u64; 2]) -> bool| {
            let reached = progress.wait_for(|progress| holds(fetched(progress, &paths)));
            let reached = tokio::time::timeout(PATIENCE, reached).await;
            match reached {
                Ok(Ok(progress)) => fetched(&progress, &paths),
                _ => panic!("{side:?}: {what} did not come"),
            }
        };
        let before = until("a beginning", &|bytes| bytes[0] > 500_000).await;
        assert_eq!(before[1], 0);
        let only_second = "- 1-ff00:0:65; +".parse().unwrap();
        policy.set(Some(hawser_path::Policy::new().with_acl(only_second)));
        let changed = until("the other path", &|bytes| bytes[1] > 500_000).await;
        let later = until("more over it", &|bytes| bytes[1] > 2_000_000).await;
        assert_eq!(later[0], changed[0], "{side:?}: the denied path carries on");
        if side == SelectBy::Uploader {
            // It was refused a path, and dials it again after a minute.
            continue;
        }
        policy.set(None);
        let again = |bytes: [u64; 2]| bytes[0] > later[0] + 500_000;
        until("the first path again", &again).await;
    }
}
