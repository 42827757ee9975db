//! The nodes of the DHT beside the engine: peers tell each other where theirs are (`PORT`, BEP 5).

use hawser_address::PeerAddr;
use tokio::sync::mpsc;

/// Nodes of peers that may wait to be taken. Further ones are dropped: a DHT needs few to begin with.
const MAX_WAITING: usize = 64;

/// The ports of the nodes of the DHT that this program has, and where those of peers go. Peers are told
/// the port of the node of their kind: over IPv4, over IPv6, over SCION.
#[derive(Debug, Clone)]
pub struct DhtContacts {
    v4: Option<u16>,
    v6: Option<u16>,
    scion: Option<u16>,
    nodes: mpsc::Sender<PeerAddr>,
}

impl DhtContacts {
    /// With nodes at these addresses; and the nodes of peers, as they are named.
    pub fn new(local: &[PeerAddr]) -> (Self, mpsc::Receiver<PeerAddr>) {
        let (nodes, named) = mpsc::channel(MAX_WAITING);
        let ip = |v4: bool| {
            let mut ips = local.iter().filter_map(|addr| addr.ip());
            ips.find(|addr| addr.is_ipv4() == v4)
                .map(|addr| addr.port())
        };
        let scion = local.iter().find_map(|addr| addr.scion());
        let contacts = Self {
            v4: ip(true),
            v6: ip(false),
            scion: scion.map(|addr| addr.host.port()),
            nodes,
        };
        (contacts, named)
    }

    /// The port of the node that a peer can ask, if there is one of its kind.
    pub(crate) fn port(&self, peer: PeerAddr) -> Option<u16> {
        match peer {
            PeerAddr::Scion(_) => self.scion,
            PeerAddr::Ip(addr) if addr.ip().to_canonical().is_ipv4() => self.v4,
            PeerAddr::Ip(_) => self.v6,
        }
    }

    /// A peer has named the port of its node.
    pub(crate) fn name(&self, peer: PeerAddr, port: u16) {
        let mut node = peer;
        match &mut node {
            PeerAddr::Scion(addr) => addr.host.set_port(port),
            PeerAddr::Ip(addr) => addr.set_port(port),
        }
        if node.is_reachable() {
            let _ = self.nodes.try_send(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> PeerAddr {
        text.parse().unwrap()
    }

    #[test]
    fn peers_are_told_the_port_of_the_node_of_their_kind() {
        let ip = |text: &str| PeerAddr::Ip(text.parse().unwrap());
        let scion = addr("1-ff00:0:110,10.0.0.1:3");
        let local = [ip("0.0.0.0:1"), ip("[::]:2"), scion];
        let (contacts, _named) = DhtContacts::new(&local);
        let peers = ["8.8.8.8:9", "[2001:db8::1]:9", "1-ff00:0:111,10.0.0.1:9"].map(addr);
        assert_eq!(
            peers.map(|peer| contacts.port(peer)),
            [Some(1), Some(2), Some(3)]
        );
        let mapped = addr("[::ffff:8.8.8.8]:9");
        assert_eq!(contacts.port(mapped), Some(1));
        let (none, _named) = DhtContacts::new(&local[1..2]);
        assert_eq!(peers.map(|peer| none.port(peer)), [None, Some(2), None]);
    }

    #[test]
    fn nodes_of_peers_are_at_their_hosts_and_a_bounded_number_waits() {
        let (contacts, mut named) = DhtContacts::new(&[]);
        contacts.name(addr("8.8.8.8:9"), 0);
        contacts.name(addr("8.8.8.8:9"), 7);
        contacts.name(addr("1-ff00:0:111,10.0.0.1:9"), 8);
        let mut next = || named.try_recv().ok();
        assert_eq!(next(), Some(addr("8.8.8.8:7")));
        assert_eq!(next(), Some(addr("1-ff00:0:111,10.0.0.1:8")));
        assert_eq!(next(), None);
        for port in 1..=1000 {
            contacts.name(addr("8.8.8.8:9"), port);
        }
        let taken = std::iter::from_fn(|| named.try_recv().ok());
        assert_eq!(taken.count(), MAX_WAITING);
    }
}
