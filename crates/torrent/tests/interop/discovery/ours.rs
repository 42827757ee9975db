//! The peers of this program, each of which finds others in one way alone.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_discovery::{
    Client, ClientOptions, DhtNodes, MappedPort, Monitor, PeerFinder, PeerPorts, SavedNodes,
    ServeOptions, Server, Sought,
};
use hawser_torrent::{
    Download, DownloadOptions, Listener, Metainfo, Network, Progress, RateLimits, Seed, SeedLimits,
    SeedOptions, SeedProgress, new_peer_id,
};
use hawser_tracker::Stats;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::clients::{PATIENCE, PUBLIC_NODE, Shared};

/// Nodes of the private DHT: Transmission asks none that knows fewer than nine.
const NODES: u8 = 20;

/// How long one search of the DHT is waited for.
const SEARCH: Duration = Duration::from_secs(5);

/// A task that ends when this is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A tracker of this program, over HTTP and UDP.
pub struct Tracker {
    pub http: String,
    pub udp: String,
    monitor: Monitor,
    _task: Task,
}

impl Tracker {
    pub fn start(host: &str) -> Self {
        let any: SocketAddr = format!("{host}:0").parse().unwrap();
        let server = Server::bind(ServeOptions {
            http: vec![any],
            udp: vec![any],
            ..ServeOptions::default()
        });
        let server = server.unwrap();
        let (http, udp) = (
            server.http_addrs().unwrap()[0],
            server.udp_addrs().unwrap()[0],
        );
        let monitor = server.monitor();
        let task = tokio::spawn(async move {
            // It writes nothing, so that nothing fails.
            let _ = server.run(&CancellationToken::new()).await;
        });
        Self {
            http: format!("http://{http}/announce"),
            udp: format!("udp://{udp}/announce"),
            monitor,
            _task: Task(task),
        }
    }

    /// Waits until a seeder has announced itself; `log` says what else is known of it.
    pub async fn until_seeder(&self, log: impl Fn() -> String) {
        let announced = async {
            while self.monitor.counters().seeders == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let announced = timeout(PATIENCE, announced).await;
        assert!(announced.is_ok(), "{:?}\n{}", self.monitor, log());
    }
}

/// A private DHT of nodes of this program.
pub struct Dht {
    nodes: Vec<DhtNodes>,
}

impl Dht {
    /// Starts it.
    pub async fn start() -> Self {
        let others = (1..NODES).map(|number| SocketAddr::from(([10, 77, 0, 100 + number], 0)));
        let nodes: Vec<DhtNodes> = std::iter::once(PUBLIC_NODE)
            .chain(others)
            .map(node)
            .collect();
        let entry = nodes[0].local_addrs();
        for other in &nodes[1..] {
            other.add_nodes(&entry).await;
        }
        Self { nodes }
    }

    /// The node at which others enter it.
    pub fn entry(&self) -> SocketAddr {
        self.nodes[0].local_addrs()[0].ip().unwrap()
    }

