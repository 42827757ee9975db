//! Downloads over real QUIC connections, inside an AS and over a link.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod content;
mod scripted;
#[path = "../../endhost/tests/hosts/toy.rs"]
mod toy;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_endhost::Endhost;
use hawser_quic::{Config, Endpoint};
use hawser_torrent::{
    CreateOptions, Download, DownloadError, DownloadOptions, Network, PathState, RateLimits, Seed,
    SeedEnd, SeedLimits, SeedOptions,
};

use self::content::{Content, PATIENCE, finish, finish_within};
use self::scripted::{Manner, Scripted};
use self::toy::{ToyDaemon, ToyNet, isd_as, own_ip, unix_now};

impl Content {
    async fn seed(&self, endpoint: &Endpoint, host: &Endhost) -> Seed {
        let (metainfo, file) = (self.metainfo.clone(), self.file());
        let network = Network::scion(endpoint.clone(), host.clone());
        Seed::start(metainfo, file, network, SeedOptions::default(), |_, _| {})
            .await
            .unwrap()
    }

    fn get(&self, from: &Endpoint, host: &Endhost) -> Download {
        Download::start(
            self.metainfo.clone(),
            self.target(),
            vec![from.local_addr().into()],
            Network::scion(bind(host, 1), host.clone()),
            DownloadOptions::default(),
        )
    }
}

