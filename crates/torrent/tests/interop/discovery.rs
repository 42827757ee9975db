//! Peers found in one way alone, with other BitTorrent programs in both directions: by a tracker over HTTP,
//! by one over UDP, by other peers (PEX), and by a private DHT. The programs, the namespace of each test
//! and the content are those of the transfers.

#[path = "discovery/ours.rs"]
mod ours;

use std::net::SocketAddr;
use std::time::Duration;

use hawser_torrent::{PathProgress, PathState, RateLimits};

use self::ours::{Dht, Finding, Member, Seeder, Tracker, complete, fetch};
use crate::clients::{
    Client, Finds, Kind, Manner, PATIENCE, Shared, Torrent, inside, several_files, single_file,
};

/// The address of this program in the namespace.
const HOST: &str = "10.77.0.1";

/// The address of a seeder that another peer knows: Transmission tells peers apart by their IP addresses.
const ELSEWHERE: &str = "10.77.0.2";

/// The address of the other program: libtorrent finds itself in the DHT, connects, and bans the address.
const THEIRS: &str = "10.77.0.3";

/// Most times that a program which finds peers by a DHT is started. libtorrent asks and announces once when it
/// has a torrent, and then after a quarter of an hour: if it knew no node at first, it is started again.
const STARTS: u32 = 3;

/// How long a program that finds peers by a DHT is waited for, before it is started again.
const WAIT: Duration = Duration::from_secs(150);

/// KiB per second for a peer that is to tell others of a seeder, not to be one soon.
const TRICKLE: u32 = 50;

/// The tests of one program, each of which is run in a namespace of its own.
macro_rules! with {
    ($module:ident, $kind:expr) => {
        mod $module {
            use super::*;

            test_in_namespace!(of_http_tracker, by_http($kind));
            test_in_namespace!(of_udp_tracker, by_udp($kind));
            test_in_namespace!(of_exchange, by_exchange($kind));
            test_in_namespace!(of_dht, by_dht($kind));
        }
    };
}

macro_rules! test_in_namespace {
    ($name:ident, $run:ident($kind:expr)) => {
        #[tokio::test(flavor = "multi_thread")]
        #[ignore = "run by a test below, in its namespace"]
        async fn $name() {
            $run($kind).await;
        }
    };
}

with!(aria2, Kind::Aria2);
with!(libtorrent, Kind::Libtorrent);
with!(qbittorrent, Kind::QBittorrent);
with!(rtorrent, Kind::RTorrent);
with!(transmission, Kind::Transmission);

mod lftp {
    use super::*;

    test_in_namespace!(of_http_tracker, by_http(Kind::Lftp));
    test_in_namespace!(of_udp_tracker, by_udp(Kind::Lftp));
}

/// The programs, and the modules with their tests.
const PROGRAMS: [(&str, Kind); 6] = [
    ("aria2", Kind::Aria2),
    ("lftp", Kind::Lftp),
    ("libtorrent", Kind::Libtorrent),
    ("qbittorrent", Kind::QBittorrent),
    ("rtorrent", Kind::RTorrent),
    ("transmission", Kind::Transmission),
];

/// With this variable, what takes minutes is tested, too.
const SLOW: &str = "HAWSER_INTEROP_SLOW";

/// Runs a test with these programs at once: they wait most of the time.
fn with_all(programs: &[(&str, Kind)], test: &str) {
    std::thread::scope(|scope| {
        for &(module, kind) in programs {
            scope.spawn(move || inside(kind, &format!("discovery::{module}::{test}"), HOST));
        }
    });
}

#[test]
fn by_trackers_over_http_alone() {
    with_all(&PROGRAMS, "of_http_tracker");
}

#[test]
fn by_trackers_over_udp_alone() {
    with_all(&PROGRAMS, "of_udp_tracker");
}

#[test]
fn by_other_peers_alone() {
    let is_slow = |kind| kind == Kind::RTorrent;
    let tested = except_lftp().filter(|(_, kind)| {
        let is_tested = !is_slow(*kind) || std::env::var_os(SLOW).is_some();
        if !is_tested {
            println!("skipped: {kind:?} takes minutes: tested if {SLOW} is set");
        }
        is_tested
    });
    with_all(&tested.collect::<Vec<_>>(), "of_exchange");
}

#[test]
fn by_a_private_dht_alone() {
    with_all(&except_lftp().collect::<Vec<_>>(), "of_dht");
}

/// lftp does not connect to peers that others tell it of, and enters no DHT by itself.
fn except_lftp() -> impl Iterator<Item = (&'static str, Kind)> {
    let programs = PROGRAMS.into_iter();
    programs.filter(|(_, kind)| *kind != Kind::Lftp)
}

