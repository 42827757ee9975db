//! Connections that end, stall and recover.

use std::time::{Duration, Instant};

use hawser_manager::Failure;

use super::padded::PaddedBlocks;
use super::remotes::Remote;
use super::state::Swarm;
use super::subflow::Dialed;
use crate::close::CloseCode;
use crate::error::{ContentSource, DownloadError};
use crate::peer::Gone;
use crate::picker::ConnId;
use crate::transport::Transport;
use crate::wire::Message;

/// A connection of this age has seen the peer's bitfield and whether the peer chokes us. One that
/// repeatedly ends sooner is no reason to wait.
const MIN_SETTLED_AGE: Duration = Duration::from_secs(5);

/// Time without progress after which a download ends if no peer has, or will get, what is missing:
/// a seeder may be in the middle of restarting, or a file of it of being replaced.
const FUTILE_TIMEOUT: Duration = Duration::from_secs(5);

impl<T: Transport> Swarm<T> {
    /// The remote that a connection was dialed to, and its subflow.
    pub(super) fn remote_of(&mut self, id: ConnId) -> Option<(&mut Remote<T::Path>, Dialed)> {
        let (remote, dialed) = self.conns.open.get(&id)?.remote()?;
        Some((self.dialing.remotes.get_mut(&remote)?, dialed))
    }

    /// Handles the end of a connection, or a violation of the protocol by its peer.
    pub(super) fn gone(&mut self, id: ConnId, gone: &Gone, now: Instant) {
        let Some(conn) = self.conns.open.get(&id) else {
            return;
        };
        let (group, peer) = (conn.group, conn.connection.peer());
        // A peer that was downloading probably wants to continue.
        let failure = match conn.uploaded() {
            0 => Failure::Closed,
            _ => Failure::Interrupted,
        };
        tracing::debug!(%peer, path = %conn.connection.fingerprint(), %gone, "connection ended");
        let whole_blocks = conn
            .wants
            .padded
            .as_ref()
            .and_then(PaddedBlocks::next_is_whole);
        if let Some((known, dialed)) = self.remote_of(id) {
            known.whole_blocks = whole_blocks.or(known.whole_blocks);
            let subflow = dialed.subflow;
            known.paths.lost(subflow, failure, gone.to_string(), now);
        }
        self.drop_conn(id, gone.code(), &gone.to_string());
        if let Gone::Broke(fault) = gone {
            self.ban(group, &format!("dropped: {fault}"));
        }
    }

    /// Closes a connection and forgets it; its outstanding requests are free for others.
    pub(super) fn drop_conn(&mut self, id: ConnId, code: CloseCode, text: &str) {
        self.fetching.picker.remove_conn(id);
        self.fetching.held.on_gone(id);
        let Some(conn) = self.conns.remove(&id) else {
            return;
        };
        conn.connection.close(code, text);
        self.tally.leave(&conn);
        if let Some((remote, dialed)) = conn.remote()
            && let Some(known) = self.dialing.remotes.get_mut(&remote)
        {
            self.dialing.subflows.remove(dialed.to, dialed.subflow);
            known.paths.closed(dialed.subflow);
        }
        let now = Instant::now();
        self.unserve(&conn, now);
        self.end_choking(&conn, now);
    }

    /// Takes note of bytes that arrived over a connection, and of a stall or its end.
    pub(super) fn look_at(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        let is_new = conn.observe(now);
        // Blocks that wait for our disk are no reason to give up.
        if conn.pace.is_busy() && (is_new || conn.is_backlogged()) {
            self.ending.alive_at = now;
        }
        match conn.stall.since {
            Some(_) if is_new => self.recover(id, now),
            None if conn.pace.is_silent(conn.connection.rtt()) => {
                self.suspend(id, now);
                self.report_stall(id, now);
            }
            Some(_) if conn.stall.answers.is_reported() => self.report_stall(id, now),
            _ => {}
        }
    }

    /// Nothing of what was requested arrives over a connection. Whether another one beside it would be of
    /// use depends on whether the peer answers at all.
    fn report_stall(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        let Some(is_late) = conn.stall.answers.report(conn.connection.rtt()) else {
            return;
        };
        if let Some((known, dialed)) = self.remote_of(id) {
            match is_late {
                true => known.paths.late(dialed.subflow, now),
                false => known.paths.stalled(dialed.subflow, now),
            }
        }
    }

    /// Marks a connection as stalled. Its requests stay with the peer, which may be paused only;
    /// each is cancelled once another connection requests the block.
    pub(super) fn suspend(&mut self, id: ConnId, now: Instant) {
        let cancel = self.fetching.picker.suspend(id);
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        conn.send(cancel.into_iter().map(Message::Cancel));
        conn.stall(now);
        tracing::debug!(peer = %conn.connection.peer(), path = %conn.connection.fingerprint(), "stalled");
    }

