//! Finding out which side of a connection chooses the paths.

use std::time::{Duration, Instant};

use hawser_manager::SelectBy;

use super::{Announcement, Downloader, Known};
use crate::address::PeerAddr;
use crate::picker::{ConnId, GroupId};
use crate::swarm::state::Swarm;
use crate::swarm::subflow::{Dialed, Peer, Subflow};
use crate::transport::Transport;
use crate::wire::Multipath;

/// Longest time that a peer which understands extended messages may take to offer itself as a
/// downloader; after that it is served over whatever it opens.
const UNDECIDED: Duration = Duration::from_secs(1);

/// Longest time that an uploader may take to say that it chooses; after that paths are chosen here.
const NO_ANSWER: Duration = Duration::from_secs(2);

impl<T: Transport> Swarm<T> {
    /// Whether the side that uploads chooses the paths to a peer. There is one path to an IP peer.
    pub(in crate::swarm) fn is_multipath(&self, peer: PeerAddr) -> bool {
        self.select_by == SelectBy::Uploader && peer.scion().is_some()
    }

    fn is_multipath_over(&self, id: ConnId) -> bool {
        let conn = self.conns.open.get(&id);
        conn.is_some_and(|conn| self.is_multipath(conn.connection.peer()))
    }

    /// A connection is new: decides whether the peer may request blocks at once.
    pub(in crate::swarm) fn greet(&mut self, id: ConnId, now: Instant) {
        let multipath = self.is_multipath_over(id);
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        if let Some(Dialed { to, subflow, .. }) = conn.dialed {
            self.subflows.insert(to, subflow, Subflow::Open(id));
        }
        match conn.dialed {
            Some(Dialed {
                to: Peer::Downloader(_),
                subflow,
                ..
            }) => {
                conn.serving.subflow = Some(subflow);
                self.uploads.sharing.connected(subflow);
                conn.unchoke();
            }
            _ => {
                if !(multipath && conn.serving.extended) {
                    conn.unchoke();
                }
                self.serve_over(id);
            }
        }
        self.settle(now);
    }

    /// A peer sent its extended handshake, with the id under which it takes `scion_multipath`.
    pub(in crate::swarm) fn introduced(&mut self, id: ConnId, multipath: Option<u8>, now: Instant) {
        let ours = self.is_multipath_over(id);
        let wants = !self.is_complete();
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        conn.serving.introduced = true;
        conn.serving.multipath = multipath.filter(|_| ours);
        let group = conn.group;
        match conn.serving.multipath {
            Some(_) => {
                let path = conn.connection.fingerprint();
                if let Some(Known { downloader, .. }) = self.uploads.known.get(&group)
                    && let Some(offered) = self.uploads.sharing.path(*downloader, path)
                    && let Some(decision) = self.uploads.sharing.decision(*downloader, path)
                {
                    conn.announce(&offered.as_ref().interfaces, &decision.reason);
                }
                if wants {
                    self.offer_over(id, group);
                }
            }
            None if !self.uploads.has(group) => conn.unchoke(),
            None => {}
        }
        self.settle(now);
    }

    /// Offers this side as a downloader, over one connection to each peer.
    fn offer_over(&mut self, id: ConnId, group: GroupId) {
        let mut siblings = self.conns.open.values().filter(|conn| conn.group == group);
        if siblings.any(|conn| conn.serving.offered) {
            return;
        }
        let (addr, paths) = (self.net.transport.local(), self.paths.subflows);
        if let Some(addr) = addr
            && let Some(conn) = self.conns.open.get_mut(&id)
        {
            conn.serving.offered = true;
            conn.send_multipath(&Multipath::Offer { addr, paths });
        }
    }

    /// A peer sent a message about paths.
    pub(in crate::swarm) fn heard_multipath(
        &mut self,
        id: ConnId,
        message: Multipath,
        now: Instant,
    ) {
        let ours = self.is_multipath_over(id);
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        match message {
            Multipath::Report { interfaces, reason } => {
                conn.serving.announced = Some(Announcement { interfaces, reason });
            }
            Multipath::Offer { addr, paths } if ours => {
                let from = conn.connection.peer();
                // Anything else would let a peer send our packets to others.
                if PeerAddr::Scion(addr) != from {
                    tracing::warn!(peer = %from, offered = %addr,
                        "a peer offers an address that it does not speak from: refused");
                    conn.unchoke();
                    return;
                }
                let group = conn.group;
                self.add_downloader(Downloader { group, addr }, paths, now);
                self.settle(now);
            }
            Multipath::Offer { .. } => {}
        }
    }

    /// Serves peers that do not offer themselves, and chooses paths to uploaders that do not.
    pub(super) fn decide_for_silent_peers(&mut self, now: Instant) {
        for conn in self.conns.open.values_mut() {
            let age = now.saturating_duration_since(conn.since);
            if age >= UNDECIDED && !self.uploads.has(conn.group) {
                conn.unchoke();
            }
            let Some((remote, _)) = conn.remote() else {
                continue;
            };
            let serving = &conn.serving;
            let answered = serving.introduced || age >= NO_ANSWER || !serving.extended;
            let chooses = serving.multipath.is_some() || !answered;
            let remote = self.remotes.get_mut(&remote);
            if remote.is_some_and(|remote| !chooses && remote.paths.choose_here()) {
                tracing::info!(peer = %conn.connection.peer(),
                    "the peer does not choose paths for its uploads: chosen here");
            }
        }
    }
}
