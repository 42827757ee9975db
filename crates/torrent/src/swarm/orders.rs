//! Carrying out the orders of path managers: dialing, holding and closing subflows.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_manager::{Action, Carried, Cause, Failure, Order, Room};
use hawser_path::Path;

use super::connections::Connections;
use super::event::DialResult;
use super::remotes::{Remote, Remotes};
use super::state::Swarm;
use super::subflow::{Dialed, Peer, Subflow, Subflows};
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::picker::{ConnId, Picker};
use crate::transport::Transport;
use crate::wire::{BLOCK, Message};

/// The text of a close of a connection that is no longer needed.
const UNUSED: &str = "the path is not used any more";

impl<T: Transport> Swarm<T> {
    /// Handles a change of the paths to a peer; `trouble` is the reason if there are none.
    pub(super) fn offered(
        &mut self,
        to: Peer,
        paths: &[T::Path],
        trouble: Option<String>,
        now: Instant,
    ) {
        let transport = &self.net.transport;
        match to {
            Peer::Remote(id) => {
                if let Some(known) = self.remotes.get_mut(&id) {
                    let peer = known.addr;
                    known.offer(paths, trouble, |path| transport.fits(peer, path), now);
                }
                // There is nothing to wait for: fail at once.
                if self.give_up_after.is_some()
                    && self.tally.connections == 0
                    && self.remotes.values().all(Remote::is_hopeless)
                {
                    let peers = self.troubles();
                    self.failure.get_or_insert(DownloadError::NoPath(peers));
                }
            }
            Peer::Downloader(to) => {
                if let Some(why) = trouble {
                    tracing::info!(peer = %to, why, "no path to a downloader");
                }
                let fits = |path: &T::Path| transport.fits(to.addr.into(), path);
                // Ignored for a downloader that left and came back from another address.
                self.uploads.sharing.offer(to, paths, fits);
                self.settle(now);
            }
        }
    }

    /// Carries out the orders of the path managers of remotes.
    pub(super) fn obey(&mut self, now: Instant) {
        let mut orders = Vec::new();
        for (id, remote) in &mut self.remotes {
            let of_remote = remote.paths.orders(now).into_iter();
            orders.extend(of_remote.map(|order| (Peer::Remote(*id), order)));
        }
        for (peer, order) in orders {
            self.carry_out(peer, &order, now);
        }
    }

    /// Carries out an order about a subflow to a peer.
    pub(super) fn carry_out(&mut self, to: Peer, order: &Order, now: Instant) {
        match order.action {
            Action::Dial => self.dial(to, order),
            Action::Hold => self.set_held(to, order, true, now),
            Action::Resume => self.set_held(to, order, false, now),
            Action::Close { drain } => self.close_subflow(to, order, drain),
        }
    }

    fn dial(&mut self, to: Peer, order: &Order) {
        let Order { subflow, path, .. } = *order;
        let dialed = Dialed { to, subflow, path };
        let found = match to {
            Peer::Remote(id) => self
                .remotes
                .get(&id)
                .map(|it| (it.addr, it.paths.path(path))),
            Peer::Downloader(to) => Some((to.addr.into(), self.uploads.sharing.path(to, path))),
        };
        let Some((peer, Some(path))) = found else {
            return;
        };
        tracing::debug!(%peer, path = %order.path, cause = %order.cause, "dialing");
        let path = path.clone();
        let introduction = self.introduction(peer);
        let task = self.net.dial(dialed, peer, path, introduction);
        self.subflows.insert(to, subflow, Subflow::Dialing(task));
    }

    /// Holds a subflow, so that no blocks are requested or served over it, or resumes it.
    fn set_held(&mut self, to: Peer, order: &Order, held: bool, now: Instant) {
        let Some(id) = self.subflows.conn(to, order.subflow) else {
            return;
        };
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        if let Peer::Downloader(_) = to {
            match held {
                true => conn.choke(),
                false => conn.unchoke(),
            }
            return;
        }
        conn.held = held;
        match order.cause {
            _ if !held => {}
            // Most likely a router reported that the path is down: others fetch the requested
            // blocks. If the path works after all, the subflow recovers with the next byte.
            Cause::NotOffered => self.suspend(id, now),
            // Outstanding requests are part of what is measured.
            Cause::Decided(ref reason) if reason.is_measured() => {}
            // Blocks outstanding on such a path would be late: others fetch them.
            _ => {
                let released = self.picker.release(id).into_iter();
                conn.send(released.map(Message::Cancel));
            }
        }
        self.conns.touch_all();
    }