    /// Bytes arrived over a stalled connection.
    fn recover(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        // Bytes sent before the path was withdrawn prove nothing.
        let under_way = conn.connection.rtt() + super::TICK;
        let since = conn.stall.since.unwrap_or(now);
        if now.saturating_duration_since(since) < under_way {
            return;
        }
        conn.stall.since = None;
        conn.stall.answers.recover();
        self.fetching.picker.resume(id);
        let asked = self.fetching.picker.asked(id);
        conn.set_asked(asked, now);
        self.conns.touch(id);
        if let Some((known, dialed)) = self.remote_of(id) {
            known.paths.recovered(dialed.subflow);
        }
    }

    /// Every peer and web seed, with the reason why nothing can be fetched from it.
    pub(super) fn troubles(&self) -> Vec<(ContentSource, String)> {
        let remotes = self.dialing.remotes.values();
        let peers = remotes.map(|r| (ContentSource::Peer(r.addr), self.trouble(r)));
        peers.chain(self.web_troubles()).collect()
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
        let mut interesting = of
            .iter()
            .filter(|id| self.fetching.picker.is_interesting(**id));
        let unchoked = |id| {
            self.conns
                .open
                .get(id)
                .is_some_and(|conn| conn.theirs.unchoked)
        };
        let text = match interesting.clone().next() {
            Some(_) if interesting.any(unchoked) => "it sends nothing",
            Some(_) => "it chokes this host: it answers no requests",
            None if self.never_helps(&of) => {
                "it has none of the missing pieces, nor will it get any"
            }
            None => "it has none of the missing pieces",
        };
        format!("connected, but {text}")
    }

    /// Checks the outstanding requests of every connection: frees a block that was overtaken by one
    /// requested later, and requests single blocks over a stalled connection, as the peer may have
    /// forgotten all others.
    pub(super) fn ask_again(&mut self, now: Instant) {
        let mut cancel = Vec::new();
        for (id, conn) in self.conns.open.iter_mut() {
            if let Some(before) = conn.overtaken_by(now) {
                let forgotten = self.fetching.picker.release_passed(*id, before);
                if !forgotten.is_empty() {
                    tracing::debug!(peer = %conn.connection.peer(), blocks = forgotten.len(), "asked for again");
                }
                conn.send(forgotten.into_iter().map(Message::Cancel));
            }
            if conn.is_retry_due(now) {
                let probe = self.fetching.picker.probe(*id);
                conn.request(probe.requests);
                cancel.extend(probe.cancel);
            }
        }
        super::fetching::cancel(&mut self.conns, cancel);
    }

    /// Whether a connected peer is worth waiting for: it downloads itself, and it chokes us for
    /// now, or it has nothing of use yet. A complete peer that chokes us may serve others first, but
    /// it may also do so for ever.
    fn is_hopeful(&self, now: Instant) -> bool {
        self.conns.open.iter().any(|(id, conn)| {
            let settled = now.saturating_duration_since(conn.since) > MIN_SETTLED_AGE;
            let downloads = !conn.theirs.upload_only && !self.fetching.picker.has_all(*id);
            let is_interesting = self.fetching.picker.is_interesting(*id);
            let is_choked = !conn.theirs.unchoked;
            let choked = now.saturating_duration_since(conn.theirs.choke_at);
            let is_in_line = is_choked && is_interesting && choked < self.ending.choked_patience;
            let waits = downloads && (is_choked || !is_interesting);
            settled && (waits || is_in_line) && conn.stall.since.is_none()
        })
    }

    /// Whether the peers of these connections have announced that they have none of the missing
    /// pieces, and will get none.
    fn never_helps(&self, conns: &[ConnId]) -> bool {
        let mut conns = conns.iter();
        conns.all(|id| {
            let conn = self.conns.open.get(id);
            conn.is_some_and(|conn| conn.serving.introduced && conn.theirs.upload_only)
                && !self.fetching.picker.is_interesting(*id)
        })
    }

    /// Whether every peer is dropped, or connected and of no use for ever. Pieces that a seeder has
    /// withdrawn come back only if somebody restores its files.
    fn is_futile(&self) -> bool {
        let open = &self.conns.open;
        let is_connected = |remote: &Remote<T::Path>| {
            let mut conns = open.values();
            conns.any(|conn| conn.connection.peer() == remote.addr)
        };
        let mut remotes = self.dialing.remotes.values();
        let others_may_come = self.ending.awaits_peers || self.ending.finds_peers;
        !others_may_come
            && !self.web.seeds.any_usable()
            && !open.is_empty()
            && remotes.all(|remote| remote.banned.is_some() || is_connected(remote))
            && self.never_helps(&self.conns.ids())
    }

    /// Ends a download that has made no progress for too long.
    pub(super) fn consider_giving_up(&mut self, now: Instant) {
        if self.is_hopeful(now) {
            self.ending.alive_at = now;
        }
        let Some(after) = self.ending.give_up_after else {
            return;
        };
        let quiet = now.saturating_duration_since(self.ending.alive_at);
        let is_futile = quiet > after.min(FUTILE_TIMEOUT) && self.is_futile();
        if !is_futile && quiet <= after {
            return;
        }
        let peers = self.troubles();
        let failure = match self.conns.open.is_empty() {
            _ if is_futile => DownloadError::Incomplete(peers),
            true => DownloadError::NoPeer(after, peers),
            false => DownloadError::NoProgress(after, peers),
        };
        self.ending.failure.get_or_insert(failure);
    }
}
