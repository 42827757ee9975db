//! The nodes of this program, one for each kind of address that it has. Each is of a DHT of its own.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use hawser_address::{PeerAddr, ScionAddr};
use hawser_dht::{Address, Config, Saved};
use hawser_endhost::Endhost;
use hawser_endhost::socket::BindError;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::name::DhtNode;
use super::scion::ScionSocket;
use super::searches::{DhtSearches, PeerPorts, Port};
use super::{DhtHandle, DhtSocket, spawn_dht};
use crate::datagrams::bind_udp;
use crate::mapped::MappedPort;
use crate::scion::ScionDatagrams;

/// The nodes of this program. They stop when it and all its clones are dropped.
#[derive(Debug, Clone, Default)]
pub struct DhtNodes {
    pub(crate) v4: Option<Node<SocketAddrV4>>,
    pub(crate) v6: Option<Node<SocketAddrV6>>,
    pub(crate) scion: Option<Node<ScionAddr>>,
}

/// A node and the address of its socket.
#[derive(Debug, Clone)]
pub(crate) struct Node<A> {
    pub handle: DhtHandle<A>,
    pub local: A,
}

/// What the nodes keep for the next run; `None` where there is no node, or where it knows no other one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedNodes {
    /// Of the DHT over IPv4.
    pub v4: Option<Saved<SocketAddrV4>>,
    /// Of the DHT over IPv6.
    pub v6: Option<Saved<SocketAddrV6>>,
    /// Of the DHT over SCION.
    pub scion: Option<Saved<ScionAddr>>,
}

impl<A: Address + Send + Sync + 'static> Node<A> {
    fn spawn<S: DhtSocket<A>>(
        socket: S,
        local: A,
        external: Option<A>,
        saved: Option<Saved<A>>,
    ) -> Self {
        let config = Config {
            id: saved.as_ref().map(|saved| saved.id),
            external,
            ..Config::default()
        };
        let nodes = saved.map_or(Vec::new(), |saved| saved.nodes);
        // It stops when its last handle is dropped.
        let handle = spawn_dht(socket, config, nodes, CancellationToken::new());
        Self { handle, local }
    }

    async fn save(node: &Option<Self>) -> Option<Saved<A>> {
        let state = node.as_ref()?.handle.state().await.ok()?;
        let (id, nodes) = (state.id, state.nodes);
        (!nodes.is_empty()).then_some(Saved { id, nodes })
    }

    async fn add(node: &Option<Self>, addrs: &[PeerAddr]) {
        let addrs = addrs.iter().filter_map(|addr| A::from_peer(*addr));
        let addrs: Vec<A> = addrs.collect();
        if let Some(node) = node
            && !addrs.is_empty()
        {
            // Fails only while the program ends.
            let _ = node.handle.add_nodes(addrs).await;
        }
    }
}

impl DhtNodes {
    /// Runs a node over IPv4 or IPv6 at `addr`; port 0 means any. It begins with `saved`. Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// If no socket can be opened there.
    pub fn open_ip(&mut self, addr: SocketAddr, saved: &SavedNodes) -> io::Result<()> {
        let socket = bind_udp(addr)?;
        match socket.local_addr()? {
            SocketAddr::V4(local) => {
                let saved = saved.v4.clone();
                self.v4 = Some(Node::<SocketAddrV4>::spawn::<UdpSocket>(
                    socket, local, None, saved,
                ));
            }
            SocketAddr::V6(local) => {
                let saved = saved.v6.clone();
                self.v6 = Some(Node::<SocketAddrV6>::spawn::<UdpSocket>(
                    socket, local, None, saved,
                ));
            }
        }
        Ok(())
    }

    /// Runs a node over SCION at a port of `host`, or at any. It begins with `saved`. Must be called inside
    /// a tokio runtime.
    ///
    /// # Errors
    /// If no socket can be opened there.
    pub fn open_scion(
        &mut self,
        host: &Endhost,
        local: Option<SocketAddr>,
        saved: &SavedNodes,
    ) -> Result<(), BindError> {
        let datagrams = ScionDatagrams::bind(host, local)?;
        let local = datagrams.local_addr();
        let socket = ScionSocket::new(datagrams);
        // There is no translation of addresses: others see the address of the socket.
        let node = Node::spawn(socket, local, Some(local), saved.scion.clone());
        self.scion = Some(node);
        Ok(())
    }

    /// The addresses of the nodes' sockets.
    pub fn local_addrs(&self) -> Vec<PeerAddr> {
        let v4 = self.v4.as_ref().map(|node| node.local.to_peer());
        let v6 = self.v6.as_ref().map(|node| node.local.to_peer());
        let scion = self.scion.as_ref().map(|node| node.local.to_peer());
        [v4, v6, scion].into_iter().flatten().collect()
    }

    /// Adds addresses of nodes, each of the DHT of its kind. Those of kinds without a node are left out.
    pub async fn add_nodes(&self, addrs: &[PeerAddr]) {
        Node::add(&self.v4, addrs).await;
        Node::add(&self.v6, addrs).await;
        Node::add(&self.scion, addrs).await;
    }

    /// Adds a node, one with a name at all addresses of its host.
    ///
    /// # Errors
    /// If the name cannot be looked up.
    pub async fn add_node(&self, node: &DhtNode) -> io::Result<()> {
        match node {
            DhtNode::Addr(addr) => self.add_nodes(&[*addr]).await,
            DhtNode::Name(host, port) => {
                let addrs = tokio::net::lookup_host((&host[..], *port)).await?;
                let addrs: Vec<PeerAddr> = addrs.map(PeerAddr::Ip).collect();
                self.add_nodes(&addrs).await;
            }
        }
        Ok(())
    }

    /// Searches for peers of a torrent, and announces those of this program at `ports`, over IPv4 at the port
    /// `mapped` while there is one, as long as what it returns is not dropped. Peers go to `sink`. It searches
    /// as often as announcing needs, and more often if it `is_eager`. Must be called inside a tokio runtime.
    pub fn search(
        &self,
        info_hash: [u8; 20],
        ports: PeerPorts,
        mapped: &MappedPort,
        is_eager: bool,
        sink: &mpsc::Sender<Vec<PeerAddr>>,
    ) -> DhtSearches {
        let mut searches = DhtSearches::new(is_eager, sink.clone());
        if let Some(node) = &self.v4 {
            let port = Port::new(ports.v4, mapped.clone());
            searches.search_at(node.handle.clone(), info_hash, port);
        }
        if let Some(node) = &self.v6 {
            let port = Port::new(ports.v6, MappedPort::default());
            searches.search_at(node.handle.clone(), info_hash, port);
        }
        if let Some(node) = &self.scion {
            let port = Port::new(ports.at_scion_node(node.local), MappedPort::default());
            searches.search_at(node.handle.clone(), info_hash, port);
        }
        searches
    }

    /// What to keep for the next run.
    pub async fn save(&self) -> SavedNodes {
        SavedNodes {
            v4: Node::save(&self.v4).await,
            v6: Node::save(&self.v6).await,
            scion: Node::save(&self.scion).await,
        }
    }
}
