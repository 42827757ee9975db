//! Doing what the path manager orders for downloaders.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_manager::{Action, Failure, Order};

use super::{DialedBack, Downloader};
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::swarm::conn::Origin;
use crate::swarm::event::Event;
use crate::swarm::net::DialResult;
use crate::swarm::path;
use crate::swarm::remotes::Offered;
use crate::swarm::state::Swarm;
use crate::transport::{Connection, Transport};

impl<T: Transport> Swarm<T> {
    /// The set of paths to a downloader changed.
    pub(in crate::swarm) fn offered_back(
        &mut self,
        downloader: Downloader,
        paths: &Offered<T::Path>,
        now: Instant,
    ) {
        let (transport, to) = (&self.net.transport, downloader.addr.into());
        let fits = |path: &T::Path| transport.fits(to, path);
        self.uploads.offer(downloader, paths, fits);
        self.settle(now);
    }

    /// Brings the connections of downloaders in line with what is assigned to them now.
    pub(in crate::swarm) fn settle(&mut self, now: Instant) {
        self.decide_for_silent_peers(now);
        let conns = &self.conns;
        let sent = |id| {
            let conn = conns.get(&id)?;
            Some(conn.counts.uploaded.load(Ordering::Relaxed))
        };
        for (downloader, order) in self.uploads.orders(now, sent) {
            self.obey_for_downloader(downloader, &order);
        }
        for (id, interfaces, decision) in self.uploads.changes() {
            if let Some(conn) = self.conns.get_mut(&id) {
                conn.announce(interfaces, &decision.reason);
            }
        }
    }

    fn obey_for_downloader(&mut self, downloader: Downloader, order: &Order) {
        tracing::debug!(peer = %downloader, path = %order.path, action = ?order.action,
            cause = %order.cause, "ordered");
        match order.action {
            Action::Dial => self.dial_back(downloader, order),
            Action::Hold | Action::Resume => {
                let conn = self.uploads.conn(downloader, order.subflow);
                match conn.and_then(|id| self.conns.get_mut(&id)) {
                    Some(conn) if order.action == Action::Resume => conn.unchoke(),
                    Some(conn) => conn.choke(),
                    None => {}
                }
            }
            Action::Close { .. } => {
                if let Some(id) = self.uploads.close(downloader, order.subflow) {
                    self.drop_conn(id, CloseCode::Plain, path::UNUSED);
                }
            }
        }
    }

    fn dial_back(&mut self, to: Downloader, order: &Order) {
        let Some(path) = self.uploads.sharing.path(to, order.path).cloned() else {
            return;
        };
        let dialed = DialedBack {
            to,
            subflow: order.subflow,
            path: order.path,
        };
        let introduction = self.introduction(to.addr.into());
        let event = move |result| Event::DialedBack { dialed, result };
        let task = self.net.dial(to.addr.into(), path, introduction, event);
        self.uploads.dialing(dialed, task);
    }

    /// A dial to a downloader has an outcome.
    pub(in crate::swarm) fn dialed_back(
        &mut self,
        dialed: DialedBack,
        result: DialResult<T>,
        now: Instant,
    ) -> Result<(), DownloadError> {
        if !self.uploads.dialed(dialed) {
            // It is not wanted any more.
            if let Ok(session) = result {
                session.connection.close(CloseCode::Plain, "not needed");
            }
            return Ok(());
        }
        let (failure, why) = match result {
            Ok(session)
                if self.conns.known_group(&session.connection.key()) == Some(dialed.to.group) =>
            {
                if self.join(session, Origin::Back(dialed), now)?.is_some() {
                    return Ok(());
                }
                (Failure::Failed, "another peer is there".to_owned())
            }
            Ok(session) => {
                let text = "another peer was to be reached";
                session.connection.close(CloseCode::Plain, text);
                (Failure::Failed, "another peer is there".to_owned())
            }
            Err(error) => error.failure(),
        };
        tracing::debug!(peer = %dialed.to, path = %dialed.path, why, "not connected");
        let subflow = dialed.subflow;
        self.uploads.sharing.lost(subflow, failure, &why, now);
        self.settle(now);
        Ok(())
    }
}
