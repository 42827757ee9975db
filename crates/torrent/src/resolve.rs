//! Fetching the info dictionary of a magnet link from peers (BEP 9), before a download can begin; of a
//! torrent of version 2 alone then the hashes of its pieces (BEP 52).
//!
//! One task owns the state and decides which peers are asked (`hawser_magnet::Fetch`); each connection
//! has a task of its own, over one path: an info dictionary is small.

mod connection;
mod layers;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_address::PeerAddr;
use hawser_magnet::{ConnectionId, Fetch, InfoHashes, METADATA_PIECE, MetadataMessage, Output};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::connection::{Ask, Event, Greeting, What, talk};
use self::layers::{LayerFetch, Step};
use crate::candidates::Candidates;
use crate::metainfo::{InfoHash, Metainfo, MetainfoError};
use crate::network::Network;
use crate::source::{Found, FoundPeers, PeerSource};
use crate::transport::Transport;
use crate::wire::{Handshake, PeerId};

/// Most peers that are dialed or connected at once.
const MAX_CONNECTIONS: usize = 30;

/// Time after the first failure before a peer is dialed again.
const BACKOFF: Duration = Duration::from_secs(2);

/// Most peers whose last failure is remembered, for an error message.
const MAX_TROUBLES: usize = 64;

/// Events of connections that may wait: each is at most a piece of 16 KiB, or hashes of 18 KB.
const EVENTS: usize = 64;

/// Requests that may wait for a connection. More are lost, and repeated after a time-out.
const MAX_ASKED: usize = 64;

/// The fetch of the info dictionary of a magnet link. Dropping it ends it.
#[derive(Debug)]
pub struct Resolve {
    progress: watch::Receiver<ResolveProgress>,
    found: FoundPeers,
    stop: DropGuard,
    task: JoinHandle<Result<Resolved, ResolveError>>,
}

/// How far a fetch of an info dictionary is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolveProgress {
    /// Addresses of peers that are known.
    pub known: usize,
    /// Peers that are connected and have the info dictionary.
    pub connected: usize,
    /// Pieces of 16 KiB received, and of all; `None` while no peer has said how many there are. Of a torrent
    /// of version 2 alone, answers with hashes count too once it is known how many there are.
    pub pieces: Option<(usize, usize)>,
}

/// What a magnet link led to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// What the `.torrent` file says. It names no trackers and no web seeds: those are the link's.
    pub metainfo: Metainfo,
    /// Peers that had it.
    pub peers: Vec<PeerAddr>,
}

/// Why the info dictionary was not fetched, in one line.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// [`Resolve::stop`] was called.
    #[error("the fetch of the metadata was stopped")]
    Stopped,
    /// The link names no info-hash.
    #[error("the magnet link names no torrent")]
    NoHash,
    /// No peer sent it for this long.
    #[error("no peer sent the metadata for {} s: {}", .0.as_secs(), crate::error::listed(.1))]
    NoPeer(Duration, Vec<(PeerAddr, String)>),
    /// The two info-hashes of the link are not those of one torrent.
    #[error("the two info-hashes of the magnet link are not those of one torrent")]
    Contradiction,
    /// It has the info-hash, and is not one of a torrent that can be downloaded.
    #[error("the metadata that peers sent is unusable: {0}")]
    Metainfo(#[from] MetainfoError),
    /// A defect in this program.
    #[error("the fetch of the metadata broke off: {0}")]
    Internal(String),
}

