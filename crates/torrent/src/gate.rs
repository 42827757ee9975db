//! Many torrents behind the same sockets: each connection that a peer opens goes to the torrent that its
//! handshake names.
//!
//! A connection is read up to the info-hash, which may take 10 s, for at most [`MAX_UNNAMED`]
//! connections at a time. A further one takes the place of one of the host that has most of them
//! ([`Crowd`]). What was read is read again by the torrent. The lock is held for look-ups alone.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_endhost::ScionAddr;
use hawser_path::Fingerprint;
use hawser_quic::CongestionState;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::close::{CloseCode, Closed};
use crate::crowd::Crowd;
use crate::dht::DhtContacts;
use crate::failed::why;
use crate::metainfo::InfoHash;
use crate::rate::SessionRates;
use crate::transport::{Connection, Offers, Stream, Transport};
use crate::wire::{HANDSHAKE_BYTES, Handshake, PeerId, WireError};

/// Most connections at a time whose torrent is not known yet.
const MAX_UNNAMED: usize = 200;

/// Longest wait for the handshake of a peer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that may wait for a torrent. Further ones are closed.
const MAX_WAITING: usize = 64;

/// The torrents behind the sockets of a network.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Torrents>);

#[derive(Debug, Default)]
struct Torrents {
    senders: HashMap<InfoHash, mpsc::Sender<Arc<dyn Connection>>>,
    /// All info-hashes; `None` if they have changed.
    all: Option<Arc<[InfoHash]>>,
}

impl Torrents {
    /// All info-hashes.
    fn all(&mut self) -> Arc<[InfoHash]> {
        let all = self
            .all
            .get_or_insert_with(|| self.senders.keys().copied().collect());
        Arc::clone(all)
    }

    fn insert(&mut self, info_hash: InfoHash, sender: mpsc::Sender<Arc<dyn Connection>>) {
        self.senders.insert(info_hash, sender);
        self.all = None;
    }

    fn remove(&mut self, info_hash: InfoHash) {
        self.senders.remove(&info_hash);
        self.all = None;
    }
}

impl Gate {
    /// Passes on the connections that peers open, until there will be no more.
    pub async fn run<T: Transport>(self: Arc<Self>, transport: T) {
        let unnamed = Arc::new(Mutex::new(Crowd::<Arc<dyn Connection>>::new(MAX_UNNAMED)));
        // They end with this.
        let mut tasks = JoinSet::new();
        while let Some(connection) = transport.accept().await {
            while tasks.try_join_next().is_some() {}
            let (peer, end) = (connection.peer(), Arc::clone(&connection));
            let (number, outdone) = lock(&unnamed).admit(peer, end);
            if let Some(outdone) = outdone {
                outdone.close(CloseCode::TooMany, "too many connections");
            }
            let (gate, unnamed) = (Arc::clone(&self), Arc::clone(&unnamed));
            tasks.spawn(async move {
                let named = gate.pass_on(Arc::clone(&connection));
                let named = tokio::time::timeout(HANDSHAKE_TIMEOUT, named).await;
                lock(&unnamed).leave(number);
                let why = match named {
                    Ok(Ok(())) => return,
                    Ok(Err(why)) => why,
                    Err(_) => "no BitTorrent handshake came".into(),
                };
                tracing::debug!(peer = %connection.peer(), why, "a connection came to nothing");
                connection.close(CloseCode::Plain, &why);
            });
        }
        // The torrents learn that no peer can connect any more.
        *self.lock() = Torrents::default();
    }

    /// Reads the handshake and gives the connection to its torrent.
    ///
    /// # Errors
    /// The reason why it goes to none.
    async fn pass_on(&self, connection: Arc<dyn Connection>) -> Result<(), String> {
        let text = |error: io::Error| why(&error);
        connection.set_torrents(self.lock().all());
        let (mut read, mut write) = connection.stream().await?;
        let mut bytes = [0; HANDSHAKE_BYTES];
        read.read_exact(&mut bytes).await.map_err(text)?;
        let info_hash = Handshake::info_hash(&bytes).map_err(|error| error.to_string())?;
        let torrent = self.lock().senders.get(&info_hash).cloned();
        let Some(torrent) = torrent else {
            let ours = Handshake {
                info_hash,
                peer_id: PeerId::random(),
                extended: true,
                dht: false,
                version_two: false,
            };
            // Closing it at once might discard the answer.
            write
                .write_all(&ours.refusal().encode())
                .await
                .map_err(text)?;
            write.flush().await.map_err(text)?;
            let mut rest = [0; 1024];
            while read.read(&mut rest).await.map_err(text)? > 0 {}
            return Err(WireError::WrongInfoHash(info_hash).to_string());
        };
        let read = Prefixed {
            prefix: bytes,
            at: 0,
            rest: read,
        };
        let stream: Stream = (Box::new(read), write);
        let named = Named {
            connection: Arc::clone(&connection),
            stream: Mutex::new(Some(stream)),
        };
        let sent = torrent.try_send(Arc::new(named));
        sent.map_err(|_| "too many connections wait for the torrent".to_owned())
    }

