//! Dialing, losing, replacing connections over paths.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_path::Fingerprint;
use tokio::task::AbortHandle;

use super::conn::Origin;
use super::policy::REFUSED_PAUSE;
use super::remote::{Offered, Remote};
use super::{DialError, Event, HANDSHAKE_PAUSE, Swarm, SwarmError};
use crate::address::PeerAddr;
use crate::close::{CloseCode, Closed};
use crate::peer::{self, Gone, Session, Shared, Side};
use crate::picker::ConnId;
use crate::transport::{Connection, Transport};
use crate::wire::Message;

/// Connecting and the handshake together may take so long; a dial that hangs must end, so that the
/// path is tried again.
const DIAL_TIME: Duration = Duration::from_secs(15);

/// A connection this old has seen the peer's bitfield, and whether it may be asked for blocks: one
/// that ends sooner time and again is no reason to wait.
const SETTLED: Duration = Duration::from_secs(5);

/// What a peer is told when a connection to it is not wanted any more.
const UNUSED: &str = "the path is not used any more";

/// A connection to an IP peer over which nothing comes is closed after so long, and the peer dialed
/// anew. Many programs take one connection from an address at a time.
const SILENT_TIME: Duration = Duration::from_secs(30);

/// A path that is not offered any more and delivers nothing is closed after so long.
const WITHDRAWN_TIME: Duration = Duration::from_secs(2);

/// A dial under way.
pub(super) struct Attempt {
    pub remote: usize,
    pub fingerprint: Fingerprint,
    began: Instant,
    task: AbortHandle,
}

impl<T: Transport> Swarm<T> {
    /// Starts to listen for what is offered to every remote, and for who connects.
    pub(super) fn watch_all(&mut self) {
        for (remote, peer) in self.remotes.iter().map(|r| r.addr).enumerate() {
            let (transport, events) = (self.transport.clone(), self.events.clone());
            self.tasks.spawn(async move {
                let mut offers = transport.offers(peer);
                let mut trouble = transport.lookup(peer).await.err();
                loop {
                    let paths = Arc::clone(&offers.borrow_and_update());
                    let empty = paths.is_empty();
                    if empty && trouble.is_none() {
                        trouble = transport.lookup(peer).await.err();
                    }
                    let event = Event::Offers {
                        remote,
                        paths,
                        trouble: trouble.take().filter(|_| empty),
                    };
                    if events.send(event).await.is_err() || offers.changed().await.is_err() {
                        return;
                    }
                }
            });
        }
        let (transport, events) = (self.transport.clone(), self.events.clone());
        self.tasks.spawn(async move {
            while let Some(connection) = transport.accept().await {
                if events.send(Event::Incoming(connection)).await.is_err() {
                    return;
                }
            }
            let _ = events.send(Event::NoMoreIncoming).await;
        });
    }

    /// The set of paths to a remote changed.
    pub(super) fn offered(
        &mut self,
        remote: usize,
        paths: &Offered<T::Path>,
        trouble: Option<String>,
        now: Instant,
    ) -> Result<(), SwarmError> {
        let known = &mut self.remotes[remote];
        known.no_path = trouble;
        let (transport, peer) = (&self.transport, known.addr);
        let withdrawn = known.offer(paths, |path| transport.fits(peer, path), now);
        for attempt in withdrawn.attempts {
            if let Some(attempt) = self.attempts.remove(&attempt) {
                attempt.task.abort();
            }
        }
        // The peer is not told what the policy says.
        for conn in withdrawn.denied {
            self.drop_conn(conn, CloseCode::Plain, UNUSED);
        }
        // Most likely a router said that the path is down: others fetch what was asked for over it.
        // If it works after all, it recovers with the next byte.
        for conn in withdrawn.conns {
            self.stall(conn, now);
        }
        // Nothing to wait for: refuse at once.
        if self.goal.until_complete
            && self.tally.connections == 0
            && self.remotes.iter().all(|remote| remote.is_hopeless())
        {
            return Err(SwarmError::NoPath(self.troubles()));
        }
        Ok(())
    }

    /// Dials every path whose time has come, all at once.
    pub(super) fn dial_due(&mut self, now: Instant) {
        for remote in 0..self.remotes.len() {
            if self.remotes[remote].next_due().is_none_or(|at| at > now) {
                continue;
            }
            for fingerprint in self.remotes[remote].due(now) {
                self.dial(remote, fingerprint);
            }
        }
    }

    fn dial(&mut self, remote: usize, fingerprint: Fingerprint) {
        let attempt = self.new_id();
        let peer = self.remotes[remote].addr;
        let Some(path) = self.remotes[remote].paths.get_mut(&fingerprint) else {
            return;
        };
        path.link.attempt = Some(attempt);
        let route = path.path.clone();
        let (transport, shared) = (self.transport.clone(), Arc::clone(&self.shared));
        let (events, introduction) = (self.events.clone(), self.introduction(peer));
        let task = self.tasks.spawn(async move {
            let result = connect(transport, peer, route, &introduction, &shared).await;
            let _ = events.send(Event::Dialed { attempt, result }).await;
        });
        self.attempts.insert(
            attempt,
            Attempt {
                remote,
                fingerprint,
                began: Instant::now(),
                task,
            },
        );
    }

