//! A node of the DHT on a socket.

mod kept;
mod name;
mod nodes;
mod schedule;
mod scion;
mod searches;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_dht::{
    Address, Announce, Config, Dht, Id, Output, SearchError, SearchId, Stats, Summary,
};
use thiserror::Error;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use self::kept::{KeptError, KeptNodes};
pub use self::name::DhtNode;
pub use self::nodes::{DhtNodes, SavedNodes};
pub use self::searches::{DhtSearches, PeerPorts};

/// Most peers of a search that wait to be taken. Further ones are dropped: the next search finds
/// them.
const MAX_UNTAKEN: usize = 256;
/// Most commands that wait.
const MAX_COMMANDS: usize = 64;
/// Longer datagrams are cut, and so are none of the DHT.
const MAX_DATAGRAM: usize = 4096;
/// Pause after a receive error, so that one which persists costs little.
const ERROR_PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for a socket to take a datagram. Without it, one device that hangs would stop all.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// A socket for the datagrams of a DHT.
pub trait DhtSocket<A>: Send + Sync + 'static {
    /// Waits for a datagram. Returns its length, cut to that of `buffer`, and its sender. Cancel
    /// safe.
    fn receive(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<(usize, A)>> + Send;

    /// Sends a datagram. Cancel safe.
    fn send(&self, bytes: &[u8], to: A) -> impl Future<Output = io::Result<()>> + Send;
}

impl DhtSocket<SocketAddrV4> for UdpSocket {
    async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV4)> {
        match self.recv_from(buffer).await? {
            (length, SocketAddr::V4(from)) => Ok((length, from)),
            (_, SocketAddr::V6(_)) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    async fn send(&self, bytes: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.send_to(bytes, to).await.map(drop)
    }
}

/// The socket must be for IPv6 only: the DHT of IPv4 is another one.
impl DhtSocket<SocketAddrV6> for UdpSocket {
    async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV6)> {
        match self.recv_from(buffer).await? {
            (length, SocketAddr::V6(from)) => Ok((length, from)),
            (_, SocketAddr::V4(_)) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    async fn send(&self, bytes: &[u8], to: SocketAddrV6) -> io::Result<()> {
        self.send_to(bytes, to).await.map(drop)
    }
}

/// Why the DHT does not do something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DhtError {
    /// The node was stopped.
    #[error("the node of the DHT was stopped")]
    Stopped,
    /// Too much is to be searched for.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// The state of a node: what to save, and what to show.
#[derive(Debug, Clone)]
pub struct DhtState<A> {
    /// Its id, for [`Config::id`] of the next run.
    pub id: Id,
    /// Nodes that answer, to be given to the next run.
    pub nodes: Vec<A>,
    /// Numbers.
    pub stats: Stats,
}

enum Command<A> {
    Search {
        info_hash: [u8; 20],
        announce: Option<Announce>,
        reply: oneshot::Sender<Result<DhtSearch<A>, SearchError>>,
    },
    Add(Vec<A>),
    State(oneshot::Sender<DhtState<A>>),
}

/// A search under way. Dropping it ends the search.
#[derive(Debug)]
pub struct DhtSearch<A> {
    peers: mpsc::Receiver<A>,
    summary: oneshot::Receiver<Summary>,
}

impl<A> DhtSearch<A> {
    /// The next peer, each once; `None` at the end of the search. Cancel safe.
    pub async fn recv(&mut self) -> Option<A> {
        self.peers.recv().await
    }

    /// Waits for the end of the search, and returns what came of it; `None` if the node was stopped.
    pub async fn summary(self) -> Option<Summary> {
        // The node does not wait for room: peers that are not taken are dropped.
        self.summary.await.ok()
    }
}

/// A running node. It stops when its last handle is dropped.
#[derive(Debug)]
pub struct DhtHandle<A> {
    commands: mpsc::Sender<Command<A>>,
}

impl<A> Clone for DhtHandle<A> {
    fn clone(&self) -> Self {
        Self {
            commands: self.commands.clone(),
        }
    }
}

impl<A> DhtHandle<A> {
    /// Searches for peers of a torrent, and announces this node as one if so wanted.
    ///
    /// # Errors
    /// [`DhtError::Search`] if too many searches wait, [`DhtError::Stopped`] if the node was
    /// stopped.
    pub async fn search(
        &self,
        info_hash: [u8; 20],
        announce: Option<Announce>,
    ) -> Result<DhtSearch<A>, DhtError> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Search {
            info_hash,
            announce,
            reply,
        };
        self.send(command).await?;
        Ok(answer.await.map_err(|_| DhtError::Stopped)??)
    }

    /// Adds addresses of nodes: of routers, and those that peers name.
    ///
    /// # Errors
    /// [`DhtError::Stopped`] if the node was stopped.
    pub async fn add_nodes(&self, addrs: Vec<A>) -> Result<(), DhtError> {
        self.send(Command::Add(addrs)).await
    }

    /// The state of the node.
    ///
    /// # Errors
    /// [`DhtError::Stopped`] if the node was stopped.
    pub async fn state(&self) -> Result<DhtState<A>, DhtError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::State(reply)).await?;
        answer.await.map_err(|_| DhtError::Stopped)
    }

    async fn send(&self, command: Command<A>) -> Result<(), DhtError> {
        let sent = self.commands.send(command).await;
        sent.map_err(|_| DhtError::Stopped)
    }
}

