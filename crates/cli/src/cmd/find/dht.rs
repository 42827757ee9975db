//! The nodes of the DHT beside the torrents of a command.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hawser_discovery::{DhtNode, DhtNodes, KeptNodes, SavedNodes};
use hawser_torrent::{DhtContacts, PeerAddr};
use tokio::task::JoinSet;

use super::FindArgs;
use crate::cmd::network::Sockets;
use crate::failure::Failure;
use crate::out::{errln, plain};

/// Nodes with which the public DHT begins, each run by the authors of a widespread program.
const PUBLIC_NODES: [(&str, u16); 3] = [
    ("router.bittorrent.com", 6881),
    ("dht.transmissionbt.com", 6881),
    ("dht.libtorrent.org", 25401),
];

/// Time between two writes of the nodes to the disk, so that a crash does not lose them.
const KEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// The nodes of this program.
pub struct Dht {
    nodes: DhtNodes,
    kept: Option<Arc<KeptNodes>>,
    /// End with it: nodes of peers passed on, names looked up, nodes kept from time to time.
    tasks: JoinSet<()>,
}

impl Dht {
    /// Runs nodes of all kinds that this host can have, and tells peers of them. Must be called inside a tokio
    /// runtime. They begin with those of the
    /// last run in `folder`, where they are kept again, those of the flags, and those that a torrent names.
    ///
    /// # Errors
    /// If no node can be opened.
    pub fn open(
        args: &FindArgs,
        of_torrent: &[DhtNode],
        sockets: &Sockets,
        folder: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        if let Some(node) = args.scion_node().filter(|_| sockets.host().is_none()) {
            return Err(Failure::job(format!(
                "--dht-node {node}: this host is in no SCION network"
            )));
        }
        let (kept, saved) = keep(folder);
        let nodes = open_nodes(args.dht_port, sockets, &saved)?;
        let (contacts, mut named) = DhtContacts::new(&nodes.local_addrs());
        sockets.network.add_dht(contacts);
        let mut tasks = JoinSet::new();
        let of_peers = nodes.clone();
        tasks.spawn(async move {
            while let Some(node) = named.recv().await {
                of_peers.add_nodes(&[node]).await;
            }
        });
        let begins_with = begins_with(args, of_torrent);
        tasks.spawn(look_up(nodes.clone(), begins_with));
        if let Some(kept) = &kept {
            tasks.spawn(keep_again(nodes.clone(), Arc::clone(kept)));
        }
        Ok(Self { nodes, kept, tasks })
    }

    /// The nodes, to search for torrents.
    pub fn nodes(&self) -> DhtNodes {
        self.nodes.clone()
    }

    /// The addresses of the nodes.
    pub fn local_addrs(&self) -> Vec<PeerAddr> {
        self.nodes.local_addrs()
    }

    /// Ends the nodes, and keeps those that they know for the next run.
    pub async fn stop(self) {
        if let Some(kept) = self.kept {
            write(&self.nodes, &kept).await;
        }
        drop(self.tasks);
    }
}

/// The bootstrap nodes of the DHT, beside those of the last run: those of `--dht-node`, or the public ones
/// if `--find dht` is given without any; and those that the torrent names.
fn begins_with(args: &FindArgs, of_torrent: &[DhtNode]) -> Vec<DhtNode> {
    let mut nodes = args.dht_node.clone();
    if nodes.is_empty() && args.asks_for_dht() {
        let public = PUBLIC_NODES.map(|(host, port)| DhtNode::Name(host.to_owned(), port));
        nodes.extend(public);
    }
    nodes.extend(of_torrent.iter().cloned());
    nodes
}

/// The folder of the nodes, and what the last run kept. Without one, nodes are not kept.
fn keep(folder: Option<PathBuf>) -> (Option<Arc<KeptNodes>>, SavedNodes) {
    let Some(folder) = folder else {
        errln!("nodes of the DHT are not kept for the next run: no folder: set HOME");
        return Default::default();
    };
    let kept = match KeptNodes::open(folder) {
        Ok(kept) => kept,
        Err(error) => {
            let error = plain(&error.to_string());
            errln!("nodes of the DHT are not kept for the next run: {error}");
            return Default::default();
        }
    };
    let (saved, errors) = kept.read();
    for error in errors {
        errln!("{}", plain(&error.to_string()));
    }
    (Some(Arc::new(kept)), saved)
}

