//! One swarm of peers in a SCION network, peers on plain IP, and peers on both: a seeder on both, four
//! leechers on SCION, two on both, and two on plain IP, which find each other in one way alone.
//!
//! Each test prints how fast the peers on SCION were, beside what the links allow:
//! `cargo test -p hawser-torrent --test mixed -- --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod content;
#[path = "../../endhost/tests/hosts/toy.rs"]
mod toy;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser_discovery::{
    Client, ClientOptions, DhtNodes, PeerFinder, SavedNodes, ScionDatagrams, ServeOptions, Server,
    Sought,
};
use hawser_endhost::Endhost;
use hawser_quic::{Config, Endpoint};
use hawser_torrent::{
    CreateOptions, Download, DownloadOptions, Listener, Network, PeerAddr, Phase, Progress,
    SeedLimits, new_peer_id,
};
use hawser_tracker::{Stats, SwarmOptions};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::content::Content;
use self::toy::{ToyNet, own_ip};

/// Longest wait for an event that must come: far longer than it takes.
const LONG: Duration = Duration::from_secs(300);

/// Bytes of the content.
const SIZE: usize = 6_000_000;

/// Bytes per second of each link between the ASes, headers included.
const RATE: u64 = 3_000_000;

/// The seeder and the leechers, with the networks that they are in.
const SEEDER: Kind = Kind::Both;
const LEECHERS: [Kind; 8] = [
    Kind::Both,
    Kind::Both,
    Kind::Scion,
    Kind::Scion,
    Kind::Scion,
    Kind::Scion,
    Kind::Ip,
    Kind::Ip,
];

/// The networks that a peer is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scion,
    Ip,
    Both,
}

/// How peers find each other.
enum Way {
    /// By trackers at these URLs, over plain IP and over SCION.
    Trackers { ip: String, scion: String },
    /// By the DHTs over plain IP and over SCION, entered at these nodes.
    Dht(Vec<PeerAddr>),
    /// One of them is named to all, and the seeder to that one.
    Exchange,
}

/// The networks, and the content.
struct Site {
    net: ToyNet,
    content: Content,
}

/// A peer at work.
struct Peer {
    kind: Kind,
    dir: PathBuf,
    download: Download,
    addrs: Vec<PeerAddr>,
    search: Option<AbortHandle>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(search) = &self.search {
            search.abort();
        }
    }
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

impl Site {
    async fn new() -> Self {
        let net = ToyNet::with_links(2).await;
        for link in &net.links {
            link.conduct.delay.store(2, Ordering::SeqCst);
            link.conduct.rate.store(RATE, Ordering::SeqCst);
            link.conduct.queue.store(RATE / 10, Ordering::SeqCst);
        }
        let options = CreateOptions {
            piece_length: Some(65536),
            ..CreateOptions::default()
        };
        let content = Content::new(SIZE, &options);
        Self { net, content }
    }

    /// Starts a peer at the loopback addresses of this number; `at_seeder` puts it in the seeder's AS.
    async fn start(
        &self,
        number: u8,
        kind: Kind,
        at_seeder: bool,
        way: &Way,
        named: Vec<PeerAddr>,
    ) -> Peer {
        let daemon = if at_seeder { &self.net.b } else { &self.net.a };
        let host = daemon.endhost().await;
        let (mut network, mut addrs, mut scion, mut tcp) = (Network::ip(), Vec::new(), None, None);
        if kind != Kind::Ip {
            let at = Some((own_ip(number), 0).into());
            let endpoint = Endpoint::bind(host.clone(), at, Config::default()).unwrap();
            scion = Some(endpoint.local_addr());
            addrs.push(PeerAddr::Scion(endpoint.local_addr()));
            network = Network::scion(endpoint, host.clone());
        }
        if kind != Kind::Scion {
            let listener = Listener::bind(loopback()).await.unwrap();
            tcp = Some(listener.local_addr());
            addrs.push(PeerAddr::Ip(listener.local_addr()));
            network = network.with_listener(listener);
        }
        let dir = match at_seeder {
            true => self.content.complete(),
            false => self.content.dir.path().join(format!("get{number}")),
        };
        let options = DownloadOptions {
            awaits_peers: true,
            finds_peers: true,
            exchanges_peers: matches!(way, Way::Exchange),
            give_up_after: Duration::MAX,
            seed: Some(SeedLimits::default()),
            ..DownloadOptions::default()
        };
        let metainfo = self.content.metainfo.clone();
        let download = Download::start(metainfo, dir.clone(), named, network, options);
        let none = PeerFinder::new(tcp, scion);
        let finder = finder(way, &host, kind, number, none).await;
        let search = finder.map(|(finder, trackers)| {
            let left = if at_seeder { 0 } else { SIZE as u64 };
            self.search(&download, &finder, trackers, left)
        });
        Peer {
            kind,
            dir,
            download,
            addrs,
            search,
        }
    }

    /// Gives a download the peers that are found.
    fn search(
        &self,
        download: &Download,
        finder: &PeerFinder,
        trackers: Vec<Vec<String>>,
        left: u64,
    ) -> AbortHandle {
        let stats = watch::Sender::new(Stats {
            left,
            ..Stats::default()
        });
        let sought = Sought {
            info_hash: self.content.metainfo.info_hash.0,
            peer_id: new_peer_id(),
            trackers,
            is_private: Some(false),
            downloads: true,
        };
        let mut search = finder.search(sought, stats.subscribe());
        let sink = download.found_peers();
        let task = tokio::spawn(async move {
            let _stats = stats;
            loop {
                let (peers, source) = search.found().await;
                if !sink.add(peers, source).await {
                    return;
                }
            }
        });
        task.abort_handle()
    }
}