/// Runs a node on `socket` until `stop` is cancelled or all handles are dropped. `nodes` are the
/// addresses of routers and those saved by the last run. Must be called inside a tokio runtime.
pub fn spawn_dht<A, S>(
    socket: S,
    config: Config<A>,
    nodes: Vec<A>,
    stop: CancellationToken,
) -> DhtHandle<A>
where
    A: Address + Send + Sync + 'static,
    S: DhtSocket<A>,
{
    let (sender, commands) = mpsc::channel(MAX_COMMANDS);
    // Keys of a `RandomState` come from the operating system.
    let rng = Rng::with_seed(RandomState::new().hash_one(0));
    let now = now();
    let mut dht = Dht::new(config, rng, now);
    dht.bootstrap(now, nodes);
    let driver = Driver {
        socket,
        dht,
        searches: HashMap::new(),
    };
    tokio::spawn(driver.run(commands, stop));
    DhtHandle { commands: sender }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

struct Driver<A, S> {
    socket: S,
    dht: Dht<A>,
    searches: HashMap<SearchId, Sink<A>>,
}

/// Where the peers of a search go, and what came of it.
struct Sink<A> {
    peers: mpsc::Sender<A>,
    summary: oneshot::Sender<Summary>,
}

impl<A: Address, S: DhtSocket<A>> Driver<A, S> {
    async fn run(mut self, mut commands: mpsc::Receiver<Command<A>>, stop: CancellationToken) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            self.carry_out().await;
            let due = self.dht.next_due().into();
            tokio::select! {
                () = stop.cancelled() => return,
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                received = self.socket.receive(&mut buffer) => match received {
                    Ok((length, from)) => self.dht.receive(now(), from, &buffer[..length]),
                    Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
                },
                () = tokio::time::sleep_until(due) => {
                    self.dht.advance(now());
                    self.cancel_untaken();
                }
            }
        }
    }

    /// Carries out what the node orders. A datagram that cannot be sent is lost, as others are.
    async fn carry_out(&mut self) {
        while let Some(output) = self.dht.poll() {
            match output {
                Output::Send { to, bytes } => {
                    let send = self.socket.send(&bytes, to);
                    let _ = tokio::time::timeout(SEND_TIMEOUT, send).await;
                }
                Output::Peers { search, peers } => {
                    let Some(sink) = self.searches.get(&search) else {
                        continue;
                    };
                    for peer in peers {
                        let _ = sink.peers.try_send(peer);
                    }
                }
                Output::Finished { search, summary } => {
                    if let Some(sink) = self.searches.remove(&search) {
                        let _ = sink.summary.send(summary);
                    }
                }
            }
        }
    }

    fn obey(&mut self, command: Command<A>) {
        match command {
            Command::Search {
                info_hash,
                announce,
                reply,
            } => {
                let begun = self.dht.search(now(), info_hash, announce);
                let search = begun.map(|search| {
                    let (peers, taken) = mpsc::channel(MAX_UNTAKEN);
                    let (summary, summarized) = oneshot::channel();
                    self.searches.insert(search, Sink { peers, summary });
                    DhtSearch {
                        peers: taken,
                        summary: summarized,
                    }
                });
                let _ = reply.send(search);
            }
            Command::Add(addrs) => self.dht.bootstrap(now(), addrs),
            Command::State(reply) => {
                let now = now();
                let _ = reply.send(DhtState {
                    id: self.dht.id(),
                    nodes: self.dht.nodes(now),
                    stats: self.dht.stats(now),
                });
            }
        }
    }

    /// Ends the searches whose peers nobody takes any longer. An announcement is not made then.
    fn cancel_untaken(&mut self) {
        let untaken = self.searches.extract_if(|_, sink| sink.peers.is_closed());
        let untaken: Vec<SearchId> = untaken.map(|(search, _)| search).collect();
        for search in untaken {
            self.dht.cancel(now(), search);
        }
    }
}
