//! Serving downloaders over the paths that the path manager assigns them.

use std::time::Instant;

use hawser_endhost::ScionAddr;
use hawser_manager::{Carried, Failure};

use super::{Downloader, Known};
use crate::picker::ConnId;
use crate::swarm::conn::Conn;
use crate::swarm::state::Swarm;
use crate::swarm::subflow::{Peer, Subflow};
use crate::transport::Transport;

impl<T: Transport> Swarm<T> {
    /// A downloader takes at most `max` paths. One that is known may change that, but not its
    /// address.
    pub(super) fn add_downloader(&mut self, downloader: Downloader, max: usize, now: Instant) {
        let known = self.uploads.known.get(&downloader.group);
        if known.is_none_or(|known| known.downloader == downloader) {
            self.uploads.sharing.join(downloader, max, now);
        }
        if known.is_some() {
            return;
        }
        let addr: ScionAddr = downloader.addr;
        let watch = self.net.watch(Peer::Downloader(downloader), addr.into());
        let known = Known { downloader, watch };
        self.uploads.known.insert(downloader.group, known);
        let conns = self.conns.open.iter();
        let conns = conns.filter(|(_, conn)| conn.group == downloader.group);
        let conns: Vec<ConnId> = conns.map(|(id, _)| *id).collect();
        conns.into_iter().for_each(|id| self.serve_over(id));
    }

    /// A connection that was not dialed for it may serve a downloader too, if it leads to one.
    pub(super) fn serve_over(&mut self, id: ConnId) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        let path = conn.connection.fingerprint();
        if let Some(Known { downloader, .. }) = self.uploads.known.get(&conn.group)
            && let Some(subflow) = self.uploads.sharing.accepted(*downloader, path)
        {
            conn.serving.subflow = Some(subflow);
            let peer = Peer::Downloader(*downloader);
            self.subflows.insert(peer, subflow, Subflow::Open(id));
        }
    }

    /// A connection ended. Without any, its downloader has left.
    pub(in crate::swarm) fn unserve(&mut self, conn: &Conn, now: Instant) {
        let Some(known) = self.uploads.known.get(&conn.group) else {
            return;
        };
        let peer = Peer::Downloader(known.downloader);
        if let Some(subflow) = conn.serving.subflow {
            self.subflows.remove(peer, subflow);
            let why = "its connection ended";
            self.uploads
                .sharing
                .lost(subflow, Failure::Closed, why, now);
        }
        let mut others = self.conns.open.values();
        if others.all(|other| other.group != conn.group) {
            known.watch.abort();
            self.subflows.leave(peer);
            self.uploads.sharing.leave(known.downloader);
            self.uploads.known.remove(&conn.group);
        }
    }

    /// Brings the connections of downloaders in line with what is assigned to them now.
    pub(in crate::swarm) fn settle(&mut self, now: Instant) {
        self.decide_for_silent_peers(now);
        let (conns, subflows) = (&self.conns.open, &self.subflows);
        let carried = |downloader, subflow| {
            let conn = subflows.conn(Peer::Downloader(downloader), subflow);
            let conn = conn.and_then(|id| conns.get(&id));
            Carried {
                bytes: conn.map_or(0, Conn::uploaded),
                usable: conn.is_some(),
            }
        };
        for (downloader, order) in self.uploads.sharing.tick(carried, now) {
            tracing::debug!(peer = %downloader, path = %order.path, action = ?order.action,
                cause = %order.cause, "ordered");
            self.carry_out(Peer::Downloader(downloader), &order, now);
        }
        for (downloader, path, decision) in self.uploads.sharing.changes() {
            tracing::debug!(peer = %downloader, %path, %decision, "path weighed");
            let Some(offered) = self.uploads.sharing.path(downloader, path) else {
                continue;
            };
            for conn in self.conns.open.values_mut() {
                if conn.group == downloader.group && conn.connection.fingerprint() == path {
                    conn.announce(&offered.as_ref().interfaces, &decision.reason);
                }
            }
        }
    }
}