impl From<JoinError> for ResolveError {
    fn from(error: JoinError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl Resolve {
    /// Fetches the info dictionary with these hashes from `peers`, and from others that are found
    /// meanwhile; gives up after `give_up_after` without progress, [`Duration::MAX`] for never.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        hashes: InfoHashes,
        peers: Vec<PeerAddr>,
        network: Network,
        give_up_after: Duration,
    ) -> Self {
        Self::over(network, hashes, peers, give_up_after)
    }

    pub(crate) fn over<T: Transport>(
        transport: T,
        hashes: InfoHashes,
        peers: Vec<PeerAddr>,
        give_up_after: Duration,
    ) -> Self {
        let (sender, progress) = watch::channel(ResolveProgress::default());
        let (found, finds) = FoundPeers::channel();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            // Of a torrent of version 2, the first 20 bytes are the info-hash on the wire (BEP 52).
            let v2 = || hashes.v2?.first_chunk::<20>().copied();
            let info_hashes = hashes.v1.into_iter().chain(v2()).map(InfoHash);
            let info_hashes: Arc<[InfoHash]> = info_hashes.collect();
            let info_hash = *info_hashes.first().ok_or(ResolveError::NoHash)?;
            let ours = Handshake {
                info_hash,
                peer_id: PeerId::random(),
                extended: true,
                dht: transport.dht().is_some(),
                version_two: hashes.v2.is_some(),
            };
            let greeting = Greeting { ours, info_hashes };
            let owner = Owner::new(transport, hashes, greeting, sender);
            tokio::select! {
                resolved = owner.run(peers, finds, give_up_after) => resolved,
                () = stopped.cancelled() => Err(ResolveError::Stopped),
            }
        });
        Self {
            progress,
            found,
            stop: stop.drop_guard(),
            task,
        }
    }

    /// Gives it peers while it runs.
    pub fn found_peers(&self) -> FoundPeers {
        self.found.clone()
    }

    /// The progress, updated when it changes.
    pub fn progress(&self) -> watch::Receiver<ResolveProgress> {
        self.progress.clone()
    }

    /// Ends it; [`Resolve::wait`] then returns [`ResolveError::Stopped`].
    pub fn stop(&self) {
        self.stop.token().cancel();
    }

    /// Waits until the info dictionary is fetched and verified.
    ///
    /// # Errors
    /// The reason why it was not.
    pub async fn wait(mut self) -> Result<Resolved, ResolveError> {
        (&mut self.task).await?
    }
}

/// The state of a fetch.
struct Owner<T> {
    transport: T,
    /// How this side names the torrent.
    greeting: Greeting,
    fetch: Fetch,
    /// The info dictionary, once it is there, and the fetch of the hashes that it lacks.
    layers: Option<(Vec<u8>, LayerFetch)>,
    candidates: Candidates,
    conns: HashMap<ConnectionId, Conn>,
    last_id: u64,
    /// Why peers could not be asked.
    troubles: HashMap<PeerAddr, String>,
    progress: watch::Sender<ResolveProgress>,
    events: mpsc::Sender<Event>,
    inbox: mpsc::Receiver<Event>,
    /// Ends the connections with it.
    tasks: JoinSet<()>,
}

/// A connection, or one that is dialed.
struct Conn {
    peer: PeerAddr,
    /// Whether the peer has the info dictionary.
    has: bool,
    /// What is to be requested.
    asks: mpsc::Sender<Ask>,
    task: AbortHandle,
}

impl<T: Transport> Owner<T> {
    fn new(
        transport: T,
        hashes: InfoHashes,
        greeting: Greeting,
        progress: watch::Sender<ResolveProgress>,
    ) -> Self {
        let (events, inbox) = mpsc::channel(EVENTS);
        Self {
            transport,
            greeting,
            fetch: Fetch::new(hashes),
            layers: None,
            candidates: Candidates::with_backoff(BACKOFF),
            conns: HashMap::new(),
            last_id: 0,
            troubles: HashMap::new(),
            progress,
            events,
            inbox,
            tasks: JoinSet::new(),
        }
    }

