//! Obeying the path manager: dialing, holding, closing the subflows to the peers that are dialed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_manager::{Action, Carried, Cause, Failure, Order, Room, SubflowId};
use hawser_path::Reason;

use super::conn::Origin;
use super::event::{DialError, Event};
use super::net::DialResult;
use super::remotes::{Dialed, Offered, Remote, RemoteId, Subflow};
use super::state::Swarm;
use crate::address::PeerAddr;
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::peer::Gone;
use crate::picker::ConnId;
use crate::transport::{Connection, Transport};
use crate::wire::{BLOCK, Message};

/// A connection this old has seen the peer's bitfield, and whether it may be asked for blocks: one
/// that ends sooner time and again is no reason to wait.
const SETTLED: Duration = Duration::from_secs(5);

/// The text of a close of a connection that is not wanted any more.
pub(super) const UNUSED: &str = "the path is not used any more";

impl<T: Transport> Swarm<T> {
    /// Starts to follow what is offered to every remote, and to accept connections.
    pub(super) fn watch_all(&mut self) {
        for (remote, known) in self.remotes.iter() {
            self.net
                .watch(known.addr, move |paths, trouble| Event::Offers {
                    remote,
                    paths,
                    trouble,
                });
        }
        self.net.accept();
    }

    /// The set of paths to a remote changed.
    pub(super) fn offered(
        &mut self,
        remote: RemoteId,
        paths: &Offered<T::Path>,
        trouble: Option<String>,
        now: Instant,
    ) -> Result<(), DownloadError> {
        if let Some(known) = self.remotes.get_mut(remote) {
            let (transport, peer) = (&self.net.transport, known.addr);
            known.offer(paths, trouble, |path| transport.fits(peer, path), now);
        }
        // Nothing to wait for: refuse at once.
        if self.give_up_after.is_some()
            && self.tally.connections == 0
            && self.remotes.all().all(Remote::is_hopeless)
        {
            return Err(DownloadError::NoPath(self.troubles()));
        }
        Ok(())
    }

    /// Does what the path manager wants done now.
    pub(super) fn obey(&mut self, now: Instant) {
        let orders = |(id, remote): (RemoteId, &mut Remote<T::Path>)| {
            let orders = remote.paths.orders(now);
            (!orders.is_empty()).then_some((id, orders))
        };
        let orders: Vec<_> = self.remotes.iter_mut().filter_map(orders).collect();
        for (remote, order) in orders
            .into_iter()
            .flat_map(|(id, all)| all.into_iter().map(move |one| (id, one)))
        {
            match order.action {
                Action::Dial => self.dial(remote, &order),
                Action::Hold => self.hold(remote, &order, now),
                Action::Resume => self.resume(remote, order.subflow),
                Action::Close { drain } => self.close_subflow(remote, &order, drain),
            }
        }
    }

    fn dial(&mut self, remote: RemoteId, order: &Order) {
        let dialed = Dialed {
            remote,
            subflow: order.subflow,
            path: order.path,
        };
        let Some(known) = self.remotes.get(remote) else {
            return;
        };
        let (peer, Some(path)) = (known.addr, known.paths.path(order.path).cloned()) else {
            return;
        };
        tracing::debug!(%peer, path = %order.path, cause = %order.cause, "dialing");
        let introduction = self.introduction(peer);
        let event = move |result| Event::Dialed { dialed, result };
        let task = self.net.dial(peer, path, introduction, event);
        if let Some(known) = self.remotes.get_mut(remote) {
            known.subflows.insert(order.subflow, Subflow::Dialing(task));
        }
    }

