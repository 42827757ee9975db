//! Transfers with other BitTorrent programs, in both directions: aria2, lftp, libtorrent, qBittorrent,
//! rTorrent and Transmission, where they are installed. Content of one file in small pieces and of
//! several files; over TCP and uTP, plain and encrypted; by the metainfo and by a magnet link alone; of
//! version 1 and of both versions (BEP 52).
//!
//! Each test runs in a separate network namespace: Transmission accepts no peers on the loopback
//! network, and ports are free there. `HAWSER_INTEROP_ROUNDS` is the number of times that each
//! transfer is repeated (default 1).

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "interop/block_hashes.rs"]
mod block_hashes;
mod clients;
#[path = "interop/discovery.rs"]
mod discovery;
mod web_server;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_torrent::{
    Download, DownloadOptions, IpTransports, Listener, Network, Resolve, Seed, SeedOptions, Version,
};

use self::clients::{
    Client, Kind, Manner, PATIENCE, Shared, Torrent, Tracker, hybrid, inside, several_files,
    several_files_of, single_file, single_file_of_version_two, version_two,
};
use self::web_server::WebServer;

/// The address of all programs in the namespace.
const HOST: &str = "10.77.0.1";

/// KiB per second at which a program uploads that pauses meanwhile.
const SLOW: u32 = 6000;

/// Seconds for which programs pause.
const PAUSES: [u64; 4] = [1, 3, 6, 12];

/// The tests of one program.
macro_rules! with {
    ($module:ident, $kind:expr) => {
        mod $module {
            use super::*;

            #[test]
            fn fetches_and_seeds() {
                inside($kind, concat!(stringify!($module), "::of_files"), HOST);
            }

            #[test]
            fn fetches_and_seeds_encrypted() {
                inside($kind, concat!(stringify!($module), "::of_secrets"), HOST);
            }

            #[test]
            fn fetches_and_seeds_by_link() {
                inside($kind, concat!(stringify!($module), "::of_links"), HOST);
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = "run by a test above, in its namespace"]
            async fn of_files() {
                all($kind).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = "run by a test above, in its namespace"]
            async fn of_secrets() {
                encrypted($kind).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = "run by a test above, in its namespace"]
            async fn of_links() {
                by_link($kind).await;
            }
        }
    };
}

/// The tests of one program that can do without TCP.
macro_rules! over_utp {
    ($test:ident, $inner:ident, $kind:expr) => {
        #[test]
        fn $test() {
            inside($kind, stringify!($inner), HOST);
        }

        #[tokio::test(flavor = "multi_thread")]
        #[ignore = "run by the test above, in its namespace"]
        async fn $inner() {
            over_utp($kind).await;
        }
    };
}

over_utp!(
    libtorrent_fetches_and_seeds_over_utp,
    of_libtorrent_over_utp,
    Kind::Libtorrent
);
over_utp!(
    qbittorrent_fetches_and_seeds_over_utp,
    of_qbittorrent_over_utp,
    Kind::QBittorrent
);

with!(aria2, Kind::Aria2);
with!(libtorrent, Kind::Libtorrent);
with!(qbittorrent, Kind::QBittorrent);
with!(rtorrent, Kind::RTorrent);
with!(transmission, Kind::Transmission);

#[test]
fn lftp_fetches_and_seeds() {
    inside(Kind::Lftp, "of_lftp", HOST);
}

/// It has neither encryption nor uTP, and knows version 1 alone.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_lftp() {
    all(Kind::Lftp).await;
    by_link(Kind::Lftp).await;
    fetch_from_us(
        Kind::Lftp,
        several_files_of(Version::Hybrid),
        Manner::default(),
    )
    .await;
}