/// The page with the table of what these tests and those of `interop` show.
const PAGE: &str = include_str!("../../../../docs/downloading-and-seeding.md");

/// The rows of these tests in the table.
const ROWS: [(&str, [&str; 6]); 4] = [
    ("found by a tracker over HTTP alone", ["both"; 6]),
    ("found by a tracker over UDP alone", ["both"; 6]),
    (
        "found by other peers alone (`ut_pex`)",
        ["both", "⁵", "both", "both", "both", "both"],
    ),
    (
        "found by a private DHT alone",
        ["both", "⁵", "both", "both", "seeds ⁴", "both"],
    ),
];

#[test]
fn the_page_says_what_is_tested() {
    for (what, cells) in ROWS {
        let row = format!("| {what} | {} |", cells.join(" | "));
        assert!(PAGE.lines().any(|line| line == row), "no such row: {row}");
    }
}

async fn by_http(kind: Kind) {
    tokio::join!(
        it_fetches_by_tracker(kind, single_file(), |tracker| &tracker.http),
        it_seeds_by_tracker(kind, several_files(), |tracker| &tracker.http),
    );
}

async fn by_udp(kind: Kind) {
    tokio::join!(
        it_fetches_by_tracker(kind, several_files(), |tracker| &tracker.udp),
        it_seeds_by_tracker(kind, single_file(), |tracker| &tracker.udp),
    );
}

/// Both sides know nothing but a tracker of this program; it dials.
async fn it_fetches_by_tracker(kind: Kind, shared: Shared, url: fn(&Tracker) -> &String) {
    let tracker = Tracker::start(HOST);
    let url = url(&tracker);
    let seeder = Seeder::start(&shared, HOST, Finding::Tracker(url.clone())).await;
    tracker.until_seeder(String::new).await;
    let torrent = shared.torrent_announced_to(url);
    it_fetches(kind, &shared, &seeder, torrent, Manner::default()).await;
}

/// Both sides know nothing but a tracker of this program; this side dials.
async fn it_seeds_by_tracker(kind: Kind, shared: Shared, url: fn(&Tracker) -> &String) {
    let tracker = Tracker::start(HOST);
    let url = url(&tracker);
    let torrent = shared.torrent_announced_to(url);
    let from = shared.seeded_from();
    let client = Client::start(kind, torrent, &from, THEIRS, Manner::default());
    tracker.until_seeder(|| client.log()).await;
    let finding = Finding::Tracker(url.clone());
    fetch(&shared, HOST, finding, || client.log()).await;
}

async fn it_fetches(
    kind: Kind,
    shared: &Shared,
    seeder: &Seeder,
    torrent: Torrent,
    manner: Manner,
) {
    let target = shared.dir.path().join("theirs");
    let client = Client::start(kind, torrent, &target, THEIRS, manner);
    client.until(|| shared.is_same_in(&target)).await;
    seeder.until_sent(shared.metainfo.pieces.total).await;
}

async fn by_dht(kind: Kind) {
    let dht = Dht::start().await;
    let fetches = async {
        if kind != Kind::RTorrent {
            it_fetches_by_dht(kind, single_file(), &dht).await;
        }
    };
    tokio::join!(fetches, it_seeds_by_dht(kind, several_files(), &dht));
}

fn by_node(node: SocketAddr) -> Manner {
    Manner {
        finds: Finds::Dht(node),
        ..Manner::default()
    }
}

/// The torrent for a program that finds no peers by trackers. rTorrent loads none without a tracker: there
/// is none at that address.
fn without_trackers(kind: Kind, shared: &Shared) -> Torrent {
    match kind {
        Kind::RTorrent => shared.torrent_announced_to(&format!("http://{HOST}:1/announce")),
        _ => shared.torrent_without_tracker(),
    }
}

/// Starts a program until `so`, which waits for at most [`WAIT`], is true of it.
async fn start_until(start: impl Fn() -> Client, so: impl AsyncFn(&Client) -> bool) -> Client {
    let mut logs = Vec::new();
    for _ in 0..STARTS {
        let client = start();
        if so(&client).await {
            return client;
        }
        logs.push(client.log());
    }
    panic!(
        "not so, after {STARTS} starts:\n{}",
        logs.join("\n\nnext start:\n")
    );
}

