//! The owner of a torrent: one task that holds all its state and one flat loop over what happens.
//!
//! Connections, disk threads, dials and path watches report to it through one channel; it alone
//! decides what is asked for over which connection, who is dialed and who is dropped.

mod blame;
mod conn;
mod content;
mod fill;
mod goal;
mod hear;
mod path;
mod policy;
mod remotes;
mod report;
mod seeding;
#[cfg(test)]
mod tests;
mod uploads;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_store::{Disk, DiskEvent, Hash, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::blame::Suspect;
use self::conn::{Conn, Origin};
pub(crate) use self::goal::Goal;
use self::remotes::{Dialed, Offered, RemoteId, Remotes};
pub(crate) use self::report::{Reporter, Tally};
use self::seeding::Seeding;
use self::uploads::{DialedBack, Downloader, Serving, Uploads};
use crate::address::PeerAddr;
use crate::close::CloseCode;
use crate::metainfo::Metainfo;
use crate::peer::{self, Counts, Gone, Inputs, Session, Shared, Side};
use crate::picker::{ConnId, GroupId, Picker};
use crate::progress::Phase;
use crate::transport::{Connection, Transport};
use crate::wire::{EXTENDED_HANDSHAKE, ExtendedHandshake, MULTIPATH, Message};

/// How often rates, stalls and dials are looked at.
const TICK: Duration = Duration::from_millis(50);

/// Events that may wait for the owner. Blocks among them are bounded by the budget of the process.
const EVENTS: usize = 256;

/// Events handled before requests are topped up.
const AT_ONCE: usize = 32;

/// Most connections that peers may open to us.
const MOST_ACCEPTED: usize = 500;

/// What happens.
enum Event<T: Transport> {
    Offers {
        remote: RemoteId,
        paths: Offered<T::Path>,
        trouble: Option<String>,
    },
    Incoming(T::Connection),
    Dialed {
        dialed: Dialed,
        result: Result<Session<T::Connection>, DialError>,
    },
    /// What is offered to a downloader.
    OffersBack {
        downloader: Downloader,
        paths: Offered<T::Path>,
    },
    DialedBack {
        dialed: DialedBack,
        result: Result<Session<T::Connection>, DialError>,
    },
    Accepted(Result<Session<T::Connection>, (PeerAddr, Gone)>),
    Heard(ConnId, Inputs),
    Gone(ConnId, Gone),
    Disk(DiskEvent<Hash<Metainfo>>),
    NoMoreIncoming,
}

/// Why dialing came to nothing.
enum DialError {
    NotConnected(String),
    Handshake(Gone),
}

/// Why a torrent's owner ended without having everything.
#[derive(Debug)]
pub(crate) enum SwarmError {
    Stopped,
    Store(StoreError),
    /// No connection and no progress for too long; each peer with the last reason.
    NoPeer(Duration, Vec<(PeerAddr, String)>),
    /// Nobody who is connected sends anything, or has what is missing, for too long.
    NoProgress(Duration, Vec<(PeerAddr, String)>),
    /// No peer is left that may be spoken to.
    AllDropped(Vec<(PeerAddr, String)>),
    /// No path to any peer.
    NoPath(Vec<(PeerAddr, String)>),
    EndpointClosed,
}

/// The state of a torrent at work.
pub(crate) struct Swarm<T: Transport> {
    transport: T,
    metainfo: Arc<Metainfo>,
    shared: Arc<Shared>,
    goal: Goal,
    picker: Picker,
    disk: Disk,
    remotes: Remotes<T::Path>,
    conns: HashMap<ConnId, Conn<T::Connection>>,
    /// The peers that download over paths chosen here.
    uploads: Uploads<T::Path>,
    groups: HashMap<[u8; 32], GroupId>,
    banned: HashSet<[u8; 32]>,
    /// Hosts of IP peers that sent wrong data: they would connect again from another port.
    banned_hosts: HashSet<IpAddr>,
    suspects: HashMap<u32, Suspect>,
    /// Connections that may have room for requests.
    touched: HashSet<ConnId>,
    events: mpsc::Sender<Event<T>>,
    inbox: mpsc::Receiver<Event<T>>,
    /// Everything spawned, so that it ends with the owner.
    tasks: JoinSet<()>,
    next_id: u64,
    reporter: Reporter,
    tally: Tally,
    /// Since everything is verified, where others go on being served.
    seeding: Option<Seeding>,
    /// When there last was progress, or reason to wait for it.
    alive_at: Instant,
    accepted: usize,
    endpoint_closed: bool,
}

impl<T: Transport> Swarm<T> {
    /// An owner that offers what `shared` does and dials `peers`.
    ///
    /// # Errors
    /// When the disk threads cannot be started.
    pub fn new(
        transport: T,
        metainfo: Arc<Metainfo>,
        shared: Arc<Shared>,
        peers: Vec<PeerAddr>,
        goal: Goal,
        reporter: Reporter,
    ) -> Result<Self, StoreError> {
        let (events, inbox) = mpsc::channel(EVENTS);
        let report = events.clone();
        let disk = Disk::start(&shared.files, &metainfo, move |event| {
            // The owner is gone: nobody wants to know.
            let _ = report.blocking_send(Event::Disk(event));
        })?;
        let verified = shared.offered();
        let now = Instant::now();
        let tally = Tally::new(metainfo.pieces(), &verified, now);
        let mut remotes = Remotes::new(peers, &goal);
        if verified.is_full() {
            remotes.all_mut().for_each(|r| r.set_complete(false));
        }
        let uploads = Uploads::new(&goal, now);
        let mut swarm = Self {
            picker: Picker::new(metainfo.pieces(), verified, rand::random()),
            transport,
            metainfo,
            shared,
            goal,
            disk,
            remotes,
            conns: HashMap::new(),
            uploads,
            groups: HashMap::new(),
            banned: HashSet::new(),
            banned_hosts: HashSet::new(),
            suspects: HashMap::new(),
            touched: HashSet::new(),
            events,
            inbox,
            tasks: JoinSet::new(),
            next_id: 0,
            reporter,
            tally,
            seeding: None,
            alive_at: now,
            accepted: 0,
            endpoint_closed: false,
        };
        swarm.watch_all();
        Ok(swarm)
    }