    fn close_subflow(&mut self, to: Peer, order: &Order, drain: bool) {
        match self.subflows.remove(to, order.subflow) {
            Some(Subflow::Dialing(task)) => task.abort(),
            Some(Subflow::Open(id)) if drain && self.picker.asked(id) > 0 => {
                if let Some(conn) = self.conns.open.get_mut(&id) {
                    conn.retiring = true;
                }
            }
            Some(Subflow::Open(id)) => {
                let text = match &order.cause {
                    cause @ (Cause::Replaced | Cause::Silent(_)) => cause.to_string(),
                    // The text of a policy is not sent to peers.
                    _ => UNUSED.to_owned(),
                };
                self.drop_conn(id, CloseCode::Plain, &text);
            }
            None => {}
        }
    }

    /// Closes retiring connections whose requested blocks have arrived.
    pub(super) fn retire(&mut self) {
        let conns = self.conns.open.iter();
        let over = conns.filter(|(id, conn)| conn.retiring && self.picker.asked(**id) == 0);
        let over: Vec<ConnId> = over.map(|(id, _)| *id).collect();
        over.into_iter()
            .for_each(|id| self.drop_conn(id, CloseCode::Plain, UNUSED));
    }

    /// Handles the outcome of a dial.
    pub(super) fn dialed(&mut self, dialed: Dialed, result: DialResult, now: Instant) {
        let Dialed { to, subflow, path } = dialed;
        if self.subflows.remove(to, subflow).is_none() {
            // The subflow is no longer wanted.
            if let Ok(session) = result {
                session.connection.close(CloseCode::Plain, "not needed");
            }
            return;
        }
        match to {
            Peer::Remote(id) => {
                let rtt = result.as_ref().ok().map(|session| session.connection.rtt());
                let joined = result.map(|session| self.join(session, Some(dialed), now));
                let Some(known) = self.remotes.get_mut(&id) else {
                    return;
                };
                match joined {
                    Ok(Some(_)) => known.paths.connected(subflow, rtt, now),
                    Ok(None) => known.paths.closed(subflow),
                    Err(gone) if gone.is_final() => {
                        known.paths.closed(subflow);
                        self.ban_remote(id, &gone.to_string());
                    }
                    Err(gone) => {
                        let failure = gone.failure();
                        known.paths.lost(subflow, failure, gone.to_string(), now);
                    }
                }
            }
            Peer::Downloader(peer) => {
                let (failure, why) = match result {
                    Ok(session) if self.conns.group(session.connection.key()) != peer.group => {
                        let text = "another peer was to be reached";
                        session.connection.close(CloseCode::Plain, text);
                        (Failure::Failed, "another peer is there".to_owned())
                    }
                    Ok(session) => match self.join(session, Some(dialed), now) {
                        Some(_) => return,
                        None => (Failure::Failed, "another peer is there".to_owned()),
                    },
                    Err(gone) => (gone.failure(), gone.to_string()),
                };
                tracing::debug!(%peer, %path, why, "not connected");
                self.uploads.sharing.lost(subflow, failure, &why, now);
                self.settle(now);
            }
        }
    }

    /// Reports to the path managers what each subflow carried, to be weighed.
    pub(super) fn weigh(&mut self, now: Instant) {
        // Near the end the plan, not the path, limits the rate.
        let ending = self.picker.free_blocks() == 0;
        for (id, remote) in &mut self.remotes {
            let (conns, subflows, picker) = (&self.conns.open, &self.subflows, &self.picker);
            let carried = |subflow| {
                let id = subflows.conn(Peer::Remote(*id), subflow);
                let Some((id, conn)) = id.and_then(|id| Some((id, conns.get(&id)?))) else {
                    return Carried::default();
                };
                let asked = picker.asked(id) > 0 || conn.held;
                Carried {
                    bytes: conn.traffic.received.load(Ordering::Relaxed),
                    usable: !ending && asked && conn.unchoked,
                }
            };
            remote.paths.tick(carried, now);
            remote.log_decisions();
        }
    }

    /// Whether requests over one path limit those over another.
    pub(super) fn any_shares(&self) -> bool {
        let mut remotes = self.remotes.values();
        remotes.any(|remote| remote.paths.has_shares())
    }
}

/// How much more may be requested over a connection.
pub(super) fn room<P: AsRef<Path> + Clone>(
    id: ConnId,
    picker: &Picker,
    conns: &Connections,
    subflows: &Subflows,
    remotes: &Remotes<P>,
) -> Room {
    let conn = conns.open.get(&id);
    let Some((remote, dialed)) = conn.and_then(|conn| conn.remote()) else {
        return Room::ANY;
    };
    let known = remotes.get(&remote);
    let Some(known) = known.filter(|known| known.paths.has_shares()) else {
        return Room::ANY;
    };
    let bytes = |blocks: u64| blocks * u64::from(BLOCK);
    let asked = conns.open.keys();
    let asked: u64 = asked.map(|id| picker.asked(*id) as u64).sum();
    let doubles = asked.saturating_sub(picker.asked_blocks());
    let requested = |subflow| {
        let conn = subflows.conn(dialed.to, subflow);
        bytes(conn.map_or(0, |id| picker.asked(id)) as u64)
    };
    known.paths.room(dialed.path, requested, bytes(doubles))
}