#[test]
fn libtorrent_has_torrents_of_both_versions() {
    inside(Kind::Libtorrent, "of_hybrids", HOST);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_hybrids() {
    let (kind, usual) = (Kind::Libtorrent, Manner::default());
    tokio::join!(
        fetch_from_us(kind, hybrid(), usual),
        seed_to_us(kind, hybrid(), None, usual),
    );
}

#[test]
fn libtorrent_fetches_from_a_web_seed_and_makes_torrents_with_one() {
    inside(Kind::Libtorrent, "of_libtorrent_and_web_seeds", HOST);
}

#[test]
fn aria2_fetches_from_a_web_seed() {
    inside(Kind::Aria2, "of_aria2_and_web_seeds", HOST);
}

#[test]
fn qbittorrent_fetches_from_a_web_seed() {
    inside(Kind::QBittorrent, "of_qbittorrent_and_web_seeds", HOST);
}

#[test]
fn transmission_fetches_from_a_web_seed() {
    inside(Kind::Transmission, "of_transmission_and_web_seeds", HOST);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_qbittorrent_and_web_seeds() {
    tokio::join!(
        fetch_from_web_seed(Kind::QBittorrent, single_file()),
        fetch_from_web_seed(Kind::QBittorrent, several_files()),
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_transmission_and_web_seeds() {
    tokio::join!(
        fetch_from_web_seed(Kind::Transmission, single_file()),
        fetch_from_web_seed(Kind::Transmission, several_files()),
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_libtorrent_and_web_seeds() {
    tokio::join!(
        fetch_from_web_seed(Kind::Libtorrent, single_file()),
        fetch_from_web_seed(Kind::Libtorrent, several_files()),
        fetch_of_their_torrent(),
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_aria2_and_web_seeds() {
    tokio::join!(
        fetch_from_web_seed(Kind::Aria2, single_file()),
        fetch_from_web_seed(Kind::Aria2, several_files()),
    );
}

/// It fetches from a web seed alone, by a torrent of ours.
async fn fetch_from_web_seed(kind: Kind, shared: Shared) {
    let web = WebServer::start(HOST, &shared.seeded_from(), &[web_server::Manner::Right]).await;
    let torrent = shared.torrent_with_web_seed(&web.url());
    let target = shared.dir.path().join("theirs");
    let client = Client::start(kind, torrent, &target, HOST, Manner::default());
    client.until(|| shared.is_same_in(&target)).await;
}

/// This side fetches from a web seed alone, by a torrent of libtorrent.
async fn fetch_of_their_torrent() {
    let shared = several_files();
    let web = WebServer::start(HOST, &shared.seeded_from(), &[web_server::Manner::Right]).await;
    let metainfo = shared.made_with_web_seed(&web.url());
    assert_eq!(metainfo.sources.web_seeds, [web.url()]);
    assert!(metainfo.files.iter().any(|file| file.padding));
    let (target, options) = (shared.dir.path().join("ours"), DownloadOptions::default());
    let download = Download::start(metainfo, target.clone(), Vec::new(), Network::ip(), options);
    let ended = tokio::time::timeout(PATIENCE, download.wait()).await;
    ended.expect("the download hangs").unwrap();
    assert!(shared.is_same_in(&target));
    assert!(web.asked().iter().all(|asked| !asked.path.contains(".pad")));
}

#[test]
fn libtorrent_has_torrents_of_version_two() {
    inside(Kind::Libtorrent, "of_version_two", HOST);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_version_two() {
    let (kind, usual) = (Kind::Libtorrent, Manner::default());
    let several = || several_files_of(Version::Two);
    let ours = |shared| fetch_from_us(kind, shared, usual);
    let theirs = |shared| seed_to_us(kind, shared, None, usual);
    let link = |shared| fetched_from_us(kind, shared, usual, Shared::magnet_announced_at);
    for round in 1..=rounds() {
        tokio::join!(
            timed(
                ours(single_file_of_version_two()),
                kind,
                round,
                "it fetched one file"
            ),
            timed(ours(several()), kind, round, "it fetched several"),
            timed(ours(version_two()), kind, round, "it fetched its own"),
            timed(
                theirs(single_file_of_version_two()),
                kind,
                round,
                "it seeded one file"
            ),
            timed(theirs(several()), kind, round, "it seeded several"),
            timed(theirs(version_two()), kind, round, "it seeded its own"),
        );
        tokio::join!(
            timed(link(several()), kind, round, "it fetched by link"),
            timed(
                link(single_file_of_version_two()),
                kind,
                round,
                "it fetched one by link"
            ),
            timed(
                seed_link_of(kind, several()),
                kind,
                round,
                "it seeded by link"
            ),
            timed(
                seed_link_of(kind, single_file_of_version_two()),
                kind,
                round,
                "it seeded one by link"
            ),
        );
    }
}

#[test]
fn qbittorrent_has_torrents_of_both_versions_and_of_version_two() {
    inside(Kind::QBittorrent, "of_qbittorrent_and_versions", HOST);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_qbittorrent_and_versions() {
    let (kind, usual) = (Kind::QBittorrent, Manner::default());
    tokio::join!(
        fetch_from_us(kind, several_files_of(Version::Hybrid), usual),
        seed_to_us(kind, several_files_of(Version::Hybrid), None, usual),
        fetch_from_us(kind, several_files_of(Version::Two), usual),
        seed_to_us(kind, single_file_of_version_two(), None, usual),
    );
}

#[test]
fn libtorrent_has_our_hybrids() {
    inside(Kind::Libtorrent, "of_our_hybrids", HOST);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_our_hybrids() {
    let (kind, usual) = (Kind::Libtorrent, Manner::default());
    tokio::join!(
        fetch_from_us(kind, several_files_of(Version::Hybrid), usual),
        seed_to_us(kind, several_files_of(Version::Hybrid), None, usual),
    );
}

#[test]
fn rtorrent_fetches_our_hybrids() {
    inside(Kind::RTorrent, "of_our_hybrids_to_rtorrent", HOST);
}

/// It knows version 1 alone, and padding as files that it fetches. aria2 1.36 and Transmission 3.00 read no
/// hybrid of any program: the one computes another info-hash, the other refuses the file.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_our_hybrids_to_rtorrent() {
    let hybrid = several_files_of(Version::Hybrid);
    fetch_from_us(Kind::RTorrent, hybrid, Manner::default()).await;
}

#[test]
fn aria2_pauses_while_it_seeds() {
    inside(Kind::Aria2, "of_a_paused_aria2", HOST);
}

#[test]
fn transmission_pauses_while_it_seeds() {
    inside(Kind::Transmission, "of_a_paused_transmission", HOST);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_a_paused_aria2() {
    paused(Kind::Aria2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_a_paused_transmission() {
    paused(Kind::Transmission).await;
}

/// Both directions with a program that insists on encryption.
async fn encrypted(kind: Kind) {
    let encrypts = Manner {
        encrypts: true,
        ..Manner::default()
    };
    for round in 1..=rounds() {
        let fetch = fetch_from_us(kind, single_file(), encrypts);
        let seed = seed_to_us(kind, single_file(), None, encrypts);
        tokio::join!(
            timed(fetch, kind, round, "it fetched encrypted"),
            timed(seed, kind, round, "it seeded encrypted"),
        );
    }
}

/// Both directions with a program that uses uTP alone, plain and encrypted.
async fn over_utp(kind: Kind) {
    let utp = Manner {
        utp: true,
        ..Manner::default()
    };
    let encrypts = Manner {
        encrypts: true,
        ..utp
    };
    for round in 1..=rounds() {
        tokio::join!(
            timed(
                fetch_from_us(kind, single_file(), utp),
                kind,
                round,
                "it fetched over uTP"
            ),
            timed(
                seed_to_us(kind, several_files(), None, utp),
                kind,
                round,
                "it seeded over uTP"
            ),
            timed(
                fetch_from_us(kind, several_files(), encrypts),
                kind,
                round,
                "it fetched over uTP, encrypted"
            ),
            timed(
                seed_to_us(kind, single_file(), None, encrypts),
                kind,
                round,
                "it seeded over uTP, encrypted"
            ),
        );
    }
}

/// The sockets of this side for a program that behaves so.
fn network(manner: Manner) -> Network {
    let transports = match manner.utp {
        true => IpTransports::UTP,
        false => IpTransports::TCP,
    };
    Network::ip().with_transports(transports)
}

/// All pauses, at once.
async fn paused(kind: Kind) {
    for round in 1..=rounds() {
        let transfers = PAUSES.map(|seconds| {
            tokio::spawn(async move {
                let pause = Some(Duration::from_secs(seconds));
                let what = format!("it paused for {seconds} s");
                let slow = Manner {
                    rate: Some(SLOW),
                    ..Manner::default()
                };
                let seed = seed_to_us(kind, single_file(), pause, slow);
                timed(seed, kind, round, &what).await;
            })
        });
        for transfer in transfers {
            transfer.await.unwrap();
        }
    }
}

fn rounds() -> u32 {
    let rounds = std::env::var("HAWSER_INTEROP_ROUNDS");
    rounds.map_or(1, |text| text.parse().unwrap())
}

/// Both directions, with a single file in small pieces and with several files. All four run at
/// once, as Transmission mostly waits for its ten-second intervals.
async fn all(kind: Kind) {
    let usual = Manner::default();
    for round in 1..=rounds() {
        tokio::join!(
            timed(
                fetch_from_us(kind, single_file(), usual),
                kind,
                round,
                "it fetched one file"
            ),
            timed(
                fetch_from_us(kind, several_files(), usual),
                kind,
                round,
                "it fetched several"
            ),
            timed(
                seed_to_us(kind, single_file(), None, usual),
                kind,
                round,
                "it seeded one file"
            ),
            timed(
                seed_to_us(kind, several_files(), None, usual),
                kind,
                round,
                "it seeded several"
            ),
        );
    }
}

/// Both directions, of a folder, where the side that fetches has its magnet link alone.
async fn by_link(kind: Kind) {
    for round in 1..=rounds() {
        tokio::join!(
            timed(fetch_link_from_us(kind), kind, round, "it fetched by link"),
            timed(seed_link_to_us(kind), kind, round, "it seeded by link"),
        );
    }
}

async fn timed(transfer: impl Future<Output = ()>, kind: Kind, round: u32, what: &str) {
    let begun = Instant::now();
    transfer.await;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{kind:?}, round {round}: {what} in {seconds:.1} s");
}

async fn fetch_from_us(kind: Kind, shared: Shared, manner: Manner) {
    fetched_from_us(kind, shared, manner, Shared::torrent_announced_at).await;
}

async fn fetch_link_from_us(kind: Kind) {
    let link = Shared::magnet_announced_at;
    fetched_from_us(kind, several_files(), Manner::default(), link).await;
}

/// It fetches what `torrent` names, with the address of a tracker that announces a seeder of ours.
async fn fetched_from_us(
    kind: Kind,
    shared: Shared,
    manner: Manner,
    torrent: impl FnOnce(&Shared, SocketAddr) -> Torrent,
) {
    let transports = match manner.utp {
        true => IpTransports::UTP,
        false => IpTransports::TCP,
    };
    let at = format!("{HOST}:0").parse().unwrap();
    let listener = Listener::bind_over(at, transports).await.unwrap();
    let tracker = Tracker::start(HOST, listener.local_addr()).await;
    let torrent = torrent(&shared, tracker.addr);
    let network = network(manner).with_listener(listener);
    let (metainfo, content) = (shared.metainfo.clone(), shared.content());
    let options = SeedOptions::default();
    let seed = Seed::start(metainfo, content, network, options, |_, _| {});
    let seed = seed.await.unwrap();
    let target = shared.dir.path().join("theirs");
    let client = Client::start(kind, torrent, &target, HOST, manner);
    client.until(|| shared.is_same_in(&target)).await;
    seed.stop().await.unwrap();
}

/// It seeds, and this side begins with a magnet link.
async fn seed_link_to_us(kind: Kind) {
    seed_link_of(kind, several_files()).await;
}

async fn seed_link_of(kind: Kind, shared: Shared) {
    let no_peer = "10.77.0.1:1".parse().unwrap();
    let tracker = Tracker::start(HOST, no_peer).await;
    let torrent = shared.torrent_announced_at(tracker.addr);
    let from = shared.seeded_from();
    let client = Client::start(kind, torrent, &from, HOST, Manner::default());
    client.until_seeding().await;
    let hashes = shared.metainfo.info_hashes();
    let peers = vec![client.addr.into()];
    let resolve = Resolve::start(hashes, peers.clone(), Network::ip(), PATIENCE);
    let resolved = resolve.wait().await;
    let resolved = resolved.unwrap_or_else(|error| panic!("{error}\n{}", client.log()));
    assert_eq!(resolved.metainfo.files, shared.metainfo.files);
    let (target, options) = (shared.dir.path().join("ours"), DownloadOptions::default());
    let metainfo = resolved.metainfo;
    let download = Download::start(metainfo, target.clone(), peers, Network::ip(), options);
    let ended = tokio::time::timeout(PATIENCE, download.wait()).await;
    let ended = ended.unwrap_or_else(|_| panic!("the download hangs: {}", client.log()));
    ended.unwrap_or_else(|error| panic!("{error}: {}", client.log()));
    assert!(shared.is_same_in(&target));
}

/// It pauses for `pause` after the first megabyte, as a stopped process does.
async fn seed_to_us(kind: Kind, shared: Shared, pause: Option<Duration>, manner: Manner) {
    // The program queries a tracker, which announces no peer.
    let no_peer = "10.77.0.1:1".parse().unwrap();
    let tracker = Tracker::start(HOST, no_peer).await;
    let torrent = shared.torrent_announced_at(tracker.addr);
    let client = Client::start(kind, torrent, &shared.seeded_from(), HOST, manner);
    if !manner.utp {
        client.until_seeding().await;
    }
    let target = shared.dir.path().join("ours");
    let (metainfo, options) = (shared.metainfo.clone(), DownloadOptions::default());
    let (peers, network) = (vec![client.addr.into()], network(manner));
    let download = Download::start(metainfo, target.clone(), peers, network, options);
    let mut progress = download.progress();
    if let Some(pause) = pause {
        let begun = progress.wait_for(|progress| progress.verified_bytes > 1_000_000);
        let begun = tokio::time::timeout(PATIENCE, begun).await;
        drop(begun.unwrap().unwrap());
        client.pause(true);
        tokio::time::sleep(pause).await;
        client.pause(false);
    }
    let ended = tokio::time::timeout(PATIENCE, download.wait()).await;
    let last = || format!("{:?}\n{}", progress.borrow(), client.log());
    let ended = ended.unwrap_or_else(|_| panic!("the download hangs: {}", last()));
    ended.unwrap_or_else(|error| panic!("{error}: {}", last()));
    assert!(shared.is_same_in(&target));
    assert!(progress.borrow().idle_peers.is_empty(), "{}", last());
}