    /// A dial has an outcome.
    pub(super) fn dialed(
        &mut self,
        attempt: u64,
        result: Result<Session<T::Connection>, DialError>,
        now: Instant,
    ) -> Result<(), SwarmError> {
        let Some(Attempt {
            remote,
            fingerprint,
            began,
            ..
        }) = self.attempts.remove(&attempt)
        else {
            // Nobody waits for it any more.
            if let Ok(session) = result {
                session.connection.close(CloseCode::Plain, "not needed");
            }
            return Ok(());
        };
        if let Some(path) = self.remotes[remote].paths.get_mut(&fingerprint) {
            path.link.attempt = None;
            path.handshake = now.saturating_duration_since(began);
        }
        match result {
            Ok(session) if self.remotes[remote].banned.is_some() => {
                session.connection.close(CloseCode::Banned, "banned");
            }
            Ok(session) => {
                let origin = Origin::Dialed(remote, fingerprint);
                let rtt = session.connection.rtt();
                if let Some(conn) = self.join(session, origin, now)?
                    && let Some(before) = self.remotes[remote].connected(fingerprint, conn, rtt)
                {
                    let text = "replaced by a new connection";
                    self.drop_conn(before, CloseCode::Plain, text);
                }
            }
            Err(DialError::NotConnected(reason)) => {
                let pause = self.redial_pause();
                self.remotes[remote].failed(fingerprint, reason, pause, now);
            }
            Err(DialError::Handshake(Gone::Closed(Closed {
                code: CloseCode::PathRefused,
                text,
            }))) => self.remotes[remote].refused(fingerprint, text, REFUSED_PAUSE, now),
            Err(DialError::Handshake(gone)) if gone.is_final() => {
                return self.ban_remote(remote, &gone.to_string());
            }
            Err(DialError::Handshake(gone)) => {
                let pause = match gone {
                    Gone::Closed(_) => self.redial_pause(),
                    _ => HANDSHAKE_PAUSE.max(self.redial_pause()),
                };
                self.remotes[remote].failed(fingerprint, gone.to_string(), pause, now);
            }
        }
        Ok(())
    }

    /// A connection ended, or its peer broke the protocol.
    pub(super) fn gone(&mut self, id: ConnId, gone: &Gone, now: Instant) -> Result<(), SwarmError> {
        let Some(conn) = self.conns.get(&id) else {
            return Ok(());
        };
        let (origin, group, peer) = (conn.origin, conn.group, conn.connection.peer());
        // A peer that was fetching likely still wants to.
        let pause = match conn.counts.uploaded.load(Ordering::Relaxed) {
            0 => self.redial_pause(),
            _ => Duration::ZERO,
        };
        tracing::debug!(%peer, path = %conn.connection.fingerprint(), %gone, "connection ended");
        self.drop_conn(id, gone.code(), &gone.to_string());
        if let Origin::Dialed(remote, fingerprint) = origin {
            let remote = &mut self.remotes[remote];
            if let Some(path) = remote.paths.get_mut(&fingerprint)
                && path.link.conn.is_none()
            {
                remote.failed(fingerprint, gone.to_string(), pause, now);
            }
        }
        match gone {
            Gone::Broke(fault) => self.ban(group, &format!("dropped: {fault}")),
            _ => Ok(()),
        }
    }

    /// Closes a connection and forgets it; what was asked for over it is free for others.
    pub(super) fn drop_conn(&mut self, id: ConnId, code: CloseCode, text: &str) {
        self.picker.remove_conn(id);
        self.touched.remove(&id);
        let Some(conn) = self.conns.remove(&id) else {
            return;
        };
        conn.connection.close(code, text);
        self.tally.leave(&conn);
        if let Origin::Dialed(remote, fingerprint) = conn.origin
            && let Some(path) = self.remotes[remote].paths.get_mut(&fingerprint)
            && path.link.conn == Some(id)
        {
            path.link.conn = None;
            path.stalled = None;
        }
    }

    /// Nothing comes over a connection: what was asked for is asked for elsewhere.
    pub(super) fn stall(&mut self, id: ConnId, now: Instant) {
        let released = self.picker.release(id);
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        // If they are on their way after all, they are taken; if not, none is sent twice.
        conn.send(released.into_iter().map(Message::Cancel));
        conn.stall(now);
        tracing::debug!(peer = %conn.connection.peer(), path = %conn.connection.fingerprint(), "stalled");
        if let Origin::Dialed(remote, fingerprint) = conn.origin {
            self.remotes[remote].stalled(fingerprint, now);
        }
    }

