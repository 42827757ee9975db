//! The owner of a torrent: one task that holds all its state and one flat loop over events.
//!
//! Connections, disk threads and path watches report to it through one channel; outcomes of dials
//! and changes of the policy are awaited beside it. It alone decides what is requested over which
//! connection, what is dialed and what is dropped.
//!
//! # Its life
//!
//! 1. *New*: disk threads, path watches and the acceptance of connections begin. Nothing is dialed
//!    yet.
//! 2. *Fetching* ([`Swarm::complete`]): until every piece is verified, it is stopped, or it fails:
//!    the disk or the endpoint does, no path or peer is left, or nothing comes for too long.
//! 3. *Seeding* ([`Swarm::seed`]): over the same connections, until a limit is reached, it is
//!    stopped, or the disk or the endpoint fails. At a limit it takes leave: peers get what is
//!    under way, for up to 10 s.
//! 4. *Closing* ([`Swarm::close`]): connections are closed and tasks cancelled. The channel goes
//!    before the disk threads are awaited, as they may wait for room in it.
//!
//! In 2 and 3 it waits for events, dials, the policy, or the next tick, 50 ms after the last one; when
//! everything is here and nothing is sent, a second after it; when no peer wants anything, only for what is
//! due. It never waits for a peer or the disk: messages go to the queue of their connection (`Conn` says what
//! bounds it), and blocks, with their reservations, to the disk threads. Of the locks of a torrent it takes
//! the two that `peer` describes and that of the watched files, each for one call; threads that read for peers
//! hold the last one while they ask for the state of a file.
//!
//! It keeps at most [`MAX_ACCEPTED`] connections that peers opened, 500 that were dialed to downloaders, and
//! those that the path sets of the listed peers and of at most 60 found ones order. It remembers 2,000
//! addresses of found peers. Its user may set how many peers may be connected at all. Of peers that have left
//! it keeps their keys, their bans and what they delivered, without a bound.