    /// Requests nothing more over a subflow.
    fn hold(&mut self, remote: RemoteId, order: &Order, now: Instant) {
        let known = self.remotes.get(remote);
        let Some(id) = known.and_then(|known| known.conn(order.subflow)) else {
            return;
        };
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.held = true;
        }
        match order.cause {
            // Most likely a router reported that the path is down: others fetch what was requested
            // over it. If it works after all, it recovers with the next byte.
            Cause::NotOffered => self.release(id, now),
            // What was requested is part of what is measured.
            Cause::Decided(Reason::Sensed(_)) => {}
            // What such a path still owes would be late: others fetch it.
            _ => drop(self.picker.release(id)),
        }
        self.conns.touch_all();
    }

    fn resume(&mut self, remote: RemoteId, subflow: SubflowId) {
        let known = self.remotes.get(remote);
        if let Some(id) = known.and_then(|known| known.conn(subflow))
            && let Some(conn) = self.conns.get_mut(&id)
        {
            conn.held = false;
            self.conns.touch_all();
        }
    }

    fn close_subflow(&mut self, remote: RemoteId, order: &Order, drain: bool) {
        let Some(known) = self.remotes.get_mut(remote) else {
            return;
        };
        match known.subflows.remove(&order.subflow) {
            Some(Subflow::Dialing(task)) => task.abort(),
            Some(Subflow::Open(id)) if drain && self.picker.asked(id) > 0 => {
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.retiring = true;
                }
            }
            Some(Subflow::Open(id)) => {
                let text = match &order.cause {
                    cause @ (Cause::Replaced | Cause::Silent(_)) => cause.to_string(),
                    // The text of a policy stays here.
                    _ => UNUSED.to_owned(),
                };
                self.drop_conn(id, CloseCode::Plain, &text);
            }
            None => {}
        }
    }

    /// Closes connections that are used no more, once what was requested over them is here.
    pub(super) fn retire(&mut self) {
        let conns = self.conns.iter();
        let over = conns.filter(|(id, conn)| conn.retiring && self.picker.asked(**id) == 0);
        let over: Vec<ConnId> = over.map(|(id, _)| *id).collect();
        over.into_iter()
            .for_each(|id| self.drop_conn(id, CloseCode::Plain, UNUSED));
    }

    /// A dial has an outcome.
    pub(super) fn dialed(
        &mut self,
        dialed: Dialed,
        result: DialResult<T>,
        now: Instant,
    ) -> Result<(), DownloadError> {
        let known = self.remotes.get_mut(dialed.remote);
        let Some(known) = known.filter(|known| known.subflows.contains_key(&dialed.subflow)) else {
            // It is not wanted any more.
            if let Ok(session) = result {
                session.connection.close(CloseCode::Plain, "not needed");
            }
            return Ok(());
        };
        let error = match result {
            Ok(session) => {
                let rtt = session.connection.rtt();
                let conn = self.join(session, Origin::Dialed(dialed), now)?;
                if let Some(known) = self.remotes.get_mut(dialed.remote) {
                    match conn {
                        Some(conn) => {
                            known.subflows.insert(dialed.subflow, Subflow::Open(conn));
                            known.paths.connected(dialed.subflow, Some(rtt), now);
                        }
                        None => {
                            known.subflows.remove(&dialed.subflow);
                            known.paths.closed(dialed.subflow);
                        }
                    }
                }
                return Ok(());
            }
            Err(error) => error,
        };
        known.subflows.remove(&dialed.subflow);
        if let DialError::Handshake(gone) = &error
            && gone.is_final()
        {
            known.paths.closed(dialed.subflow);
            return self.ban_remote(dialed.remote, &gone.to_string());
        }
        let (failure, text) = error.failure();
        known.paths.lost(dialed.subflow, failure, text, now);
        Ok(())
    }

    /// A connection ended, or its peer broke the protocol.
    pub(super) fn gone(
        &mut self,
        id: ConnId,
        gone: &Gone,
        now: Instant,
    ) -> Result<(), DownloadError> {
        let Some(conn) = self.conns.get(&id) else {
            return Ok(());
        };
        let (origin, group, peer) = (conn.origin, conn.group, conn.connection.peer());
        // A peer that was fetching likely still wants to.
        let failure = match conn.counts.uploaded.load(Ordering::Relaxed) {
            0 => Failure::Closed,
            _ => Failure::Interrupted,
        };
        tracing::debug!(%peer, path = %conn.connection.fingerprint(), %gone, "connection ended");
        if let Origin::Dialed(Dialed {
            remote, subflow, ..
        }) = origin
            && let Some(known) = self.remotes.get_mut(remote)
        {
            known.paths.lost(subflow, failure, gone.to_string(), now);
        }
        self.drop_conn(id, gone.code(), &gone.to_string());
        match gone {
            Gone::Broke(fault) => self.ban(group, &format!("dropped: {fault}")),
            _ => Ok(()),
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
        if let Origin::Dialed(Dialed {
            remote, subflow, ..
        }) = conn.origin
            && let Some(known) = self.remotes.get_mut(remote)
        {
            known.subflows.remove(&subflow);
            known.paths.closed(subflow);
        }
        self.uploads.gone(conn.group, id, Instant::now());
    }

    /// Nothing comes over a connection: what was asked for is asked for elsewhere.
    pub(super) fn stall(&mut self, id: ConnId, now: Instant) {
        self.release(id, now);
        if let Some(Origin::Dialed(Dialed {
            remote, subflow, ..
        })) = self.origin(id)
            && let Some(known) = self.remotes.get_mut(remote)
        {
            known.paths.stalled(subflow, now);
        }
    }

    /// Gives what was asked for over a connection back to the others, until something comes.
    fn release(&mut self, id: ConnId, now: Instant) {
        let released = self.picker.release(id);
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        // Blocks that were sent already are still taken; of the others none is sent twice.
        conn.send(released.into_iter().map(Message::Cancel));
        conn.stall(now);
        tracing::debug!(peer = %conn.connection.peer(), path = %conn.connection.fingerprint(), "stalled");
    }

    /// Something came over a connection that had stalled.
    pub(super) fn recover(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.get_mut(&id) else {
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
        if let Some(Origin::Dialed(Dialed {
            remote, subflow, ..
        })) = self.origin(id)
            && let Some(known) = self.remotes.get_mut(remote)
        {
            known.paths.recovered(subflow);
        }
    }

    fn origin(&self, id: ConnId) -> Option<Origin> {
        Some(self.conns.get(&id)?.origin)
    }

    /// Lets the path manager weigh what each subflow carries.
    pub(super) fn weigh(&mut self, now: Instant) {
        // Near the end the plan, not the path, sets the pace.
        let ending = self.picker.free_blocks() == 0;
        for remote in self.remotes.all_mut() {
            let (conns, picker) = (&self.conns, &self.picker);
            let carried = |subflow| {
                let id = match remote.subflows.get(&subflow) {
                    Some(Subflow::Open(id)) => *id,
                    _ => return Carried::default(),
                };
                conns.get(&id).map_or_else(Carried::default, |conn| {
                    let asked = picker.asked(id) > 0 || conn.held;
                    Carried {
                        bytes: conn.counts.received.load(Ordering::Relaxed),
                        usable: !ending && asked && conn.unchoked,
                    }
                })
            };
            remote.paths.tick(carried, now);
            remote.log_decisions();
        }
    }

    /// Whether what is asked for over one path decides what may be over another.
    pub(super) fn any_shares(&self) -> bool {
        self.remotes.all().any(|remote| remote.paths.has_shares())
    }

    /// What more may be asked for over a connection.
    pub(super) fn room(&self, id: ConnId) -> Room {
        let Some(Origin::Dialed(Dialed { remote, path, .. })) = self.origin(id) else {
            return Room::ANY;
        };
        let Some(known) = self
            .remotes
            .get(remote)
            .filter(|known| known.paths.has_shares())
        else {
            return Room::ANY;
        };
        let bytes = |blocks: u64| blocks * u64::from(BLOCK);
        let asked = self.conns.keys().map(|id| self.picker.asked(*id) as u64);
        let doubles = asked
            .sum::<u64>()
            .saturating_sub(self.picker.asked_blocks());
        let requested = |subflow| {
            let asked = known.conn(subflow).map_or(0, |id| self.picker.asked(id));
            bytes(asked as u64)
        };
        known.paths.room(path, requested, bytes(doubles))
    }

    /// Every peer with the reason there is no connection to it.
    pub(super) fn troubles(&self) -> Vec<(PeerAddr, String)> {
        let remotes = self.remotes.all();
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
        for (id, conn) in self.conns.iter_mut() {
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
        self.conns.iter().any(|(id, conn)| {
            let settled = now.saturating_duration_since(conn.serving.since) > SETTLED;
            settled
                && conn.stalled.is_none()
                && match self.picker.is_interesting(*id) {
                    true => !conn.unchoked,
                    false => !conn.upload_only,
                }
        })
    }
}
