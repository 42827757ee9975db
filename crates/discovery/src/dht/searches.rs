//! The searches for one torrent, repeated as long as it is there.

use std::net::{IpAddr, SocketAddr};

use hawser_address::{PeerAddr, ScionAddr};
use hawser_dht::{Address, Announce, Summary};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::schedule::{Aim, Schedule};
use super::{DhtError, DhtHandle};
use crate::mapped::MappedPort;

/// The ports at which peers of each kind of address connect; `None` where they cannot, and nothing is
/// announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerPorts {
    /// Over IPv4, a TCP port.
    pub v4: Option<u16>,
    /// Over IPv6, a TCP port.
    pub v6: Option<u16>,
    /// Over SCION, a UDP port (QUIC), with its host.
    pub scion: Option<ScionAddr>,
}

impl PeerPorts {
    /// The ports of a TCP socket and of an endpoint in a SCION network. A TCP socket at `[::]` takes IPv4, too.
    pub fn of(tcp: Option<SocketAddr>, scion: Option<ScionAddr>) -> Self {
        let of = |takes: fn(IpAddr) -> bool| {
            let tcp = tcp.filter(|tcp| takes(tcp.ip()));
            tcp.map(|tcp| tcp.port())
        };
        Self {
            v4: of(|ip| ip.is_ipv4() || ip.is_unspecified()),
            v6: of(|ip| ip.is_ipv6()),
            scion,
        }
    }

    /// The port to announce at the node over SCION at `node`. Other nodes store peers at the host that asks
    /// them, and no query can name another, so a peer elsewhere is not announced.
    pub(super) fn at_scion_node(&self, node: ScionAddr) -> Option<u16> {
        let peer = self.scion?;
        if !peer.is_same_host(node) {
            tracing::warn!(%peer, %node, "the DHT names peers at the host of their node alone: this one is \
                not announced, unless its node runs at its host");
            return None;
        }
        Some(peer.host.port())
    }
}

/// The port to announce at the nodes of one kind of address.
#[derive(Debug)]
pub(super) struct Port {
    local: Option<u16>,
    mapped: MappedPort,
}

impl Port {
    /// The port of peers, and the one in its place while a gateway maps one.
    pub fn new(local: Option<u16>, mapped: MappedPort) -> Self {
        let local = local.filter(|port| *port != 0);
        Self { local, mapped }
    }

    /// What to announce now.
    fn announce(&mut self) -> Option<Announce> {
        let local = self.local?;
        Some(Announce::Port(self.mapped.update().unwrap_or(local)))
    }
}

/// The searches for one torrent at all nodes of this program. They end when this is dropped.
#[derive(Debug)]
pub struct DhtSearches {
    is_eager: bool,
    sink: mpsc::Sender<Vec<PeerAddr>>,
    // Ends its tasks when it is dropped.
    tasks: JoinSet<()>,
}

impl DhtSearches {
    /// Without searches yet. What they find goes to `sink`. They search as often as announcing needs, and more
    /// often if they are `is_eager`.
    pub(super) fn new(is_eager: bool, sink: mpsc::Sender<Vec<PeerAddr>>) -> Self {
        Self {
            is_eager,
            sink,
            tasks: JoinSet::new(),
        }
    }

    /// Searches at a node from now on.
    pub(super) fn search_at<A: Address + Send + Sync + 'static>(
        &mut self,
        node: DhtHandle<A>,
        info_hash: [u8; 20],
        port: Port,
    ) {
        let aim = Aim {
            // What is not announced is found in no other way.
            finds: self.is_eager || port.local.is_none(),
            announces: port.local.is_some(),
        };
        let search = repeat(node, info_hash, port, aim, self.sink.clone());
        self.tasks.spawn(search);
    }
}

async fn repeat<A: Address>(
    node: DhtHandle<A>,
    info_hash: [u8; 20],
    mut port: Port,
    aim: Aim,
    sink: mpsc::Sender<Vec<PeerAddr>>,
) {
    let mut schedule = Schedule::new(aim);
    loop {
        let Ok(summary) = search(&node, info_hash, port.announce(), &sink).await else {
            return;
        };
        tokio::select! {
            () = tokio::time::sleep(schedule.pause(summary)) => {}
            // The new port is announced at once.
            () = port.mapped.changed(), if port.local.is_some() => {}
        }
    }
}

/// One search. Returns what came of it; `None` if there are too many others.
///
/// # Errors
/// If the node was stopped.
async fn search<A: Address>(
    node: &DhtHandle<A>,
    info_hash: [u8; 20],
    announce: Option<Announce>,
    sink: &mpsc::Sender<Vec<PeerAddr>>,
) -> Result<Option<Summary>, DhtError> {
    let mut search = match node.search(info_hash, announce).await {
        Ok(search) => search,
        Err(DhtError::Search(error)) => {
            tracing::debug!(%error, "the DHT is not searched now");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    while let Some(peer) = search.recv().await {
        // Fails when nobody takes peers any more; the announcement is still made.
        let _ = sink.send(vec![peer.to_peer()]).await;
    }
    Ok(search.summary().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_announced_where_they_can_connect() {
        let ports = |tcp: Option<&str>, scion: Option<&str>| {
            let tcp = tcp.map(|tcp| tcp.parse().unwrap());
            PeerPorts::of(tcp, scion.map(|scion| scion.parse().unwrap()))
        };
        let of = |v4, v6, scion: Option<&str>| {
            let scion = scion.map(|scion| scion.parse().unwrap());
            PeerPorts { v4, v6, scion }
        };
        assert_eq!(ports(None, None), of(None, None, None));
        assert_eq!(ports(Some("0.0.0.0:1"), None), of(Some(1), None, None));
        assert_eq!(ports(Some("[::]:2"), None), of(Some(2), Some(2), None));
        assert_eq!(ports(Some("[::1]:2"), None), of(None, Some(2), None));
        let scion = Some("1-ff00:0:110,10.0.0.1:3");
        assert_eq!(ports(None, scion), of(None, None, scion));
        let announced = |node: &str| ports(None, scion).at_scion_node(node.parse().unwrap());
        assert_eq!(announced("1-ff00:0:110,10.0.0.1:9"), Some(3));
        assert_eq!(announced("1-ff00:0:110,10.0.0.2:9"), None);
        assert_eq!(announced("1-ff00:0:111,10.0.0.1:9"), None);
    }
}