    /// Something came over a connection that had stalled.
    pub(super) fn recover(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        // What was under way when the path was withdrawn proves nothing.
        let under_way = conn.connection.rtt() + super::TICK;
        let since = conn.stalled.unwrap_or(now);
        if now.saturating_duration_since(since) < under_way {
            return;
        }
        conn.stalled = None;
        self.touched.insert(id);
        if let Origin::Dialed(remote, fingerprint) = conn.origin {
            let attempt = self.remotes[remote].recovered(fingerprint);
            if let Some(attempt) = attempt.and_then(|id| self.attempts.remove(&id)) {
                attempt.task.abort();
            }
        }
    }

    /// Closes connections the selection no longer takes, and those over paths that are gone.
    pub(super) fn retire(&mut self, now: Instant) {
        let (mut closing, mut silent) = (Vec::new(), Vec::new());
        // Others may fetch over connections that were not worth fetching over.
        let complete = self.is_complete();
        for remote in &self.remotes {
            let surplus = match complete {
                true => Vec::new(),
                false => remote.surplus(),
            };
            for id in surplus {
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.retiring = true;
                    if self.picker.asked(id) == 0 {
                        closing.push(id);
                    }
                }
            }
            let withdrawn = remote.paths.values().filter(|path| !path.offered);
            closing.extend(withdrawn.filter_map(|path| {
                let since = path.stalled?;
                let over = now.saturating_duration_since(since) > WITHDRAWN_TIME;
                path.link.conn.filter(|_| over)
            }));
        }
        for id in closing {
            self.drop_conn(id, CloseCode::Plain, UNUSED);
        }
        for remote in self.remotes.iter_mut().filter(|remote| remote.is_single()) {
            for (fingerprint, id) in remote.silent(now, SILENT_TIME) {
                remote.failed(fingerprint, "it sent nothing".into(), Duration::ZERO, now);
                silent.push(id);
            }
        }
        for id in silent {
            self.drop_conn(id, CloseCode::Plain, "nothing came over it");
        }
    }

    /// Every peer with the reason there is no connection to it.
    pub(super) fn troubles(&self) -> Vec<(PeerAddr, String)> {
        let remotes = self.remotes.iter();
        remotes.map(|r| (r.addr, self.trouble(r))).collect()
    }

    fn trouble(&self, remote: &Remote<T::Path>) -> String {
        let conns = self.conns.iter();
        let of: Vec<ConnId> = conns
            .filter(|(_, conn)| conn.connection.peer() == remote.addr)
            .map(|(id, _)| *id)
            .collect();
        if of.is_empty() || remote.banned.is_some() {
            return remote.trouble();
        }
        match of.iter().any(|id| self.picker.is_interesting(*id)) {
            true => "connected, but it sends nothing".into(),
            false => "connected, but it has none of the missing pieces".into(),
        }
    }

    /// Looks at what every connection was asked for: a block that others asked for later overtook
    /// is free again, and one that may have been forgotten is asked for once more where nothing
    /// else comes.
    pub(super) fn ask_again(&mut self, now: Instant) {
        for (id, conn) in &mut self.conns {
            if let Some(before) = conn.overtaken_by(now) {
                let forgotten = self.picker.release_passed(*id, before);
                if !forgotten.is_empty() {
                    tracing::debug!(peer = %conn.connection.peer(), blocks = forgotten.len(), "asked for again");
                }
                conn.send(forgotten.into_iter().map(Message::Cancel));
            }
            if conn.is_retry_due(now) {
                conn.send(self.picker.unanswered(*id).map(Message::Request));
            }
        }
    }

    /// Whether there is reason to wait for blocks from who is connected: one waits for its turn, or
    /// has nothing of use yet and may get it.
    pub(super) fn is_hopeful(&self, now: Instant) -> bool {
        self.conns.iter().any(|(id, conn)| {
            let settled = now.saturating_duration_since(conn.terms.since) > SETTLED;
            settled
                && conn.stalled.is_none()
                && match self.picker.is_interesting(*id) {
                    true => !conn.unchoked,
                    false => !conn.upload_only,
                }
        })
    }
}

/// Connects to a peer over a path and greets it; gives up after [`DIAL_TIME`].
pub(super) async fn connect<T: Transport>(
    transport: T,
    peer: PeerAddr,
    path: T::Path,
    introduction: &Message,
    shared: &Shared,
) -> Result<Session<T::Connection>, DialError> {
    let connect = async {
        let connection = transport.dial(peer, path).await;
        let connection = connection.map_err(DialError::NotConnected)?;
        let session = peer::establish(connection, Side::Dialed, introduction, shared).await;
        session.map_err(DialError::Handshake)
    };
    let result = tokio::time::timeout(DIAL_TIME, connect).await;
    result.unwrap_or_else(|_| {
        let reason = format!("no answer within {} s", DIAL_TIME.as_secs());
        Err(DialError::NotConnected(reason))
    })
}