/// Both sides know nothing but one node of a DHT; it dials.
async fn it_fetches_by_dht(kind: Kind, shared: Shared, dht: &Dht) {
    let node = dht.entry();
    let seeder = Seeder::start(&shared, HOST, Finding::Dht(node)).await;
    let announced = dht.has_peer_within(PATIENCE, &shared.metainfo).await;
    assert!(announced, "the seeder is not in the DHT");
    let torrent = without_trackers(kind, &shared);
    let target = shared.dir.path().join("theirs");
    let start = || Client::start(kind, torrent.clone(), &target, THEIRS, by_node(node));
    let has_all =
        async |client: &Client| client.is_within(WAIT, || shared.is_same_in(&target)).await;
    start_until(start, has_all).await;
    seeder.until_sent(shared.metainfo.pieces.total).await;
}

/// Both sides know nothing but one node of a DHT; this side dials.
async fn it_seeds_by_dht(kind: Kind, shared: Shared, dht: &Dht) {
    let node = dht.entry();
    let torrent = without_trackers(kind, &shared);
    let from = shared.seeded_from();
    let start = || Client::start(kind, torrent.clone(), &from, THEIRS, by_node(node));
    let is_announced = async |_: &Client| dht.has_peer_within(WAIT, &shared.metainfo).await;
    let client = start_until(start, is_announced).await;
    fetch(&shared, HOST, Finding::Dht(node), || client.log()).await;
}

async fn by_exchange(kind: Kind) {
    tokio::join!(
        it_hears_of_a_seeder(kind, single_file()),
        it_tells_of_a_seeder(kind, several_files()),
    );
}

/// What a slow peer may send and receive.
fn trickle() -> RateLimits {
    let rate = Some(u64::from(TRICKLE) * 1024);
    RateLimits {
        upload: rate,
        download: rate,
    }
}

/// A slow peer of this program knows a seeder and the program, which fetches.
async fn it_hears_of_a_seeder(kind: Kind, shared: Shared) {
    let folder = |name| shared.dir.path().join(name);
    let (target, between) = (folder("theirs"), folder("slow"));
    let torrent = without_trackers(kind, &shared);
    let client = Client::start(kind, torrent, &target, THEIRS, by_others());
    client.until_seeding().await;
    let seeder = Seeder::start(&shared, ELSEWHERE, Finding::Nowhere).await;
    let slow = Member {
        shared: &shared,
        dir: &between,
        peers: vec![seeder.addr, client.addr],
        limits: trickle(),
        seeds: true,
    };
    let _slow = slow.start();
    client.until(|| shared.is_same_in(&target)).await;
    // The slow peer has not had time to pass on more than a part.
    seeder.until_sent(shared.metainfo.pieces.total / 2).await;
}

/// The program is slow and knows a seeder of this program, by a tracker that knows no other peer. A download
/// dials the program, and fetches.
async fn it_tells_of_a_seeder(kind: Kind, shared: Shared) {
    let folder = |name| shared.dir.path().join(name);
    let (target, between) = (folder("ours"), folder("slow"));
    let seeder = Seeder::start(&shared, ELSEWHERE, Finding::Nowhere).await;
    // aria2 tells of those peers alone that are new to it: here, of one that it finds later than this side.
    let is_late = kind == Kind::Aria2;
    let nobody = format!("{HOST}:1").parse().unwrap();
    let first = if is_late { nobody } else { seeder.addr };
    let tracker = crate::clients::Tracker::start(HOST, first).await;
    let torrent = shared.torrent_announced_at(tracker.addr);
    let manner = Manner {
        rate: Some(TRICKLE),
        download_rate: Some(TRICKLE),
        ..by_others()
    };
    let client = Client::start(kind, torrent, &between, THEIRS, manner);
    client.until_seeding().await;
    let download = Member {
        shared: &shared,
        dir: &target,
        peers: vec![client.addr],
        limits: RateLimits::default(),
        seeds: false,
    };
    let download = download.start();
    if is_late {
        let mut progress = download.progress();
        let begun = progress.wait_for(|it| it.paths.iter().any(is_connected));
        let begun = tokio::time::timeout(PATIENCE, begun).await;
        assert!(begun.is_ok(), "not connected:\n{}", client.log());
        tracker.announce(seeder.addr);
    }
    let report = complete(download, || client.log()).await;
    assert!(shared.is_same_in(&target));
    let seeder = Some(seeder.addr);
    let from_seeder = report.paths.iter().filter(|path| path.peer.ip() == seeder);
    let bytes: u64 = from_seeder.map(|path| path.bytes).sum();
    assert!(bytes > shared.metainfo.pieces.total / 2, "{report:?}");
}

fn is_connected(path: &PathProgress) -> bool {
    use PathState::{Active, Idle, Stalled};
    matches!(path.state, Active | Idle | Stalled)
}

fn by_others() -> Manner {
    Manner {
        finds: Finds::Exchange,
        ..Manner::default()
    }
}