    /// Passes on connections for a torrent, by all its info-hashes, from now on, until what it returns is
    /// dropped; `None` if they go to another torrent with one of these.
    pub fn open(self: &Arc<Self>, info_hashes: Arc<[InfoHash]>) -> Option<Entrance> {
        let (sender, incoming) = mpsc::channel(MAX_WAITING);
        let mut torrents = self.lock();
        let mut hashes = info_hashes.iter();
        if hashes.any(|hash| torrents.senders.contains_key(hash)) {
            return None;
        }
        for info_hash in info_hashes.iter() {
            torrents.insert(*info_hash, sender.clone());
        }
        Some(Entrance {
            gate: Arc::clone(self),
            info_hashes,
            incoming: tokio::sync::Mutex::new(incoming),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Torrents> {
        lock(&self.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end at which one torrent takes its connections.
#[derive(Debug)]
pub(crate) struct Entrance {
    gate: Arc<Gate>,
    info_hashes: Arc<[InfoHash]>,
    incoming: tokio::sync::Mutex<mpsc::Receiver<Arc<dyn Connection>>>,
}

impl Drop for Entrance {
    fn drop(&mut self) {
        let mut torrents = self.gate.lock();
        self.info_hashes
            .iter()
            .for_each(|one| torrents.remove(*one));
    }
}

/// A transport whose connections of peers are those of one torrent.
#[derive(Debug, Clone)]
pub(crate) struct Member<T> {
    pub transport: T,
    pub entrance: Arc<Entrance>,
    pub rates: SessionRates,
}

impl<T: Transport> Transport for Member<T> {
    type Path = T::Path;

    fn offers(&self, peer: PeerAddr) -> Offers<T::Path> {
        self.transport.offers(peer)
    }

    async fn lookup(&self, peer: PeerAddr) -> Result<(), String> {
        self.transport.lookup(peer).await
    }

    fn fits(&self, peer: PeerAddr, path: &T::Path) -> Result<(), String> {
        self.transport.fits(peer, path)
    }

    async fn dial(&self, peer: PeerAddr, path: T::Path) -> Result<Arc<dyn Connection>, String> {
        self.transport.dial(peer, path).await
    }

    async fn accept(&self) -> Option<Arc<dyn Connection>> {
        self.entrance.incoming.lock().await.recv().await
    }

    fn reaches(&self, peer: PeerAddr) -> bool {
        self.transport.reaches(peer)
    }

    fn has_other_way(&self, peer: PeerAddr) -> bool {
        self.transport.has_other_way(peer)
    }

    fn local(&self) -> Option<ScionAddr> {
        self.transport.local()
    }

    fn port(&self, peer: PeerAddr) -> Option<u16> {
        self.transport.port(peer)
    }

    fn dht(&self) -> Option<&DhtContacts> {
        self.transport.dht()
    }

    fn rates(&self) -> SessionRates {
        self.rates.clone()
    }
}

/// A connection whose first bytes were read to find its torrent.
struct Named {
    connection: Arc<dyn Connection>,
    stream: Mutex<Option<Stream>>,
}

impl Connection for Named {
    fn stream(&self) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send + '_>> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = stream
            .take()
            .ok_or_else(|| "it was taken before".to_owned());
        Box::pin(std::future::ready(stream))
    }

    fn peer(&self) -> PeerAddr {
        self.connection.peer()
    }

    fn fingerprint(&self) -> Fingerprint {
        self.connection.fingerprint()
    }

    fn key(&self) -> [u8; 32] {
        self.connection.key()
    }

    fn rtt(&self) -> Duration {
        self.connection.rtt()
    }

    fn received(&self) -> Option<u64> {
        self.connection.received()
    }

    fn congestion(&self) -> Option<CongestionState> {
        self.connection.congestion()
    }

    fn set_known(&self) {
        self.connection.set_known();
    }

    fn expect_data(&self) {
        self.connection.expect_data();
    }

    fn close(&self, code: CloseCode, text: &str) {
        self.connection.close(code, text);
    }

    fn close_reason(&self) -> Option<Closed> {
        self.connection.close_reason()
    }
}

/// Bytes that were read before, then the rest of a stream.
struct Prefixed {
    prefix: [u8; HANDSHAKE_BYTES],
    /// How many of the prefix have been read again.
    at: usize,
    rest: Box<dyn AsyncRead + Send + Unpin>,
}

impl AsyncRead for Prefixed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = &self.prefix[self.at..];
        if left.is_empty() {
            return Pin::new(&mut self.rest).poll_read(cx, buffer);
        }
        let taken = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..taken]);
        self.at += taken;
        Poll::Ready(Ok(()))
    }
}
