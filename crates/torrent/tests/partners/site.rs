//! Where a download, seeders and leechers meet.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};

use hawser_endhost::Endhost;
use hawser_quic::{Config, Endpoint};
use hawser_torrent::{
    CreateOptions, Download, DownloadOptions, Listener, Network, PeerAddr, Seed, SeedOptions,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use super::content::Content;
use super::scripted::Scripted;
use super::toy::{ToyNet, own_ip};

/// Bytes of the content.
pub const SIZE: usize = 2_000_000;

/// The loopback addresses of the download, of scripted partners, and of seeders of the engine.
const HERE: u8 = 1;
const PARTNER: u8 = 2;
const HONEST: u8 = 3;
/// The first loopback address of seeders that are absent at first: each has its own, so that nobody
/// else takes its port meanwhile.
const ABSENT: u8 = 10;

/// Seeders that were absent so far.
static ABSENTEES: AtomicU8 = AtomicU8::new(0);

/// What connects the partners.
#[derive(Debug, Clone, Copy)]
pub enum Carrier {
    Tcp,
    Scion,
}

/// Two ASes with two links, and their hosts.
struct Hosts {
    /// Ends when it is dropped.
    net: ToyNet,
    near: Endhost,
    far: Endhost,
}

/// One content, and the network over which it is fetched; without SCION, the network of this host.
pub struct Site {
    pub content: Content,
    hosts: Option<Hosts>,
}

/// A stream to a seeder.
pub struct Wire {
    pub read: Box<dyn AsyncRead + Send + Unpin>,
    pub write: Box<dyn AsyncWrite + Send + Unpin>,
    /// What must stay for the stream to stay.
    _open: Box<dyn Any + Send>,
}

fn bind(host: &Endhost, at: SocketAddr) -> Endpoint {
    Endpoint::bind(host.clone(), Some(at), Config::default()).unwrap()
}

impl Site {
    pub async fn new(carrier: Carrier) -> Self {
        let options = CreateOptions {
            piece_length: Some(65536),
            ..CreateOptions::default()
        };
        let content = Content::new(SIZE, &options);
        let Carrier::Scion = carrier else {
            return Self {
                content,
                hosts: None,
            };
        };
        let net = ToyNet::with_links(2).await;
        let (near, far) = (net.a.endhost().await, net.b.endhost().await);
        let hosts = Some(Hosts { net, near, far });
        Self { content, hosts }
    }

    /// Paths to each seeder.
    pub fn paths(&self) -> usize {
        match &self.hosts {
            Some(hosts) => hosts.net.links.len(),
            None => 1,
        }
    }

    /// Lets `seeder` serve everybody who connects to the returned address.
    pub async fn partner(&self, seeder: &Scripted) -> PeerAddr {
        let (seeder, at) = (seeder.clone(), (own_ip(PARTNER), 0).into());
        // Serving fails when the engine closes the connection.
        if let Some(hosts) = &self.hosts {
            let endpoint = bind(&hosts.far, at);
            let addr = endpoint.local_addr();
            tokio::spawn(async move {
                while let Some(connection) = endpoint.accept().await {
                    let seeder = seeder.clone();
                    tokio::spawn(async move {
                        let (write, read) = connection.accept_bi().await.unwrap();
                        seeder.serve(read, write).await
                    });
                }
            });
            return addr.into();
        }
        let listener = TcpListener::bind(at).await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let seeder = seeder.clone();
                tokio::spawn(async move {
                    let (read, write) = stream.split();
                    seeder.serve(read, write).await
                });
            }
        });
        addr.into()
    }

    /// An address at which nobody is for now.
    pub async fn absent(&self) -> PeerAddr {
        let number = ABSENTEES.fetch_add(1, Ordering::SeqCst);
        let at = SocketAddr::from((own_ip(ABSENT + number), 0));
        match &self.hosts {
            Some(hosts) => {
                let endpoint = bind(&hosts.far, at);
                let addr = endpoint.local_addr();
                endpoint.close().await;
                addr.into()
            }
            None => {
                let listener = TcpListener::bind(at).await.unwrap();
                listener.local_addr().unwrap().into()
            }
        }
    }

    /// A seeder of the engine, and its address: `at`, or a new one.
    pub async fn honest(&self, at: Option<PeerAddr>) -> (Seed, PeerAddr) {
        let new = SocketAddr::from((own_ip(HONEST), 0));
        let at = at.map_or(new, |at| match at {
            PeerAddr::Ip(at) => at,
            PeerAddr::Scion(at) => at.host,
        });
        let (network, addr) = match &self.hosts {
            Some(hosts) => {
                let endpoint = bind(&hosts.far, at);
                let addr = endpoint.local_addr().into();
                (Network::scion(endpoint, hosts.far.clone()), addr)
            }
            None => {
                let listener = Listener::bind(at).await.unwrap();
                let addr = listener.local_addr().into();
                (Network::ip().with_listener(listener), addr)
            }
        };
        let (metainfo, file) = (self.content.metainfo.clone(), self.content.file());
        let options = SeedOptions {
            // For all partners: none of them waits for its turn.
            slots: Some(32),
            ..SeedOptions::default()
        };
        let seed = Seed::start(metainfo, file, network, options, |_, _| {});
        (seed.await.unwrap(), addr)
    }

    pub fn get(&self, peers: &[PeerAddr]) -> Download {
        let network = match &self.hosts {
            Some(hosts) => {
                let endpoint = bind(&hosts.near, (own_ip(HERE), 0).into());
                Network::scion(endpoint, hosts.near.clone())
            }
            None => Network::ip(),
        };
        let (metainfo, target) = (self.content.metainfo.clone(), self.content.target());
        let options = DownloadOptions::default();
        Download::start(metainfo, target, peers.to_vec(), network, options)
    }

    /// Connects to a seeder as a leecher does, over one path.
    pub async fn connect(&self, to: PeerAddr) -> Wire {
        match (to, &self.hosts) {
            (PeerAddr::Scion(to), Some(hosts)) => {
                let endpoint = bind(&hosts.near, (own_ip(PARTNER), 0).into());
                let path = hosts.near.paths(to.isd_as).await.unwrap().remove(0);
                let connection = endpoint.connect(to, path).await.unwrap();
                let (write, read) = connection.open_bi().await.unwrap();
                Wire {
                    read: Box::new(read),
                    write: Box::new(write),
                    _open: Box::new((endpoint, connection)),
                }
            }
            (PeerAddr::Ip(to), None) => {
                let (read, write) = TcpStream::connect(to).await.unwrap().into_split();
                Wire {
                    read: Box::new(read),
                    write: Box::new(write),
                    _open: Box::new(()),
                }
            }
            _ => panic!("{to} is not on this network"),
        }
    }
}
