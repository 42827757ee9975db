//! Connecting back to who downloads, over the paths it was given.

use std::sync::Arc;
use std::time::Instant;

use hawser_path::Fingerprint;
use tokio::task::AbortHandle;

use super::MOST_BACK;
use crate::close::{CloseCode, Closed};
use crate::peer::{Gone, Session};
use crate::picker::GroupId;
use crate::swarm::conn::Origin;
use crate::swarm::{DialError, Event, Swarm, SwarmError, path};
use crate::transport::{Connection, Transport};

/// A dial to who downloads.
pub(super) struct Back {
    pub group: GroupId,
    pub fingerprint: Fingerprint,
    pub task: AbortHandle,
}

impl<T: Transport> Swarm<T> {
    pub(super) fn clear_attempt(&mut self, group: GroupId, path: Fingerprint) {
        if let Some((peer, _)) = self.uploads.peers.get_mut(&group)
            && let Some(way) = peer.ways.get_mut(&path)
        {
            way.attempt = None;
        }
    }

    /// Connects to who downloads over a path it was given.
    pub(super) fn dial_back(&mut self, group: GroupId, fingerprint: Fingerprint) {
        let conns = self.conns.values();
        let open = conns.filter(|conn| matches!(conn.origin, Origin::Back(_)));
        if open.count() + self.uploads.backs.len() >= MOST_BACK {
            return;
        }
        let attempt = self.new_id();
        let Some((peer, _)) = self.uploads.peers.get_mut(&group) else {
            return;
        };
        let (addr, Some(way)) = (peer.addr, peer.ways.get_mut(&fingerprint)) else {
            return;
        };
        way.attempt = Some(attempt);
        let route = way.path.clone();
        tracing::debug!(peer = %addr, path = %fingerprint, "connecting back");
        let (transport, shared) = (self.transport.clone(), Arc::clone(&self.shared));
        let (events, introduction) = (self.events.clone(), self.introduction(addr.into()));
        let task = self.tasks.spawn(async move {
            let result = path::connect(transport, addr.into(), route, &introduction, &shared).await;
            let _ = events.send(Event::DialedBack { attempt, result }).await;
        });
        let back = Back {
            group,
            fingerprint,
            task,
        };
        self.uploads.backs.insert(attempt, back);
    }

    /// A dial to who downloads came to an end.
    pub(in crate::swarm) fn dialed_back(
        &mut self,
        attempt: u64,
        result: Result<Session<T::Connection>, DialError>,
        now: Instant,
    ) -> Result<(), SwarmError> {
        let Some(Back {
            group, fingerprint, ..
        }) = self.uploads.backs.remove(&attempt)
        else {
            // Nobody waits for it any more.
            if let Ok(session) = result {
                session.connection.close(CloseCode::Plain, "not needed");
            }
            return Ok(());
        };
        self.clear_attempt(group, fingerprint);
        let mut trouble = Closed::plain("another peer is there");
        let joined = match result {
            Ok(session) => {
                if self.groups.get(&session.connection.key()) == Some(&group) {
                    self.join(session, Origin::Back(fingerprint), now)?
                } else {
                    let text = "another peer was to be reached";
                    session.connection.close(CloseCode::Plain, text);
                    None
                }
            }
            Err(error) => {
                trouble = match error {
                    DialError::NotConnected(reason) => Closed::plain(reason),
                    DialError::Handshake(Gone::Closed(closed)) => closed,
                    DialError::Handshake(gone) => Closed::plain(gone.to_string()),
                };
                tracing::debug!(path = %fingerprint, why = %trouble, "not connected back");
                None
            }
        };
        if let Some((peer, _)) = self.uploads.peers.get_mut(&group) {
            match joined {
                Some(_) => peer.connected(fingerprint),
                None => peer.failed(fingerprint, &trouble, now),
            }
        }
        self.settle(now);
        Ok(())
    }
}
