//! Connections that end, stall and recover.

use std::time::{Duration, Instant};

use hawser_manager::Failure;

use super::remotes::Remote;
use super::state::Swarm;
use super::subflow::Dialed;
use crate::address::PeerAddr;
use crate::close::CloseCode;
use crate::peer::Gone;
use crate::picker::ConnId;
use crate::transport::Transport;
use crate::wire::Message;

/// A connection this old has seen the peer's bitfield, and whether it may be asked for blocks: one
/// that ends sooner time and again is no reason to wait.
const SETTLED: Duration = Duration::from_secs(5);

impl<T: Transport> Swarm<T> {
    /// The remote that a connection was dialed to, and the subflow that it is.
    pub(super) fn remote_of(&mut self, id: ConnId) -> Option<(&mut Remote<T::Path>, Dialed)> {
        let (remote, dialed) = self.conns.open.get(&id)?.remote()?;
        Some((self.remotes.get_mut(&remote)?, dialed))
    }

    /// A connection ended, or its peer broke the protocol.
    pub(super) fn gone(&mut self, id: ConnId, gone: &Gone, now: Instant) {
        let Some(conn) = self.conns.open.get(&id) else {
            return;
        };
        let (group, peer) = (conn.group, conn.connection.peer());
        // A peer that was fetching likely still wants to.
        let failure = match conn.uploaded() {
            0 => Failure::Closed,
            _ => Failure::Interrupted,
        };
        tracing::debug!(%peer, path = %conn.connection.fingerprint(), %gone, "connection ended");
        if let Some((known, dialed)) = self.remote_of(id) {
            let subflow = dialed.subflow;
            known.paths.lost(subflow, failure, gone.to_string(), now);
        }
        self.drop_conn(id, gone.code(), &gone.to_string());
        if let Gone::Broke(fault) = gone {
            self.ban(group, &format!("dropped: {fault}"));
        }
    }

    /// Closes a connection and forgets it; what was asked for over it is free for others.
    pub(super) fn drop_conn(&mut self, id: ConnId, code: CloseCode, text: &str) {
        self.picker.remove_conn(id);
        let Some(conn) = self.conns.remove(&id) else {
            return;
        };
        conn.connection.close(code, text);
        self.tally.leave(&conn);
        if let Some((remote, dialed)) = conn.remote()
            && let Some(known) = self.remotes.get_mut(&remote)
        {
            self.subflows.remove(dialed.to, dialed.subflow);
            known.paths.closed(dialed.subflow);
        }
        self.unserve(&conn, Instant::now());
    }

    /// Notes what came over a connection since it was last looked at, or that nothing did.
    pub(super) fn look_at(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        let is_new = conn.observe(now);
        if is_new && conn.is_busy() {
            self.alive_at = now;
        }
        match conn.stalled {
            Some(_) if is_new => self.recover(id, now),
            None if conn.is_silent(now) => self.stall(id, now),
            _ => {}
        }
    }

    /// Nothing comes over a connection: what was asked for is asked for elsewhere.
    fn stall(&mut self, id: ConnId, now: Instant) {
        self.release(id, now);
        if let Some((known, dialed)) = self.remote_of(id) {
            known.paths.stalled(dialed.subflow, now);
        }
    }

    /// Gives what was asked for over a connection back to the others, until something comes.
    pub(super) fn release(&mut self, id: ConnId, now: Instant) {
        let released = self.picker.release(id);
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        // Blocks that were sent already are still taken; of the others none is sent twice.
        conn.send(released.into_iter().map(Message::Cancel));
        conn.stall(now);
        tracing::debug!(peer = %conn.connection.peer(), path = %conn.connection.fingerprint(), "stalled");
    }

    /// Something came over a connection that had stalled.
    fn recover(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        // What was sent before the path was withdrawn proves nothing.
        let under_way = conn.connection.rtt() + super::TICK;
        let since = conn.stalled.unwrap_or(now);
        if now.saturating_duration_since(since) < under_way {
            return;
        }
        conn.stalled = None;
        self.conns.touch(id);
        if let Some((known, dialed)) = self.remote_of(id) {
            known.paths.recovered(dialed.subflow);
        }
    }

    /// Every peer with the reason there is no connection to it.
    pub(super) fn troubles(&self) -> Vec<(PeerAddr, String)> {
        let remotes = self.remotes.values();
        remotes.map(|r| (r.addr, self.trouble(r))).collect()
    }

    fn trouble(&self, remote: &Remote<T::Path>) -> String {
        let conns = self.conns.open.iter();
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
        for (id, conn) in self.conns.open.iter_mut() {
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

    /// Whether there is reason to wait for blocks from a connected peer: it chokes us for now, or
    /// has nothing of use yet and may get it.
    pub(super) fn is_hopeful(&self, now: Instant) -> bool {
        self.conns.open.iter().any(|(id, conn)| {
            let settled = now.saturating_duration_since(conn.since) > SETTLED;
            settled
                && conn.stalled.is_none()
                && match self.picker.is_interesting(*id) {
                    true => !conn.unchoked,
                    false => !conn.upload_only,
                }
        })
    }
}