/// Opens a node over IPv4 and IPv6, at the addresses of `--tcp` if it names one, and over SCION.
fn open_nodes(
    port: Option<u16>,
    sockets: &Sockets,
    saved: &SavedNodes,
) -> Result<DhtNodes, Failure> {
    let mut nodes = DhtNodes::default();
    let tcp = sockets.addresses.tcp;
    let ips = match tcp.map(|tcp| tcp.ip()).filter(|ip| !ip.is_unspecified()) {
        Some(ip) => vec![ip],
        None => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
    };
    let mut failed = None;
    for ip in ips {
        if let Err(error) = open_ip(&mut nodes, ip, port, tcp, sockets.keeps_utp_port, saved) {
            let addr = SocketAddr::new(ip, port.unwrap_or_default());
            // Not every host has both kinds.
            match error.kind() {
                io::ErrorKind::AddrInUse => return Err(in_use(addr)),
                _ => failed = Some(format!("cannot open a node of the DHT at {addr}: {error}")),
            }
        }
    }
    if let (Some(host), Some(local)) = (sockets.host(), sockets.addresses.scion) {
        // A socket for all addresses of the host has the port itself.
        let port = port.map(|port| port.saturating_add(1));
        let local = port.map(|port| SocketAddr::new(local.host.ip(), port));
        nodes.open_scion(host, local, saved)?;
    }
    match failed {
        Some(error) if nodes.local_addrs().is_empty() => Err(Failure::job(error)),
        _ => Ok(nodes),
    }
}

fn in_use(addr: SocketAddr) -> Failure {
    Failure::job(format!(
        "cannot open a node of the DHT at {addr}: the port is in use: choose another one with \
         --dht-port"
    ))
}

/// Opens a node at `port`, or else at the port of `--tcp`, as BEP 5 has it by convention, or else at any. Where
/// uTP can be switched on later, it gets the port of `--tcp` then, and the node has the one after it.
fn open_ip(
    nodes: &mut DhtNodes,
    ip: IpAddr,
    port: Option<u16>,
    tcp: Option<SocketAddr>,
    is_for_utp: bool,
    saved: &SavedNodes,
) -> io::Result<()> {
    if let Some(port) = port {
        return nodes.open_ip(SocketAddr::new(ip, port), saved);
    }
    let usual = tcp.map_or(0, |tcp| tcp.port());
    let usual = usual.checked_add(u16::from(is_for_utp && usual > 0));
    let usual = usual.unwrap_or_default();
    match nodes.open_ip(SocketAddr::new(ip, usual), saved) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            nodes.open_ip(SocketAddr::new(ip, 0), saved)
        }
        opened => opened,
    }
}

/// Adds nodes, those with names at all addresses of their hosts.
async fn look_up(nodes: DhtNodes, named: Vec<DhtNode>) {
    for node in named {
        if let Err(error) = nodes.add_node(&node).await {
            errln!("node of the DHT {}: {error}", plain(&node.to_string()));
        }
    }
}

/// Writes the nodes to the disk from time to time.
async fn keep_again(nodes: DhtNodes, kept: Arc<KeptNodes>) {
    loop {
        tokio::time::sleep(KEEP_INTERVAL).await;
        write(&nodes, &kept).await;
    }
}

async fn write(nodes: &DhtNodes, kept: &Arc<KeptNodes>) {
    let (saved, kept) = (nodes.save().await, Arc::clone(kept));
    let written = tokio::task::spawn_blocking(move || kept.write(&saved)).await;
    if let Ok(Err(error)) = written {
        let error = plain(&error.to_string());
        errln!("nodes of the DHT are not kept for the next run: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::find::Way;

    fn args(find: Option<Vec<Way>>, named: &[&str]) -> FindArgs {
        FindArgs {
            find,
            dht_node: named.iter().map(|node| node.parse().unwrap()).collect(),
            dht_port: None,
        }
    }

    #[tokio::test]
    async fn the_port_of_utp_is_left_to_it_where_it_can_be_switched_on() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = tcp.local_addr().unwrap();
        let mut nodes = DhtNodes::default();
        let saved = SavedNodes::default();
        open_ip(&mut nodes, tcp.ip(), None, Some(tcp), true, &saved).unwrap();
        assert_ne!(nodes.local_addrs()[0].to_string(), tcp.to_string());
    }

    #[test]
    fn public_nodes_are_asked_only_if_the_dht_is_asked_for_and_no_other_named() {
        let names = |args: &FindArgs, of_torrent: &[DhtNode]| {
            let nodes = begins_with(args, of_torrent).into_iter();
            nodes.map(|node| node.to_string()).collect::<Vec<_>>()
        };
        let public = PUBLIC_NODES.map(|(host, port)| format!("{host}:{port}"));
        let of_torrent = [DhtNode::Name("a.example".to_owned(), 1)];
        let dht = || Some(vec![Way::Dht]);
        assert_eq!(names(&args(dht(), &[]), &[]), public);
        let both = names(&args(dht(), &[]), &of_torrent);
        assert_eq!(both.len(), public.len() + 1);
        let own = names(&args(dht(), &["10.0.0.1:1"]), &of_torrent);
        assert_eq!(own, ["10.0.0.1:1", "a.example:1"]);
        assert_eq!(names(&args(None, &["10.0.0.1:1"]), &[]), ["10.0.0.1:1"]);
        assert_eq!(names(&args(None, &[]), &of_torrent), ["a.example:1"]);
    }
}
