//! Downloads from web servers (BEP 19): alone and beside peers, servers that fail and that lie.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod web_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hawser_torrent::{
    CreateOptions, Download, DownloadError, DownloadOptions, Listener, Metainfo, Network, Priority,
    RateLimits, Seed, SeedOptions, Selection, Summary, WebSeedState, create,
};
use tempfile::TempDir;

use self::web_server::{Manner, WebServer};

const HOST: &str = "127.0.0.1";
const PATIENCE: Duration = Duration::from_secs(60);

/// Files across piece boundaries, some with names that a URL does not have.
const SEVERAL: [(&str, usize); 5] = [
    ("set/a b.bin", 900_000),
    ("set/empty", 0),
    ("set/sub/50%.bin", 300_001),
    ("set/sub/ü.bin", 1),
    ("set/z.bin", 700_000),
];

/// Content, and a folder to download to.
struct Stage {
    dir: TempDir,
    metainfo: Metainfo,
}

impl Stage {
    fn new(files: &[(&str, usize)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, length) in files {
            let path = dir.path().join("web").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut bytes = vec![0u8; *length];
            fastrand::Rng::new().fill(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
        let top = Path::new(files[0].0).components().next().unwrap();
        let content = dir.path().join("web").join(top);
        let options = CreateOptions {
            piece_length: Some(65536),
            ..CreateOptions::default()
        };
        let torrent = create(&content, &options, |_, _| {}).unwrap();
        Self {
            metainfo: Metainfo::parse(&torrent).unwrap(),
            dir,
        }
    }

    async fn serve(&self, manners: &[Manner]) -> WebServer {
        WebServer::start(HOST, &self.dir.path().join("web"), manners).await
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("get")
    }

    fn download(&self, urls: &[String], options: DownloadOptions) -> Download {
        let mut metainfo = self.metainfo.clone();
        metainfo.sources.web_seeds = urls.to_vec();
        Download::start(metainfo, self.target(), Vec::new(), Network::ip(), options)
    }

    fn check(&self) {
        for file in &self.metainfo.files {
            let read = |dir: &str| fs::read(self.dir.path().join(dir).join(&file.path)).unwrap();
            assert!(
                read("web") == read("get"),
                "{} differs",
                file.path.display()
            );
        }
    }
}

async fn finish(download: Download) -> Result<Summary, DownloadError> {
    let ended = tokio::time::timeout(PATIENCE, download.wait()).await;
    ended.expect("the download hangs")
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_fetched_from_a_web_seed_alone() {
    let stage = Stage::new(&SEVERAL);
    let web = stage.serve(&[Manner::Right]).await;
    let summary = finish(stage.download(&[web.url()], DownloadOptions::default())).await;
    let summary = summary.unwrap();
    stage.check();
    let total = stage.metainfo.pieces.total;
    assert_eq!((summary.fetched_bytes, summary.wasted_bytes), (total, 0));
    assert_eq!(summary.web_seeds.len(), 1);
    assert_eq!(summary.web_seeds[0].bytes, total);
    let asked = web.asked();
    assert!(
        asked.iter().any(|it| it.path == "/set/sub/50%25.bin"),
        "{asked:?}"
    );
    assert!(asked.iter().all(|it| it.path != "/set/empty"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_file_may_be_at_any_url_and_behind_redirects() {
    let stage = Stage::new(&[("file.bin", 1_000_000)]);
    for (path, manner) in [("file.bin", Manner::Right), ("", Manner::Moved)] {
        let web = stage.serve(&[manner]).await;
        let url = format!("{}{path}", web.url());
        finish(stage.download(&[url], DownloadOptions::default()))
            .await
            .unwrap();
        stage.check();
        fs::remove_dir_all(stage.target()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_fail_are_asked_again() {
    let stage = Stage::new(&[("file.bin", 300_000)]);
    for manner in [Manner::Status(503), Manner::Status(500), Manner::Cut] {
        let web = stage.serve(&[manner, Manner::Right]).await;
        let download = stage.download(&[web.url()], DownloadOptions::default());
        let mut progress = download.progress();
        let failed = progress.wait_for(|progress| {
            let mut seeds = progress.web_seeds.iter();
            seeds.any(|it| it.state == WebSeedState::Waiting && it.last_error.is_some())
        });
        failed.await.unwrap();
        finish(download).await.unwrap();
        stage.check();
        fs::remove_dir_all(stage.target()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_ranges_gives_whole_files() {
    let stage = Stage::new(&[("set/a.bin", 100_000), ("set/b.bin", 50_000)]);
    let web = stage.serve(&[Manner::Whole]).await;
    finish(stage.download(&[web.url()], DownloadOptions::default()))
        .await
        .unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_without_ranges_sends_before_a_run_is_skipped() {
    let stage = Stage::new(&[("set/a.bin", 100_000), ("set/b.bin", 3_000_000)]);
    let web = stage.serve(&[Manner::Whole]).await;
    let summary = finish(stage.download(&[web.url()], DownloadOptions::default())).await;
    stage.check();
    let seed = &summary.unwrap().web_seeds[0];
    assert_eq!(seed.bytes, stage.metainfo.pieces.total);
    let asked = web.asked();
    let is_inside = |range: (u64, u64)| range.0 > 0;
    assert!(
        asked.iter().any(|it| it.range.is_some_and(is_inside)),
        "{asked:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_seed_that_lies_is_dropped_and_named_and_others_are_used() {
    let stage = Stage::new(&SEVERAL);
    let liar = stage.serve(&[Manner::False]).await;
    let honest = stage.serve(&[Manner::Status(503), Manner::Right]).await;
    let urls = [liar.url(), honest.url()];
    let summary = finish(stage.download(&urls, DownloadOptions::default()))
        .await
        .unwrap();
    stage.check();
    let [of_liar, of_honest] = &summary.web_seeds[..] else {
        panic!("{summary:?}")
    };
    assert_eq!(of_liar.state, WebSeedState::Dropped);
    let why = of_liar.last_error.as_deref().unwrap_or_default();
    assert!(why.contains("wrong data"), "{why}");
    assert_ne!(of_honest.state, WebSeedState::Dropped);
    fs::remove_dir_all(stage.target()).unwrap();
    let error = finish(stage.download(&[liar.url()], DownloadOptions::default())).await;
    let error = error.unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped(_)), "{error}");
    assert!(error.to_string().contains(&liar.url()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_does_not_hold_up_the_others() {
    let stage = Stage::new(&SEVERAL);
    let web = stage.serve(&[Manner::Right]).await;
    let missing = stage.dir.path().join("web/set/a b.bin");
    let aside = stage.dir.path().join("aside");
    fs::rename(&missing, &aside).unwrap();
    let second = stage.serve(&[Manner::Status(404), Manner::Right]).await;
    let download = stage.download(&[web.url()], DownloadOptions::default());
    let mut progress = download.progress();
    // All pieces without a byte of that file.
    let of_others = stage.metainfo.pieces.total - 14 * 65536;
    let others = progress.wait_for(|progress| progress.verified_bytes == of_others);
    others.await.unwrap();
    let seed = progress.borrow().web_seeds[0].clone();
    assert!(seed.last_error.is_some_and(|error| error.contains("404")));
    download.stop();
    finish(download).await.unwrap_err();
    fs::rename(&aside, &missing).unwrap();
    let urls = [second.url(), web.url()];
    let download = stage.download(&urls, DownloadOptions::default());
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_selected_files_are_asked_for_and_limits_are_kept() {
    let stage = Stage::new(&SEVERAL);
    let web = stage.serve(&[Manner::Right]).await;
    let last = stage.metainfo.files.len() - 1;
    let limit = 400_000;
    let options = DownloadOptions {
        files: Selection::none().with_file(last, Priority::Normal),
        limits: RateLimits {
            upload: None,
            download: Some(limit),
        },
        ..DownloadOptions::default()
    };
    let began = Instant::now();
    let summary = finish(stage.download(&[web.url()], options)).await.unwrap();
    // What may pass beyond the limit: 50 ms late, and a turn.
    let allowed = limit as f64 * (began.elapsed().as_secs_f64() + 0.05) + 2.0 * 16384.0;
    assert!(summary.fetched_bytes as f64 <= allowed);
    let read = |dir: &str| fs::read(stage.dir.path().join(dir).join("set/z.bin")).unwrap();
    assert!(read("web") == read("get"));
    let asked = web.asked();
    // The first piece of the last file has bytes of those before it.
    assert!(
        asked.iter().all(|it| it.path != "/set/a%20b.bin"),
        "{asked:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_and_web_seeds_share_the_work() {
    let stage = Stage::new(&[("file.bin", 20_000_000)]);
    let listener = Listener::bind(format!("{HOST}:0").parse().unwrap())
        .await
        .unwrap();
    let peer = listener.local_addr();
    let network = Network::ip().with_listener(listener);
    let content = stage.dir.path().join("web/file.bin");
    let options = SeedOptions {
        limits: RateLimits {
            upload: Some(4_000_000),
            download: None,
        },
        ..SeedOptions::default()
    };
    let seed = Seed::start(stage.metainfo.clone(), content, network, options, |_, _| {});
    let _seed = seed.await.unwrap();
    let web = stage.serve(&[Manner::Right]).await;
    let mut metainfo = stage.metainfo.clone();
    metainfo.sources.web_seeds = vec![web.url()];
    let limits = RateLimits {
        upload: None,
        download: Some(8_000_000),
    };
    let options = DownloadOptions {
        limits,
        ..DownloadOptions::default()
    };
    let (target, peers) = (stage.target(), vec![peer.into()]);
    let download = Download::start(metainfo, target, peers, Network::ip(), options);
    let summary = finish(download).await.unwrap();
    stage.check();
    let of_peer: u64 = summary.paths.iter().map(|path| path.bytes).sum();
    let of_web = summary.web_seeds[0].bytes;
    assert!(of_peer > 0 && of_web > 0, "{of_peer} and {of_web}");
    assert_eq!(of_peer + of_web, 20_000_000 + summary.wasted_bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_without_peers_or_usable_web_seeds_fails_with_the_reasons() {
    let stage = Stage::new(&[("file.bin", 100_000)]);
    let urls = ["ftp://127.0.0.1/file.bin".to_owned()];
    let options = || DownloadOptions {
        give_up_after: Duration::from_millis(500),
        ..DownloadOptions::default()
    };
    let error = finish(stage.download(&urls, options())).await.unwrap_err();
    assert!(error.to_string().contains("ftp://127.0.0.1"), "{error}");
    let web = stage.serve(&[Manner::Status(403)]).await;
    let error = finish(stage.download(&[web.url()], options()))
        .await
        .unwrap_err();
    assert!(matches!(error, DownloadError::NoPeer(..)), "{error}");
    assert!(error.to_string().contains("HTTP status 403"), "{error}");
    let unused = DownloadOptions {
        uses_web_seeds: false,
        ..options()
    };
    let error = finish(stage.download(&[web.url()], unused))
        .await
        .unwrap_err();
    assert!(matches!(error, DownloadError::NoPeers), "{error}");
}
