//! Carrying out the orders of path managers: dialing, holding and closing subflows.

use std::time::Instant;

use hawser_manager::{Action, Cause, Failure, Order};

use super::event::DialResult;
use super::peer_limit::TOO_MANY_PEERS;
use super::remotes::Remote;
use super::state::Swarm;
use super::subflow::{Dialed, Peer};
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::picker::ConnId;
use crate::transport::Transport;
use crate::wire::Message;

/// The text of a close of a connection that is no longer needed.
const UNUSED_TEXT: &str = "the path is not used any more";

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
                if let Some(known) = self.dialing.remotes.get_mut(&id) {
                    let peer = known.addr;
                    known.offer(paths, trouble, |path| transport.fits(peer, path), now);
                }
                // There is nothing to wait for: fail at once.
                if self.ending.give_up_after.is_some()
                    && !self.ending.finds_peers
                    && self.tally.connections == 0
                    && !self.web.seeds.any_usable()
                    && self.dialing.remotes.values().all(Remote::is_hopeless)
                {
                    let peers = self.troubles();
                    self.ending
                        .failure
                        .get_or_insert(DownloadError::NoPath(peers));
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
        for (peer, order) in self.dialing.orders(now) {
            self.carry_out(peer, &order, now);
        }
    }

    /// Carries out an order about a subflow to a peer.
    pub(super) fn carry_out(&mut self, to: Peer, order: &Order, now: Instant) {
        let Order { subflow, path, .. } = *order;
        let dial = match order.action {
            Action::Dial => self.dial(to, order),
            _ => None,
        };
        let dialed = Dialed { to, subflow, path };
        if self.dialing.dials.obey(dialed, order.action, || dial) {
            return;
        }
        match order.action {
            // It is carried out.
            Action::Dial => {}
            Action::Hold => self.set_held(to, order, true, now),
            Action::Resume => self.set_held(to, order, false, now),
            Action::Close { drain } => self.close_subflow(to, order, drain),
        }
    }

    /// The dial that is ordered; `None` if its path is not known any more.
    fn dial(
        &self,
        to: Peer,
        order: &Order,
    ) -> Option<impl Future<Output = DialResult> + Send + use<T>> {
        let (peer, path) = match to {
            Peer::Remote(id) => {
                let remote = self.dialing.remotes.get(&id)?;
                (remote.addr, remote.paths.path(order.path)?)
            }
            Peer::Downloader(to) => (to.addr.into(), self.uploads.sharing.path(to, order.path)?),
        };
        tracing::debug!(%peer, path = %order.path, cause = %order.cause, "dialing");
        let introduction = self.introduction(peer);
        Some(self.net.dial(peer, path.clone(), introduction))
    }

    /// Holds a subflow, so that no blocks are requested or served over it, or resumes it.
    fn set_held(&mut self, to: Peer, order: &Order, held: bool, now: Instant) {
        let Some(id) = self.dialing.subflows.conn(to, order.subflow) else {
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
        conn.ordered.held = held;
        match order.cause {
            _ if !held => {}
            // Most likely a router reported that the path is down: others fetch the requested
            // blocks. If the path works after all, the subflow recovers with the next byte.
            Cause::NotOffered => self.suspend(id, now),
            // Outstanding requests are part of what is measured.
            Cause::Decided(ref reason) if reason.is_measured() => {}
            // Blocks outstanding on such a path would be late: others fetch them.
            _ => {
                let released = self.fetching.picker.release(id).into_iter();
                conn.send(released.map(Message::Cancel));
            }
        }
        self.conns.touch_all();
    }

    fn close_subflow(&mut self, to: Peer, order: &Order, drain: bool) {
        match self.dialing.subflows.remove(to, order.subflow) {
            Some(id) if drain && self.fetching.picker.asked(id) > 0 => {
                if let Some(conn) = self.conns.open.get_mut(&id) {
                    conn.ordered.retiring = true;
                }
            }
            Some(id) => {
                let text = match &order.cause {
                    cause @ (Cause::Replaced | Cause::Silent(_)) => cause.to_string(),
                    // The text of a policy is not sent to peers.
                    _ => UNUSED_TEXT.to_owned(),
                };
                self.drop_conn(id, CloseCode::Plain, &text);
            }
            None => {}
        }
    }

    /// Closes retiring connections whose requested blocks have arrived.
    pub(super) fn retire(&mut self) {
        let conns = self.conns.open.iter();
        let over = conns
            .filter(|(id, conn)| conn.ordered.retiring && self.fetching.picker.asked(**id) == 0);
        let over: Vec<ConnId> = over.map(|(id, _)| *id).collect();
        over.into_iter()
            .for_each(|id| self.drop_conn(id, CloseCode::Plain, UNUSED_TEXT));
    }

    /// Handles the outcome of a dial.
    pub(super) fn dialed(&mut self, dialed: Dialed, result: DialResult, now: Instant) {
        let Dialed { to, subflow, path } = dialed;
        match to {
            Peer::Remote(id) => {
                let rtt = result.as_ref().ok().map(|session| session.connection.rtt());
                let joined = result.map(|session| self.join(session, Some(dialed), now));
                let Some(known) = self.dialing.remotes.get_mut(&id) else {
                    return;
                };
                match joined {
                    Ok(Some(_)) => known.paths.connected(subflow, rtt, now),
                    Ok(None) if self.conns.is_full() => {
                        let why = TOO_MANY_PEERS.to_owned();
                        known.paths.lost(subflow, Failure::Rejected, why, now);
                    }
                    Ok(None) => known.paths.closed(subflow),
                    Err(gone) if gone.is_final() => {
                        known.paths.closed(subflow);
                        self.ban_remote(id, &gone.to_string());
                    }
                    Err(gone) => {
                        let failure = match self.net.transport.has_other_way(known.addr) {
                            // It is dialed in that way soon.
                            true => Failure::Failed,
                            false => gone.failure(),
                        };
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
}