    /// Waits until a peer of a torrent can be found here, for as long as `wait`; returns whether one was found.
    pub async fn has_peer_within(&self, wait: Duration, metainfo: &Metainfo) -> bool {
        let last = self.nodes.last().unwrap();
        let found = async {
            // A search that finds nobody is repeated ever later: each of these is a new one.
            loop {
                let (sink, mut found) = mpsc::channel(16);
                let ports = PeerPorts::default();
                let mapped = MappedPort::default();
                let _search = last.search(metainfo.info_hash.0, ports, &mapped, true, &sink);
                if timeout(SEARCH, found.recv()).await.is_ok() {
                    return;
                }
            }
        };
        timeout(wait, found).await.is_ok()
    }
}

fn node(at: SocketAddr) -> DhtNodes {
    let mut nodes = DhtNodes::default();
    nodes.open_ip(at, &SavedNodes::default()).unwrap();
    nodes
}

/// A way to find peers.
#[derive(Clone)]
pub enum Finding {
    /// By the tracker at this URL alone.
    Tracker(String),
    /// By the DHT alone, entered at this node.
    Dht(SocketAddr),
    /// In no way.
    Nowhere,
}

impl Finding {
    /// Searches for the peers of a torrent, on behalf of one that accepts others at `tcp`, if it does.
    /// Found peers go to `sink`.
    async fn begin(
        self,
        metainfo: &Metainfo,
        host: &str,
        tcp: Option<SocketAddr>,
        sink: Option<hawser_torrent::FoundPeers>,
    ) -> Search {
        let finder = PeerFinder::new(tcp, None);
        let downloads = sink.is_some();
        let left = if downloads { metainfo.pieces.total } else { 0 };
        let (finder, trackers) = match self {
            Self::Tracker(url) => {
                let client = Client::new(ClientOptions::default()).unwrap();
                (finder.with_trackers(client), vec![vec![url]])
            }
            Self::Dht(entry) => {
                let nodes = node(format!("{host}:0").parse().unwrap());
                nodes.add_nodes(&[PeerAddr::Ip(entry)]).await;
                (finder.with_dht(nodes), Vec::new())
            }
            Self::Nowhere => (finder, Vec::new()),
        };
        let stats = watch::Sender::new(Stats {
            left,
            ..Stats::default()
        });
        let sought = Sought {
            info_hash: metainfo.info_hash.0,
            peer_id: new_peer_id(),
            trackers,
            is_private: Some(false),
            downloads,
        };
        let mut search = finder.search(sought, stats.subscribe());
        let task = tokio::spawn(async move {
            let _stats = stats;
            loop {
                let (peers, source) = search.found().await;
                if let Some(sink) = &sink
                    && !sink.add(peers, source).await
                {
                    return;
                }
            }
        });
        Search(Task(task))
    }
}

/// A search under way.
struct Search(#[allow(dead_code, reason = "it ends when this is dropped")] Task);

/// A seeder that accepts peers, and dials none that it finds.
pub struct Seeder {
    pub addr: SocketAddr,
    seed: Seed,
    _search: Search,
}

impl Seeder {
    pub async fn start(shared: &Shared, host: &str, finding: Finding) -> Self {
        let listener = Listener::bind(format!("{host}:0").parse().unwrap()).await;
        let listener = listener.unwrap();
        let tcp = listener.local_addr();
        let network = Network::ip().with_listener(listener);
        let (metainfo, options) = (shared.metainfo.clone(), SeedOptions::default());
        let seed = Seed::start(metainfo, shared.content(), network, options, |_, _| {});
        let seed = seed.await.unwrap();
        let search = finding.begin(&shared.metainfo, host, Some(tcp), None).await;
        Self {
            addr: tcp,
            seed,
            _search: search,
        }
    }

    /// Waits until it has sent so much.
    pub async fn until_sent(&self, bytes: u64) {
        let mut progress = self.seed.progress();
        let sent = progress.wait_for(|progress| progress.uploaded_bytes >= bytes);
        let sent = timeout(PATIENCE, sent).await;
        let last = progress_of(&self.seed);
        assert!(sent.is_ok(), "less than {bytes} bytes: {last:?}");
    }
}

fn progress_of(seed: &Seed) -> SeedProgress {
    seed.progress().borrow().clone()
}

/// Fetches from peers that are found, and accepts none.
pub async fn fetch(shared: &Shared, host: &str, finding: Finding, log: impl Fn() -> String) {
    let target = shared.dir.path().join("ours");
    let options = DownloadOptions {
        finds_peers: true,
        give_up_after: Duration::MAX,
        ..DownloadOptions::default()
    };
    let metainfo = shared.metainfo.clone();
    let download = Download::start(metainfo, target.clone(), Vec::new(), Network::ip(), options);
    let sink = Some(download.found_peers());
    let _search = finding.begin(&shared.metainfo, host, None, sink).await;
    complete(download, log).await;
    assert!(shared.is_same_in(&target));
}

/// Waits for the end of a download, and returns its last report.
pub async fn complete(download: Download, log: impl Fn() -> String) -> Progress {
    let progress = download.progress();
    let ended = timeout(PATIENCE, download.wait()).await;
    let last = progress.borrow().clone();
    let ended = ended.unwrap_or_else(|_| panic!("the download hangs: {last:?}\n{}", log()));
    ended.unwrap_or_else(|error| panic!("{error}: {last:?}\n{}", log()));
    last
}

/// A peer that knows others from the start, and exchanges peers with those that it is connected to.
pub struct Member<'a> {
    pub shared: &'a Shared,
    /// The folder that gets the content.
    pub dir: &'a Path,
    pub peers: Vec<SocketAddr>,
    pub limits: RateLimits,
    /// Whether it serves others when it is complete.
    pub seeds: bool,
}

impl Member<'_> {
    pub fn start(self) -> Download {
        let options = DownloadOptions {
            exchanges_peers: true,
            give_up_after: Duration::MAX,
            limits: self.limits,
            seed: self.seeds.then(SeedLimits::default),
            ..DownloadOptions::default()
        };
        let (metainfo, dir) = (self.shared.metainfo.clone(), self.dir.to_owned());
        let peers = self.peers.into_iter().map(PeerAddr::Ip).collect();
        Download::start(metainfo, dir, peers, Network::ip(), options)
    }
}