    async fn run(
        mut self,
        peers: Vec<PeerAddr>,
        mut found: mpsc::Receiver<Found>,
        give_up_after: Duration,
    ) -> Result<Resolved, ResolveError> {
        let mut alive_at = Instant::now();
        self.add((peers, PeerSource::Listed), alive_at);
        loop {
            let now = Instant::now();
            for output in self.fetch.advance(now) {
                if let Some(resolved) = self.carry_out(output)? {
                    return Ok(resolved);
                }
            }
            if let Some(resolved) = self.fetch_layers(now)? {
                return Ok(resolved);
            }
            self.dial(now);
            if self.report() {
                alive_at = now;
            }
            if now.saturating_duration_since(alive_at) >= give_up_after {
                return Err(ResolveError::NoPeer(give_up_after, self.troubles()));
            }
            let due = [
                self.fetch.next_due(),
                self.layers
                    .as_ref()
                    .and_then(|(_, layers)| layers.next_due()),
                self.candidates.next_due().filter(|_| self.has_room()),
                alive_at.checked_add(give_up_after),
            ];
            let due = due.into_iter().flatten().min();
            let expired = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(event) = self.inbox.recv() => self.handle(event),
                Some(peers) = found.recv() => self.add(peers, Instant::now()),
                () = expired => {}
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn add(&mut self, (peers, source): Found, now: Instant) {
        let own = self.transport.local().map(PeerAddr::Scion);
        for peer in peers {
            if !self.transport.reaches(peer) {
                self.trouble(
                    peer,
                    "it cannot be reached from here: this host is in no SCION network",
                );
            } else if own != Some(peer) {
                self.candidates.add(peer, source, now);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.conns.len() < MAX_CONNECTIONS
    }

    fn dial(&mut self, now: Instant) {
        while self.has_room()
            && let Some(peer) = self.candidates.take(now, |_| false)
        {
            self.last_id += 1;
            let id = ConnectionId(self.last_id);
            let (asks, asked) = mpsc::channel(MAX_ASKED);
            let (transport, events) = (self.transport.clone(), self.events.clone());
            let talk = talk(transport, peer, self.greeting.clone(), id, events, asked);
            let task = self.tasks.spawn(talk);
            let conn = Conn {
                peer,
                has: false,
                asks,
                task,
            };
            self.conns.insert(id, conn);
        }
    }

    fn handle(&mut self, event: Event) {
        let now = Instant::now();
        let Event { id, what } = event;
        match what {
            What::Has(size) => {
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.has = true;
                    self.fetch.on_peer(id, size);
                    if let Some((_, layers)) = &mut self.layers {
                        layers.on_peer(id);
                    }
                }
            }
            What::Message(payload) => self.on_message(id, &payload, now),
            What::Hashes(request, hashes) => {
                if let Some((_, layers)) = &mut self.layers {
                    layers.on_hashes(id, &request, &hashes);
                }
            }
            What::Rejected(request) => {
                if let Some((_, layers)) = &mut self.layers {
                    layers.on_reject(id, &request, now);
                }
            }
            What::Gone { why, is_final } => {
                self.forget(id);
                let Some(conn) = self.conns.remove(&id) else {
                    return;
                };
                tracing::debug!(peer = %conn.peer, why, "no metadata from this peer");
                self.trouble(conn.peer, &why);
                match is_final {
                    true => self.candidates.ban(conn.peer),
                    false => self.candidates.release(conn.peer, false, now),
                }
            }
        }
    }

    fn on_message(&mut self, id: ConnectionId, payload: &Bytes, now: Instant) {
        match MetadataMessage::parse(payload) {
            Ok(Some(message)) => self.fetch.on_message(id, message, now),
            Ok(None) => {}
            Err(error) => self.ban(id, &format!("dropped: it sent {error}")),
        }
    }

    fn carry_out(&mut self, output: Output) -> Result<Option<Resolved>, ResolveError> {
        match output {
            Output::Ask { peer, piece } => {
                if let Some(conn) = self.conns.get(&peer) {
                    // Requested again after a time-out if the connection takes none.
                    let _ = conn.asks.try_send(Ask::Metadata(piece));
                }
            }
            Output::Ban(peer) => self.ban(peer, "dropped: it sent false metadata"),
            Output::Contradiction => return Err(ResolveError::Contradiction),
            Output::Done(info) => {
                let missing = Metainfo::missing_layers(&info)?;
                if missing.is_empty() {
                    return Ok(Some(self.resolved(Metainfo::from_info(&info)?)));
                }
                let mut layers = LayerFetch::new(&missing);
                let conns = self.conns.iter().filter(|(_, conn)| conn.has);
                conns.for_each(|(id, _)| layers.on_peer(*id));
                self.layers = Some((info, layers));
            }
        }
        Ok(None)
    }

    /// Requests hashes, once the info dictionary says of what; returns the torrent when they are there.
    fn fetch_layers(&mut self, now: Instant) -> Result<Option<Resolved>, ResolveError> {
        let Some((_, layers)) = &mut self.layers else {
            return Ok(None);
        };
        for step in layers.advance(now) {
            match step {
                Step::Ask(peer, request) => {
                    if let Some(conn) = self.conns.get(&peer) {
                        // Requested again after a time-out if the connection takes none.
                        let _ = conn.asks.try_send(Ask::Hashes(request));
                    }
                }
                Step::Ban(peer) => self.ban(peer, "dropped: it sent false hashes"),
                Step::Done(nodes) => {
                    let info = self.layers.take().map(|(info, _)| info);
                    let metainfo = Metainfo::from_parts(&info.unwrap_or_default(), &nodes)?;
                    return Ok(Some(self.resolved(metainfo)));
                }
            }
        }
        Ok(None)
    }

    fn resolved(&self, metainfo: Metainfo) -> Resolved {
        let conns = self.conns.values().filter(|conn| conn.has);
        let peers = conns.map(|conn| conn.peer).collect();
        Resolved { metainfo, peers }
    }

    /// Nothing more is to be had over a connection.
    fn forget(&mut self, id: ConnectionId) {
        self.fetch.on_gone(id);
        if let Some((_, layers)) = &mut self.layers {
            layers.on_gone(id);
        }
    }

    fn ban(&mut self, id: ConnectionId, why: &str) {
        self.forget(id);
        if let Some(conn) = self.conns.remove(&id) {
            conn.task.abort();
            self.candidates.ban(conn.peer);
            self.trouble(conn.peer, why);
            tracing::warn!(peer = %conn.peer, why, "a peer was dropped");
        }
    }

    fn trouble(&mut self, peer: PeerAddr, why: &str) {
        if self.troubles.len() < MAX_TROUBLES || self.troubles.contains_key(&peer) {
            self.troubles.insert(peer, why.to_owned());
        }
    }

    fn troubles(&self) -> Vec<(PeerAddr, String)> {
        let troubles = self.troubles.iter();
        let mut troubles: Vec<_> = troubles.map(|(peer, why)| (*peer, why.clone())).collect();
        let conns = self.conns.values();
        troubles.extend(conns.map(|conn| (conn.peer, "no answer".to_owned())));
        troubles.sort();
        troubles.dedup_by_key(|(peer, _)| *peer);
        troubles
    }

    /// Reports the progress. Returns whether more was received or connected than ever before.
    fn report(&self) -> bool {
        let progress = ResolveProgress {
            known: self.candidates.len(),
            connected: self.conns.values().filter(|conn| conn.has).count(),
            pieces: match &self.layers {
                None => self.fetch.progress(),
                Some((info, layers)) => {
                    let pieces = info.len().div_ceil(METADATA_PIECE);
                    let (received, all) = layers.progress();
                    Some((pieces + received, pieces + all))
                }
            },
        };
        let received = |it: &ResolveProgress| it.pieces.map_or(0, |(received, _)| received);
        let mut is_more = false;
        self.progress.send_if_modified(|old| {
            is_more = received(&progress) > received(old) || progress.connected > old.connected;
            let is_new = *old != progress;
            *old = progress;
            is_new
        });
        is_more
    }
}