fn bind(host: &Endhost, last: u8) -> Endpoint {
    let listen: SocketAddr = (own_ip(last), 0).into();
    Endpoint::bind(host.clone(), Some(listen), Config::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_crosses_an_as() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let content = Content::new(20_000_000, &CreateOptions::default());
    let endpoint = bind(&host, 2);
    let seed = content.seed(&endpoint, &host).await;
    let mut progress = seed.progress();
    let summary = finish(content.get(&endpoint, &host)).await.unwrap();
    content.check();
    assert_eq!(summary.fetched_bytes, 20_000_000);
    assert_eq!(summary.paths.len(), 1);
    assert_eq!(summary.paths[0].hops, 1);
    let uploaded = progress.wait_for(|p| p.uploaded_bytes >= 20_000_000);
    let uploaded = tokio::time::timeout(PATIENCE, uploaded).await;
    assert_eq!(uploaded.unwrap().unwrap().connections, 1);
    seed.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_rate_holds_over_quic() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let content = Content::new(1_500_000, &CreateOptions::default());
    let endpoint = bind(&host, 2);
    let _seed = content.seed(&endpoint, &host).await;
    let download = content.get(&endpoint, &host);
    download.set_limits(RateLimits {
        upload: None,
        download: Some(1_000_000),
    });
    let summary = finish_within(1_000_000, download).await;
    content.check();
    // Nothing was lost while it was not read.
    assert_eq!(summary.wasted_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_repeated_and_reordered_answers_are_no_offence() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    for manner in Manner::ALL {
        let content = Content::new(5_000_000, &CreateOptions::default());
        let file = std::fs::read(content.file()).unwrap();
        let seeder = Scripted::new(manner, &content.metainfo, file);
        let endpoint = bind(&host, 2);
        let accepting = endpoint.clone();
        let serving = tokio::spawn(async move {
            let mut peers = tokio::task::JoinSet::new();
            while let Some(connection) = accepting.accept().await {
                let seeder = seeder.clone();
                peers.spawn(async move {
                    let (write, read) = connection.accept_bi().await.unwrap();
                    // Fails when the engine closes the connection.
                    let _ = seeder.serve(read, write).await;
                });
            }
        });
        let download = content.get(&endpoint, &host);
        let progress = download.progress();
        let ended = finish(download).await;
        ended.unwrap_or_else(|error| panic!("{manner:?}: {error}"));
        content.check();
        let idle = progress.borrow().idle_peers.clone();
        assert!(idle.is_empty(), "{manner:?}: {idle:?}");
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_recognizes_its_own_address() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let content = Content::new(500_000, &CreateOptions::default());
    let own = bind(&host, 1);
    let addr = own.local_addr();
    let download = Download::start(
        content.metainfo.clone(),
        content.target(),
        vec![addr.into()],
        Network::scion(own, host.clone()),
        DownloadOptions::default(),
    );
    let error = finish(download).await.unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped(_)), "{error}");
    let error = error.to_string();
    let reason = format!("{addr} (this is our own address)");
    assert!(error.contains(&reason), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_survives_an_outage_of_the_only_link() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let content = Content::new(6_000_000, &CreateOptions::default());
    let endpoint = bind(&b, 2);
    let _seed = content.seed(&endpoint, &b).await;
    net.conduct.rate.store(2_000_000, Ordering::SeqCst);
    net.conduct.queue.store(100_000, Ordering::SeqCst);
    let download = content.get(&endpoint, &a);
    let mut progress = download.progress();
    let some = progress.wait_for(|p| p.verified_bytes > 1_000_000);
    let some = tokio::time::timeout(PATIENCE, some).await.unwrap();
    drop(some.unwrap());
    net.conduct.down.store(true, Ordering::SeqCst);
    net.withdraw();
    let lost = progress.wait_for(|p| p.paths.iter().all(|p| p.state != PathState::Active));
    let lost = tokio::time::timeout(PATIENCE, lost).await.unwrap();
    assert!(lost.map(|p| p.verified_bytes).unwrap() < 6_000_000);
    net.conduct.down.store(false, Ordering::SeqCst);
    net.offer(unix_now() as u32);
    let summary = finish(download).await.unwrap();
    content.check();
    assert_eq!(summary.paths.len(), 1);
    assert_eq!(summary.paths[0].hops, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_blocks_arrive_when_seeding_ends() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let content = Content::new(3_000_000, &CreateOptions::default());
    let (endpoint, absent) = (bind(&host, 2), bind(&host, 3));
    let seeding = Download::start(
        content.metainfo.clone(),
        content.complete(),
        vec![absent.local_addr().into()],
        Network::scion(endpoint.clone(), host.clone()),
        DownloadOptions {
            seed: Some(SeedLimits {
                ratio: Some(1.0),
                ..SeedLimits::default()
            }),
            ..DownloadOptions::default()
        },
    );
    finish(content.get(&endpoint, &host)).await.unwrap();
    content.check();
    let summary = finish(seeding).await.unwrap();
    assert_eq!(summary.seeded.unwrap().end, SeedEnd::Ratio);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_without_a_path_fails_at_once() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    net.withdraw();
    let content = Content::new(100_000, &CreateOptions::default());
    let endpoint = bind(&b, 2);
    let error = finish(content.get(&endpoint, &a)).await.unwrap_err();
    assert!(matches!(error, DownloadError::NoPath { .. }), "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_of_another_torrent_is_dropped() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let [content, other] =
        [100_000, 100_001].map(|len| Content::new(len, &CreateOptions::default()));
    let endpoint = bind(&host, 2);
    let _seed = other.seed(&endpoint, &host).await;
    let error = finish(content.get(&endpoint, &host)).await.unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped { .. }), "{error}");
    let error = error.to_string();
    let addr = endpoint.local_addr().to_string();
    assert!(
        error.contains(&addr) && error.contains("another torrent"),
        "{error}"
    );
}

/// Not a test but a measurement, in an optimised build: `cargo test --release -p hawser-torrent --
/// --ignored --nocapture gigabyte_crosses`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, to be read by people"]
async fn a_gigabyte_crosses_an_as() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let content = Content::new(1 << 30, &CreateOptions::default());
    let endpoint = bind(&host, 2);
    let _seed = content.seed(&endpoint, &host).await;
    let begun = Instant::now();
    let summary = finish(content.get(&endpoint, &host)).await.unwrap();
    let rate = 8e-9 * (1u64 << 30) as f64 / summary.download_time.as_secs_f64();
    println!("{:.2} s, {rate:.2} Gbit/s", begun.elapsed().as_secs_f64());
}
