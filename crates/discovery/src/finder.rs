//! How the peers of all torrents of a program are found.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use hawser_address::{PeerAddr, ScionAddr};
use hawser_tracker::{AnnounceOptions, Announcer, Identity, Stats};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::dht::{DhtNode, DhtNodes, DhtSearches, PeerPorts};
use crate::local::{LocalDiscovery, LocalSearch};
use crate::mapped::MappedPort;
use crate::tracker::Client;
use crate::trackers::Trackers;

/// A torrent whose peers are to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    /// Its info-hash on the wire.
    pub info_hash: [u8; 20],
    /// The id of this peer for trackers.
    pub peer_id: [u8; 20],
    /// Its trackers, in tiers (BEP 12).
    pub trackers: Vec<Vec<String>>,
    /// Whether its peers come from its trackers alone (BEP 27); `None` while that is not known. It is not
    /// announced elsewhere until it is known not to be private.
    pub is_private: Option<bool>,
    /// Whether something of it is missing. If so, the DHT is searched more often than announcing needs, until
    /// peers are found.
    pub downloads: bool,
}

/// Which ways to find peers are on, of those that a finder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedWays {
    /// The DHT.
    pub dht: bool,
    /// The own network.
    pub local: bool,
}

impl Default for AllowedWays {
    /// All.
    fn default() -> Self {
        Self {
            dht: true,
            local: true,
        }
    }
}

/// How the peers of all torrents of a program are found: without trackers, DHT and own network at first,
/// by none. Clones have the same.
#[derive(Clone, Default)]
pub struct PeerFinder {
    tcp: Option<SocketAddr>,
    mapped: MappedPort,
    scion: Option<ScionAddr>,
    trackers: Option<Client>,
    /// Whether one tracker of each tier is asked.
    all_tiers: bool,
    /// Also added while searches run; clones share it.
    dht: Arc<OnceLock<DhtNodes>>,
    /// The same of the own network.
    local: Arc<OnceLock<LocalDiscovery>>,
    allowed: Arc<watch::Sender<AllowedWays>>,
}

impl fmt::Debug for PeerFinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerFinder")
            .field("tcp", &self.tcp)
            .field("mapped", &self.mapped.now())
            .field("scion", &self.scion)
            .field("trackers", &self.trackers.is_some())
            .field("all_tiers", &self.all_tiers)
            .field("dht", &self.dht.get())
            .field("local", &self.has_local())
            .field("allowed", &*self.allowed.borrow())
            .finish()
    }
}

impl PeerFinder {
    /// For peers that connect at these addresses; `None` where they cannot.
    pub fn new(tcp: Option<SocketAddr>, scion: Option<ScionAddr>) -> Self {
        Self {
            tcp,
            scion,
            ..Self::default()
        }
    }

    /// Announces this port to trackers over IP and to the DHT over IPv4, in place of the port of TCP, while
    /// there is one. Nodes and peers of the own network are told the port of TCP.
    pub fn with_mapped_port(mut self, port: MappedPort) -> Self {
        self.mapped = port;
        self
    }

    /// Also asks trackers.
    pub fn with_trackers(mut self, client: Client) -> Self {
        self.trackers = Some(client);
        self
    }

    /// Asks one tracker of each tier, in place of one of all tiers (BEP 12).
    pub fn with_all_tiers(mut self) -> Self {
        self.all_tiers = true;
        self
    }

    /// Also searches the DHT.
    pub fn with_dht(mut self, nodes: DhtNodes) -> Self {
        self.dht = Arc::new(nodes.into());
        self
    }

    /// Also looks for peers on the own network.
    pub fn with_local(mut self, local: LocalDiscovery) -> Self {
        self.local = Arc::new(local.into());
        self
    }

    /// Also searches the DHT from now on, if it is not searched yet: also searches that run, and all clones.
    pub fn add_dht(&self, nodes: DhtNodes) {
        if self.dht.set(nodes).is_ok() {
            self.wake();
        }
    }

    /// Also looks for peers on the own network from now on, if that is not done yet: also searches that run, and
    /// all clones.
    pub fn add_local(&self, local: LocalDiscovery) {
        if self.local.set(local).is_ok() {
            self.wake();
        }
    }

    /// Has searches look again at which ways are on.
    fn wake(&self) {
        self.allowed.send_modify(|_| {});
    }

    /// Sets which ways are on, from now on, also for searches that run, and for all clones.
    pub fn allow(&self, ways: AllowedWays) {
        self.allowed
            .send_if_modified(|allowed| std::mem::replace(allowed, ways) != ways);
    }

    /// Which ways are on, as that changes.
    pub(crate) fn allowed(&self) -> watch::Receiver<AllowedWays> {
        self.allowed.subscribe()
    }

    /// Whether the DHT is searched.
    pub fn has_dht(&self) -> bool {
        self.dht.get().is_some()
    }

    /// Whether peers are looked for on the own network.
    pub fn has_local(&self) -> bool {
        self.local.get().is_some()
    }

    /// Adds nodes of the DHT that a torrent names. Those whose names cannot be looked up are left out.
    pub async fn add_nodes(&self, named: &[DhtNode]) {
        let Some(dht) = self.dht.get() else {
            return;
        };
        for node in named {
            if let Err(error) = dht.add_node(node).await {
                tracing::warn!(%node, %error, "a node of the DHT is not known");
            }
        }
    }

    /// Has the trackers of a torrent asked, also those that it gets later; `None` if none is asked.
    pub(crate) fn ask_trackers(
        &self,
        sought: &Sought,
        stats: watch::Receiver<Stats>,
        sink: mpsc::Sender<Vec<PeerAddr>>,
    ) -> Option<Trackers> {
        let client = self.trackers.clone()?;
        let mut rng = fastrand::Rng::new();
        let identity = Identity {
            info_hash: sought.info_hash,
            peer_id: sought.peer_id,
            port: self.tcp.map_or(0, |tcp| tcp.port()),
            key: rng.u32(..),
            scion: self.scion,
        };
        let options = AnnounceOptions {
            all_tiers: self.all_tiers,
            ..AnnounceOptions::default()
        };
        let now = Instant::now().into_std();
        let announcer = Announcer::new(identity, &sought.trackers, options, rng, now);
        // They are stopped by their handle.
        let stop = CancellationToken::new();
        let mapped = self.mapped.clone();
        Some(Trackers::spawn(
            client, announcer, mapped, stats, sink, &stop,
        ))
    }

    /// Searches the DHT for a torrent, and announces it if it is known not to be private.
    pub(crate) fn search_dht(
        &self,
        sought: &Sought,
        sink: &mpsc::Sender<Vec<PeerAddr>>,
    ) -> Option<DhtSearches> {
        let ports = match sought.is_private {
            Some(true) => return None,
            Some(false) => PeerPorts::of(self.tcp, self.scion),
            None => PeerPorts::default(),
        };
        let nodes = self.dht.get().filter(|_| self.allowed.borrow().dht)?;
        let (info_hash, mapped) = (sought.info_hash, &self.mapped);
        Some(nodes.search(info_hash, ports, mapped, sought.downloads, sink))
    }

    /// Looks for a torrent on the own network, and announces it if it is known not to be private.
    pub(crate) fn search_locally(
        &self,
        sought: &Sought,
        sink: mpsc::Sender<Vec<PeerAddr>>,
    ) -> Option<LocalSearch> {
        let announces = match sought.is_private {
            Some(true) => return None,
            known => known == Some(false),
        };
        let local = self.local.get();
        let local = local.filter(|_| self.allowed.borrow().local)?;
        Some(local.search(sought.info_hash, announces, sink))
    }
}