mod answers;
mod ban;
mod blame;
mod block_hashes;
mod conn;
mod connections;
mod content;
mod dialing;
mod digests;
mod event;
mod exchange;
mod fetching;
mod groups;
mod hash_answers;
mod hashes;
mod health;
mod held;
mod inputs;
mod metadata;
mod net;
mod orders;
mod padded;
mod peer_limit;
mod policy;
mod recent;
mod recruit;
mod remotes;
mod report;
mod seeding;
mod selecting;
mod state;
mod subflow;
mod tally;
#[cfg(test)]
mod tests;
mod uploads;
mod web;
mod web_runs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_address::PeerAddr;
use hawser_manager::{PathOptions, SelectBy};
use hawser_session::Timer;
use hawser_store::{Disk, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::blame::Blame;
use self::conn::Conn;
use self::connections::Connections;
use self::dialing::Dialing;
use self::event::Event;
use self::fetching::Fetching;
use self::net::Net;
use self::padded::PaddedBlocks;
pub(crate) use self::selecting::Select;
use self::state::Ending;
pub(crate) use self::state::Swarm;
use self::subflow::{Dialed, Peer};
pub(crate) use self::tally::{Reporter, Tally};
use self::uploads::{Serving, Uploads};
use self::web_runs::Web;
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::files::FileTally;
use crate::metainfo::{Metainfo, Version};
use crate::peer::{self, Inputs, Session, Shared};
use crate::picker::{AddressFamily, ConnId, Padding, Picker};
use crate::progress::Phase;
use crate::selection::Selection;
use crate::transport::{Connection, Transport};
use crate::wire::{
    EXTENDED_HANDSHAKE, ExtendedHandshake, MULTIPATH, Message, SCION_PEX, UT_METADATA, UT_PEX,
};

/// Interval at which rates, stalls and dials are checked.
const TICK: Duration = Duration::from_millis(50);

/// The same while everything is here, and the peers that want it ask for nothing.
const SLOW_TICK: Duration = Duration::from_secs(1);

/// A longer time without a tick was a pause of this program, as of a stopped process.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Events that may wait for the owner. The memory budget of the process bounds the blocks in them.
const EVENTS: usize = 256;

/// Events handled before requests are topped up.
const MAX_EVENT_BATCH: usize = 32;

/// Most connections that peers may open to us, beside those whose handshake is not over.
const MAX_ACCEPTED: usize = 1000;

/// The text of a close for want of room.
const TOO_MANY: &str = "too many connections";

impl<T: Transport> Swarm<T> {
    /// Creates an owner that offers the verified pieces of `shared` and dials `peers`.
    ///
    /// # Errors
    /// When the disk threads cannot be started.
    pub fn new(
        transport: T,
        metainfo: Arc<Metainfo>,
        shared: Arc<Shared>,
        peers: Vec<PeerAddr>,
        select_by: SelectBy,
        paths: PathOptions,
        reporter: Reporter,
    ) -> Result<Self, StoreError> {
        let (events, inbox) = mpsc::channel(EVENTS);
        let report = events.clone();
        let disk = Disk::start(&shared.files, &metainfo, move |event| {
            // Fails once the owner has ended.
            let _ = report.blocking_send(Event::Disk(event));
        })?;
        let verified = shared.offered();
        let now = Instant::now();
        let tally = Tally::new(metainfo.pieces, &verified, now);
        let uploads = Uploads::new(paths.clone(), now);
        let mut dialing = Dialing::new(peers, select_by, paths);
        if verified.is_full() {
            let remotes = dialing.remotes.values_mut();
            remotes.for_each(|remote| remote.set_complete(false));
        }
        let announced_final = shared.is_final();
        let files = FileTally::new(&metainfo);
        let (pieces, padding) = (metainfo.pieces, Padding::of(&metainfo));
        let (wanted, seed) = (Selection::all().wanted(&metainfo), fastrand::u64(..));
        let mut picker = Picker::of(pieces, verified, wanted, padding, seed);
        picker.set_own_id(shared.ours.peer_id.short());
        let mut swarm = Self {
            net: Net::new(transport, Arc::clone(&shared), events),
            metainfo,
            shared,
            inbox,
            announced_final,
            fetching: Fetching::new(picker, disk, files, now),
            dialing,
            conns: Connections::default(),
            uploads,
            blame: Blame::default(),
            reporter,
            tally,
            seeding: None,
            web: Web::default(),
            ending: Ending::new(now),
        };
        for (id, known) in &mut swarm.dialing.remotes {
            known.watch = Some(swarm.net.watch(Peer::Remote(*id), known.addr));
        }
        swarm.net.accept();
        Ok(swarm)
    }

    /// Runs until everything selected is verified, `stop` is cancelled, or `give_up_after` has passed
    /// without progress and without a peer worth waiting for; a complete peer that chokes this side
    /// is for `choked_patience`. If no peers are awaited, it ends
    /// sooner when no connected peer will ever have what is missing. Connections stay open.
    ///
    /// # Errors
    /// The reason why it ended before everything was verified.
    pub async fn complete(
        &mut self,
        give_up_after: Duration,
        choked_patience: Duration,
        awaits_peers: bool,
        stop: &CancellationToken,
    ) -> Result<(), DownloadError> {
        self.ending.give_up_after = Some(give_up_after);
        self.ending.awaits_peers = awaits_peers;
        self.ending.choked_patience = choked_patience;
        let result = tokio::select! {
            result = self.work() => result,
            () = stop.cancelled() => Err(DownloadError::Stopped),
        };
        self.tally.end(Instant::now());
        result
    }

    /// Closes all connections and finishes writing; `done` says whether the goal was reached.
    /// Returns the totals.
    pub async fn close(mut self, done: bool) -> Tally {
        let (reason, phase) = match done {
            true => ("done", Phase::Done),
            false => ("stopped", Phase::Stopped),
        };
        for conn in self.conns.open.values() {
            conn.connection.close(CloseCode::Plain, reason);
        }
        if let Some(content) = self.shared.content.get() {
            content.close();
        }
        self.report(Instant::now(), Some(phase));
        let tally = self.tally();
        let Self {
            fetching: Fetching { disk, .. },
            mut inbox,
            net,
            dialing,
            ..
        } = self;
        // Ends all tasks.
        drop((net, dialing));
        // Disk threads blocked on the full channel must not block for ever.
        inbox.close();
        drop(inbox);
        let finished = tokio::task::spawn_blocking(move || disk.finish()).await;
        // The task is cancelled if the runtime shuts down meanwhile; that is no error.
        if let Err(error) = finished
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        tally
    }

    async fn work(&mut self) -> Result<(), DownloadError> {
        let mut timer = Timer::default();
        let mut batch = Vec::with_capacity(MAX_EVENT_BATCH);
        let mut before = Instant::now();
        // When the next tick may come, whether nothing has happened since the last one, and what was sent by then.
        let (mut tick_at, mut is_quiet, mut sent) = (before, false, 0);
        while !self.is_over() {
            let due = match is_quiet {
                true => self.next_due(before, tick_at, &mut sent),
                false => Some(tick_at),
            };
            timer.set(due);
            let (mut ticked, mut outcome) = (false, None);
            tokio::select! {
                _ = self.inbox.recv_many(&mut batch, MAX_EVENT_BATCH) => {}
                dialed = self.dialing.dials.next() => outcome = Some(dialed),
                policy = self.dialing.policies.next() => self.set_policy(policy),
                () = timer.expired() => ticked = true,
            }
            if ticked {
                // What has arrived counts before it is judged what is late.
                while batch.len() < MAX_EVENT_BATCH
                    && let Ok(event) = self.inbox.try_recv()
                {
                    batch.push(event);
                }
            }
            let now = Instant::now();
            let waited_since = due.map_or(now, |due| due.max(before));
            before = now;
            let pause = now.saturating_duration_since(waited_since);
            if pause > MIN_PAUSE {
                // This program did not run: nothing could have arrived.
                self.ending.alive_at += pause;
                self.uploads.choker.skip(pause);
            }
            let was_quiet = std::mem::replace(&mut is_quiet, ticked);
            while let Some((dialed, result)) =
                outcome.take().or_else(|| self.dialing.dials.try_next())
            {
                self.dialed(dialed, result, now);
            }
            if was_quiet && batch.iter().any(|event| matches!(event, Event::Gone(..))) {
                // A peer that leaves closes its connections one after the other: a tick between two of them
                // would dial again what was closed first.
                tick_at = now + TICK;
            }
            for event in batch.drain(..) {
                self.handle(event, now);
            }
            self.announce();
            if ticked {
                tick_at = now + TICK;
                self.tick(now);
                if let Some(failure) = self.ending.failure.take() {
                    return Err(failure);
                }
            }
            self.obey(now);
            self.fetching.limit = self.shared.rates.down.rate();
            self.fetching
                .fill(&mut self.conns, &self.dialing, now, ticked);
            self.ask_web_seeds(ticked, now);
        }
        Ok(())
    }

    /// Whether the goal or a limit of seeding is reached.
    fn is_over(&self) -> bool {
        match &self.seeding {
            Some(seeding) => seeding.end.is_some(),
            None => self.is_complete(),
        }
    }

    /// When the next tick is due if no event comes, at `tick_at` or later: soon, unless everything is here and
    /// nobody wants it, or those that do ask for nothing. `sent` is what was sent when this was called last.
    fn next_due(&self, now: Instant, tick_at: Instant, sent: &mut u64) -> Option<Instant> {
        if !self.is_complete() {
            return Some(tick_at);
        }
        let conns = || self.conns.open.values();
        let before = std::mem::replace(sent, conns().map(|conn| conn.uploaded()).sum());
        let seeding = self.seeding.as_ref();
        let ends = seeding.and_then(|it| it.since.checked_add(it.limits.time?));
        let due = [
            self.dialing.next_due(),
            self.uploads.sharing.next_due(),
            self.conns.exchanges.next_due(),
            conns().filter_map(|conn| conn.decision_due(now)).min(),
            ends,
        ];
        let due = due.into_iter().flatten().min();
        let due = match conns().any(|conn| conn.serving.is_wanted()) {
            false => due,
            true if *sent == before => {
                let slow = tick_at + (SLOW_TICK - TICK);
                Some(due.map_or(slow, |due| due.min(slow)))
            }
            true => Some(tick_at),
        };
        due.map(|due| due.max(tick_at))
    }

    fn handle(&mut self, event: Event<T>, now: Instant) {
        match event {
            Event::Offers { to, paths, trouble } => self.offered(to, &paths, trouble, now),
            Event::Found(peers, source) => self.found(peers, source, now),
            Event::Incoming(connection) => self.incoming(connection),
            Event::Accepted(number, session) => {
                self.conns.handshaking.leave(number);
                if let Some(session) = session {
                    self.join(session, None, now);
                }
            }
            Event::Input(conn, Inputs { inputs, room }) => {
                if self.conns.open.contains_key(&conn) {
                    self.look_at(conn, now);
                    for input in inputs {
                        self.take_input(conn, input, room.as_ref(), now);
                    }
                    self.conns.touch(conn);
                }
            }
            Event::Gone(conn, gone) => self.gone(conn, &gone, now),
            Event::Disk(event) => self.on_disk_event(event, now),
            Event::Web(seed, run, event) => self.on_web(seed, run, event, now),
            Event::Selected(selection, reply) => self.selected((selection, reply), now),
            // The tick that follows takes the news.
            Event::Scanned => {}
            Event::MaxPeers(max) => self.set_max_peers(max, now),
            Event::NoMoreIncoming => self.ending.failure = Some(DownloadError::EndpointClosed),
        }
    }

    fn tick(&mut self, now: Instant) {
        while self.net.tasks.try_join_next().is_some() {}
        for id in self.conns.ids() {
            self.look_at(id, now);
        }
        self.follow_content();
        self.ask_again(now);
        self.resolve_held(now);
        let picker = &self.fetching.picker;
        self.dialing.weigh(&self.conns, picker, now);
        self.retire();
        self.part_from_complete(now);
        self.rechoke(now);
        self.check_limits(now);
        self.settle(now);
        self.recruit(now);
        self.exchange(now);
        self.reveal();
        self.report(now, None);
        self.consider_giving_up(now);
    }

    /// Adds a session as a path-level peer. Closes it and returns `None` if the peer is banned, or
    /// if it was offered pieces that have since been withdrawn.
    fn join(&mut self, session: Session, dialed: Option<Dialed>, now: Instant) -> Option<ConnId> {
        let key = session.connection.key();
        let group = self.conns.group(key);
        let from = session.connection.peer();
        if let Some(reason) = self.ban_reason(&key, from, dialed.is_none()) {
            session.connection.close(CloseCode::Banned, "banned");
            if let Some(Dialed {
                to: Peer::Remote(id),
                ..
            }) = dialed
            {
                self.ban_remote(id, &reason);
            }
            return None;
        }
        let peer = self.conns.peer_of(group, from, session.peer_id);
        if !self.conns.has_room_for(peer) {
            let connection = &session.connection;
            connection.close(CloseCode::TooMany, peer_limit::TOO_MANY_PEERS);
            return None;
        }
        if self.is_duplicate(&session, dialed) {
            self.refuse_duplicate(&session, dialed);
            return None;
        }
        let offered = self.shared.offered();
        if session.offered.iter().any(|piece| !offered.has(piece)) {
            session
                .connection
                .close(CloseCode::Withdrawn, content::WITHDRAWN);
            return None;
        }
        let connection = Arc::clone(&session.connection);
        let (messages, outbox) = mpsc::unbounded_channel();
        let serving = Serving::new(self.is_multipath(from), session.extended);
        let peer_id = session.peer_id;
        let mut conn = Conn::new(connection, dialed, group, peer_id, serving, messages, now);
        conn.peer = peer;
        conn.wants.interested = session.interested;
        // A torrent of version 2 alone is known to none but those that understand it.
        let version = self.metainfo.version();
        conn.theirs.version_two = session.version_two || version == Version::Two;
        if self.metainfo.files.iter().any(|file| file.padding) {
            let shown = conn
                .remote()
                .and_then(|(id, _)| self.dialing.remotes.get(&id));
            let shown = shown.and_then(|remote| remote.whole_blocks);
            let takes_parts = version != Version::One && conn.theirs.version_two;
            let is_whole = shown.unwrap_or(!takes_parts && !peer_id.is_hawser());
            conn.wants.padded = Some(PaddedBlocks::new(self.metainfo.pieces, is_whole));
        }
        let traffic = Arc::clone(&conn.traffic);
        if session.extended && !session.introduced {
            conn.send([self.introduction(from)]);
        }
        if session.dht {
            self.name_node(&conn);
        }
        // Pieces verified, or revealed to the peer, since the handshake.
        let known = self.begin_revealing(peer);
        let news = known.iter().filter(|piece| !session.offered.has(*piece));
        conn.send(news.map(Message::Have));
        let id = self.conns.add(conn);
        self.fetching.picker.add_conn(id, group);
        self.fetching.picker.belongs_to(id, peer);
        let family = match from.ip() {
            Some(_) => AddressFamily::Ip,
            None => AddressFamily::Scion,
        };
        self.fetching.picker.set_peer(id, peer_id.short(), family);
        self.begin_choking(id);
        self.greet(id, now);
        self.tally.connections += 1;
        self.net.run(id, session, traffic, outbox);
        Some(id)
    }

    /// Our extended handshake for a peer (BEP 10).
    pub(super) fn introduction(&self, peer: PeerAddr) -> Message {
        let exchanges = |ours: bool| ours && self.exchanges_peers();
        let ours = ExtendedHandshake {
            client: Some(concat!("hawser/", env!("CARGO_PKG_VERSION")).into()),
            request_queue: Some(peer::MAX_WAITING as u32),
            port: self.net.transport.port(peer),
            multipath: self.is_multipath(peer).then_some(MULTIPATH),
            ut_pex: exchanges(peer.ip().is_some()).then_some(UT_PEX),
            scion_pex: exchanges(peer.scion().is_some()).then_some(SCION_PEX),
            ut_metadata: Some(UT_METADATA),
            metadata_size: self.metainfo.info().len().try_into().ok(),
            upload_only: self.shared.is_final(),
        };
        Message::Extended {
            id: EXTENDED_HANDSHAKE,
            payload: ours.encode().into(),
        }
    }

    fn incoming(&mut self, connection: Arc<dyn Connection>) {
        if let Err(why) = self.admits(&*connection) {
            let (peer, path) = (connection.peer(), connection.fingerprint());
            tracing::info!(%peer, %path, %why, "connection refused");
            connection.close(CloseCode::PathRefused, policy::REFUSED);
            return;
        }
        let conns = self.conns.open.values();
        let accepted = conns.filter(|conn| conn.dialed.is_none());
        let has_room = self.conns.may_have_room_for(&*connection);
        if accepted.count() >= MAX_ACCEPTED || !has_room {
            let Some(spare) = self.conns.spare() else {
                connection.close(CloseCode::TooMany, TOO_MANY);
                return;
            };
            self.drop_conn(spare, CloseCode::TooMany, TOO_MANY);
        }
        let (peer, end) = (connection.peer(), Arc::clone(&connection));
        let (number, outdone) = self.conns.handshaking.admit(peer, end);
        if let Some(outdone) = outdone {
            outdone.close(CloseCode::TooMany, TOO_MANY);
        }
        let introduction = self.introduction(peer);
        self.net.greet(number, connection, introduction);
    }
}