    /// Runs until everything is verified, `stop` is done, or nothing more can be done. Connections
    /// stay open.
    ///
    /// # Errors
    /// Why it ended before.
    pub async fn complete(&mut self, stop: impl Future<Output = ()>) -> Result<(), SwarmError> {
        let result = tokio::select! {
            result = self.work() => result,
            () = stop => Err(SwarmError::Stopped),
        };
        self.tally.end(Instant::now());
        result
    }

    /// Closes all connections and finishes writing; `done` tells whether the goal was reached.
    /// Returns the sums over everything.
    pub async fn close(mut self, done: bool) -> Tally {
        let (reason, phase) = match done {
            true => ("done", Phase::Done),
            false => ("stopped", Phase::Stopped),
        };
        for conn in self.conns.values() {
            conn.connection.close(CloseCode::Plain, reason);
        }
        if let Some(content) = self.shared.content.get() {
            content.close();
        }
        self.report(Instant::now(), Some(phase));
        let tally = self.tally();
        let Self {
            disk,
            mut inbox,
            mut tasks,
            ..
        } = self;
        tasks.abort_all();
        // Disk threads that wait for room to report must not wait for ever.
        inbox.close();
        drop(inbox);
        let finished = tokio::task::spawn_blocking(move || disk.finish()).await;
        // It is cancelled when the runtime ends meanwhile; then nobody waits for the files either.
        if let Err(error) = finished
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        tally
    }

    async fn work(&mut self) -> Result<(), SwarmError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(AT_ONCE);
        while !self.is_over() {
            let mut ticked = false;
            tokio::select! {
                _ = self.inbox.recv_many(&mut batch, AT_ONCE) => {}
                _ = tick.tick() => ticked = true,
            }
            let now = Instant::now();
            for event in batch.drain(..) {
                self.handle(event, now)?;
            }
            if ticked {
                self.tick(now)?;
            }
            self.obey(now);
            self.fill(now, ticked);
        }
        Ok(())
    }

    /// Whether the goal, or a limit of seeding, is reached.
    fn is_over(&self) -> bool {
        match &self.seeding {
            Some(seeding) => seeding.end.is_some(),
            None => self.goal.until_complete && self.picker.verified().is_full(),
        }
    }

    fn handle(&mut self, event: Event<T>, now: Instant) -> Result<(), SwarmError> {
        match event {
            Event::Offers {
                remote,
                paths,
                trouble,
            } => self.offered(remote, &paths, trouble, now)?,
            Event::Incoming(connection) => self.incoming(connection),
            Event::Dialed { dialed, result } => self.dialed(dialed, result, now)?,
            Event::OffersBack { downloader, paths } => {
                self.offered_back(downloader, &paths, now);
            }
            Event::DialedBack { dialed, result } => self.dialed_back(dialed, result, now)?,
            Event::Accepted(Ok(session)) => {
                self.accepted -= 1;
                self.join(session, Origin::Accepted, now)?;
            }
            Event::Accepted(Err((peer, gone))) => {
                self.accepted -= 1;
                tracing::debug!(%peer, %gone, "a connection came to nothing");
            }
            Event::Heard(conn, Inputs { inputs, room }) => {
                if let Some(known) = self.conns.get_mut(&conn) {
                    let heard = known.listen(now);
                    if heard && known.is_busy() {
                        self.alive_at = now;
                    }
                    if heard && known.stalled.is_some() {
                        self.recover(conn, now);
                    }
                    for input in inputs {
                        self.hear(conn, input, room.as_ref(), now)?;
                    }
                    self.touched.insert(conn);
                }
            }
            Event::Gone(conn, gone) => self.gone(conn, &gone, now)?,
            Event::Disk(event) => self.disk_says(event, now)?,
            Event::NoMoreIncoming => self.endpoint_closed = true,
        }
        Ok(())
    }