/// How a peer of `kind` finds others, and its trackers; `None` if it searches nowhere.
async fn finder(
    way: &Way,
    host: &Endhost,
    kind: Kind,
    number: u8,
    finder: PeerFinder,
) -> Option<(PeerFinder, Vec<Vec<String>>)> {
    let in_scion = kind != Kind::Ip;
    match way {
        Way::Trackers { ip, scion } => {
            let socket = in_scion.then(|| -> Arc<dyn hawser_discovery::Datagrams> {
                Arc::new(ScionDatagrams::bind(host, Some((own_ip(number), 0).into())).unwrap())
            });
            let client = Client::new(ClientOptions {
                scion: socket,
                ..ClientOptions::default()
            });
            let url = match kind {
                Kind::Scion => vec![scion.clone()],
                Kind::Ip | Kind::Both => vec![ip.clone()],
            };
            Some((finder.with_trackers(client.unwrap()), vec![url]))
        }
        Way::Dht(entries) => {
            let nodes = nodes(host, kind, number);
            nodes.add_nodes(entries).await;
            Some((finder.with_dht(nodes), Vec::new()))
        }
        Way::Exchange => None,
    }
}

/// Nodes of the DHTs. A node announces peers at its own host, so the one over SCION is where the peer is.
fn nodes(host: &Endhost, kind: Kind, number: u8) -> DhtNodes {
    let (mut nodes, saved) = (DhtNodes::default(), SavedNodes::default());
    if kind != Kind::Ip {
        let at = (own_ip(number), 0).into();
        nodes.open_scion(host, Some(at), &saved).unwrap();
    }
    if kind != Kind::Scion {
        nodes.open_ip(loopback(), &saved).unwrap();
    }
    nodes
}

/// Waits until a download has everything.
async fn complete(download: &Download) -> Progress {
    let mut progress = download.progress();
    let done = progress.wait_for(|progress| progress.phase == Phase::Seeding);
    let done = timeout(LONG, done).await.map(|done| done.map(|_| ()));
    let last = progress.borrow().clone();
    match done {
        Ok(Ok(())) => last,
        other => panic!("not complete ({other:?}): {last:#?}"),
    }
}

/// Runs the swarm to its end.
async fn all_finish(site: &Site, way: &Way, what: &str) {
    let seeder = site.start(1, SEEDER, true, way, Vec::new()).await;
    complete(&seeder.download).await;
    let mut leechers: Vec<Peer> = Vec::new();
    for (number, kind) in (2..).zip(LEECHERS) {
        let named = match (way, leechers.first()) {
            (Way::Exchange, None) => seeder.addrs.clone(),
            (Way::Exchange, Some(first)) => {
                let first = first.addrs.iter().copied();
                let reached = |addr: &PeerAddr| match kind {
                    Kind::Scion => addr.scion().is_some(),
                    Kind::Ip => addr.ip().is_some(),
                    Kind::Both => true,
                };
                first.filter(reached).collect()
            }
            _ => Vec::new(),
        };
        leechers.push(site.start(number, kind, false, way, named).await);
    }
    // What the links let through in a second, all headers included.
    let links = (RATE * site.net.links.len() as u64) as f64 * 8e-6;
    let expected = std::fs::read(site.content.file()).unwrap();
    for leecher in &leechers {
        let report = complete(&leecher.download).await;
        let got = std::fs::read(leecher.dir.join("file.bin")).unwrap();
        assert!(got == expected, "{:?} has another file", leecher.kind);
        let over_scion = report
            .paths
            .iter()
            .filter(|path| path.peer.scion().is_some());
        let over_scion: u64 = over_scion.map(|path| path.bytes).sum();
        let seconds = report.elapsed.as_secs_f64();
        println!(
            "{what}, a peer on {:?}: {seconds:.1} s, {:.1} Mbit/s, {over_scion} bytes over dialed \
             SCION paths; the links to the seeder carry {links:.0} Mbit/s",
            leecher.kind,
            SIZE as f64 * 8e-6 / seconds
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_swarm_finds_itself_by_trackers_alone() {
    let site = Site::new().await;
    let host = site.net.a.endhost().await;
    let socket = ScionDatagrams::bind(&host, Some((own_ip(100), 0).into())).unwrap();
    let scion = socket.local_addr();
    let server = Server::bind(ServeOptions {
        http: vec![loopback()],
        scion: Some(Arc::new(socket)),
        // Those that announced themselves before the seeder did soon do so again.
        swarms: SwarmOptions {
            interval: Duration::from_secs(5),
            min_interval: Duration::from_secs(1),
            ..SwarmOptions::default()
        },
        ..ServeOptions::default()
    });
    let server = server.unwrap();
    let ip = format!("http://{}/announce", server.http_addrs().unwrap()[0]);
    let scion = format!(
        "udp://[{},{}]:{}",
        scion.isd_as,
        scion.host.ip(),
        scion.host.port()
    );
    let (stop, monitor) = (CancellationToken::new(), server.monitor());
    let stopped = stop.clone();
    let served = tokio::spawn(async move { server.run(&stopped).await });
    all_finish(&site, &Way::Trackers { ip, scion }, "by trackers").await;
    println!("{:?}", monitor.counters());
    stop.cancel();
    served.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_swarm_finds_itself_by_the_dht_alone() {
    let site = Site::new().await;
    let host = site.net.a.endhost().await;
    let entry = nodes(&host, Kind::Both, 100);
    let way = Way::Dht(entry.local_addrs());
    all_finish(&site, &way, "by the DHT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_swarm_finds_itself_by_exchange_alone() {
    let site = Site::new().await;
    all_finish(&site, &Way::Exchange, "by exchange").await;
}