    fn tick(&mut self, now: Instant) -> Result<(), SwarmError> {
        while self.tasks.try_join_next().is_some() {}
        let mut silent = Vec::new();
        let mut recovered = Vec::new();
        for (id, conn) in &mut self.conns {
            let heard = conn.listen(now);
            if heard && conn.is_busy() {
                self.alive_at = now;
            }
            if heard && conn.stalled.is_some() {
                recovered.push(*id);
            } else if conn.stalled.is_none() && conn.is_silent(now) {
                silent.push(*id);
            }
        }
        recovered.into_iter().for_each(|id| self.recover(id, now));
        silent.into_iter().for_each(|id| self.stall(id, now));
        self.follow_content();
        self.ask_again(now);
        self.weigh(now);
        self.retire();
        self.part_from_complete();
        self.check_limits(now);
        self.settle(now);
        self.report(now, None);
        if self.endpoint_closed {
            return Err(SwarmError::EndpointClosed);
        }
        if self.is_hopeful(now) {
            self.alive_at = now;
        }
        if self.goal.until_complete
            && now.saturating_duration_since(self.alive_at) > self.goal.give_up_after
        {
            let (after, troubles) = (self.goal.give_up_after, self.troubles());
            return Err(match self.conns.is_empty() {
                true => SwarmError::NoPeer(after, troubles),
                false => SwarmError::NoProgress(after, troubles),
            });
        }
        Ok(())
    }

    /// A session is up: from now on it is a path-level peer.
    fn join(
        &mut self,
        session: Session<T::Connection>,
        origin: Origin,
        now: Instant,
    ) -> Result<Option<ConnId>, SwarmError> {
        let key = session.connection.key();
        let from = session.connection.peer();
        let from_banned = origin == Origin::Accepted && self.is_host_banned(from);
        if self.banned.contains(&key) || from_banned || self.remotes.is_banned(from) {
            session.connection.close(CloseCode::Banned, "banned");
            if let Origin::Dialed(dialed) = origin {
                self.ban_remote(dialed.remote, "it has the key of a peer that was dropped")?;
            }
            return Ok(None);
        }
        let offered = self.shared.offered();
        if session.offered.iter().any(|piece| !offered.has(piece)) {
            session
                .connection
                .close(CloseCode::Withdrawn, content::WITHDRAWN);
            return Ok(None);
        }
        let next_group = self.groups.len() as GroupId;
        let group = *self.groups.entry(key).or_insert(next_group);
        let id = self.new_id();
        let connection = Arc::clone(&session.connection);
        let counts = Arc::new(Counts::default());
        let (messages, outbox) = mpsc::unbounded_channel();
        let asked = Arc::new(peer::Uploads::default());
        let serving = Serving::new(session.extended, Arc::clone(&asked), now);
        let conn = Conn::new(
            connection,
            origin,
            group,
            Arc::clone(&counts),
            serving,
            messages,
        );
        if session.extended && !session.introduced {
            conn.send([self.introduction(from)]);
        }
        // What was verified between our greeting and now.
        let news = offered.iter().filter(|piece| !session.offered.has(*piece));
        conn.send(news.map(Message::Have));
        self.picker.add_conn(id, group);
        self.conns.insert(id, conn);
        self.greet(id, now);
        self.tally.connections += 1;
        let (shared, events) = (Arc::clone(&self.shared), self.events.clone());
        self.tasks.spawn(async move {
            let heard = events.clone();
            let wrap = move |inputs| Event::Heard(id, inputs);
            let gone = peer::run(session, shared, counts, asked, outbox, heard, wrap).await;
            // The owner is gone: nobody wants to know.
            let _ = events.send(Event::Gone(id, gone)).await;
        });
        Ok(Some(id))
    }

    /// Our extended handshake for a peer (BEP 10).
    pub(super) fn introduction(&self, peer: PeerAddr) -> Message {
        let ours = ExtendedHandshake {
            client: Some(concat!("hawser/", env!("CARGO_PKG_VERSION")).into()),
            request_queue: Some(peer::QUEUE as u32),
            port: self.transport.port(peer),
            multipath: self.is_multipath(peer).then_some(MULTIPATH),
            upload_only: !self.shared.fetches(),
        };
        Message::Extended {
            id: EXTENDED_HANDSHAKE,
            payload: ours.encode().into(),
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn incoming(&mut self, connection: T::Connection) {
        if let Err(why) = self.admits(&connection) {
            let (peer, path) = (connection.peer(), connection.fingerprint());
            tracing::info!(%peer, %path, %why, "connection refused");
            connection.close(CloseCode::PathRefused, policy::REFUSED);
            return;
        }
        let accepted = self.conns.values();
        let accepted = accepted.filter(|conn| conn.origin == Origin::Accepted);
        if accepted.count() + self.accepted >= MOST_ACCEPTED {
            connection.close(CloseCode::TooMany, "too many connections");
            return;
        }
        self.accepted += 1;
        let (shared, events) = (Arc::clone(&self.shared), self.events.clone());
        let from = connection.peer();
        let introduction = self.introduction(from);
        self.tasks.spawn(async move {
            let session = peer::establish(connection, Side::Accepted, &introduction, &shared).await;
            let result = session.map_err(|gone| (from, gone));
            let _ = events.send(Event::Accepted(result)).await;
        });
    }
}
