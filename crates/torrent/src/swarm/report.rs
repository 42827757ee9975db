//! Reporting the progress of a torrent.

use std::collections::HashSet;
use std::time::Instant;

use hawser_manager::PathStatus;
use hawser_path::Interface;

use super::conn::Conn;
use super::remotes::{Remote, RemoteId};
use super::state::Swarm;
use super::subflow::Peer;
use super::tally::{Reporter, Tally, Uploaded, accepted_summary};
use crate::picker::ConnId;
use crate::progress::{
    LeftPath, PathProgress, PathState, PeerState, Phase, Progress, SeedPeer, SeedProgress,
};
use crate::transport::Transport;

impl<T: Transport> Swarm<T> {
    /// Reports progress if a report is due, or at once if a phase begins.
    pub(super) fn report(&mut self, now: Instant, begins: Option<Phase>) {
        let Some(elapsed) = self.tally.show(now, begins.is_some()) else {
            return;
        };
        for conn in self.conns.open.values_mut() {
            conn.show(elapsed);
        }
        match &self.reporter {
            Reporter::Download(sender) => {
                let phase = begins.unwrap_or(match &self.seeding {
                    Some(_) => Phase::Seeding,
                    None => Phase::Downloading,
                });
                sender.send_replace(self.progress(now, phase));
            }
            Reporter::Seed(sender) => {
                sender.send_replace(self.seed_progress());
            }
        }
    }

    /// The totals, with what each path carried, open connections included.
    pub fn tally(&self) -> Tally {
        let mut tally = self.tally.clone();
        for remote in self.dialing.remotes.values() {
            remote.summaries().for_each(|path| tally.carried(path));
        }
        let conns = self.conns.open.values();
        for conn in conns.filter(|conn| conn.remote().is_none() && conn.bytes > 0) {
            tally.carried(accepted_summary(conn));
        }
        tally.uploaded = Uploaded::at(self.uploaded());
        tally
    }

    /// Bytes of blocks sent so far.
    pub(super) fn uploaded(&self) -> u64 {
        let open = self.conns.open.values();
        self.tally.uploaded.bytes() + open.map(Conn::uploaded).sum::<u64>()
    }

    fn progress(&self, now: Instant, phase: Phase) -> Progress {
        let mut paths = Vec::new();
        let mut idle_peers = Vec::new();
        for (id, remote) in &self.dialing.remotes {
            let before = paths.len();
            let shown = remote.paths.paths();
            let shown = shown.filter(|it| it.offered || it.open.is_some() || it.bytes > 0);
            let mut of_remote: Vec<_> = shown.collect();
            of_remote.sort_by_key(|path| (!path.taken, remote.hops(&path.path)));
            let of_remote = of_remote.into_iter();
            paths.extend(of_remote.map(|it| self.path_progress(*id, remote, it)));
            if paths.len() == before || remote.banned.is_some() {
                idle_peers.push((remote.addr, remote.trouble()));
            }
        }
        let conns = self.conns.open.iter();
        for (id, conn) in conns.filter(|(_, conn)| conn.remote().is_none()) {
            let (peer, fingerprint) = (conn.connection.peer(), conn.connection.fingerprint());
            // The path may be listed above as left; this connection uses it.
            let known = paths.iter().position(|path| {
                (path.peer, path.fingerprint) == (peer, fingerprint)
                    && path.state == PathState::Left
            });
            let known = known.map(|at| paths.remove(at));
            let hops = known.as_ref().map(|path| path.hops);
            paths.push(PathProgress {
                peer,
                fingerprint,
                hops: hops.or_else(|| conn.serving.hops()).unwrap_or(0),
                interfaces: self.interfaces(conn),
                state: self.state_of(*id, conn),
                bytes: conn.bytes + known.map_or(0, |path| path.bytes),
                rate: bits(conn.shown.down.rate),
                rtt: Some(conn.connection.rtt()),
                decision: conn.serving.decision(conn.theirs.unchoked),
                last_error: None,
            });
        }
        let tally = &self.tally;
        Progress {
            phase,
            checked_bytes: tally.total_bytes,
            verified_bytes: tally.verified_bytes,
            total_bytes: tally.total_bytes,
            files: self.fetching.files.progress().clone(),
            resumed_bytes: tally.resumed_bytes,
            fetched_bytes: tally.fetched_bytes,
            wasted_bytes: tally.wasted_bytes,
            rate: bits(tally.total_rate()),
            elapsed: tally.elapsed(now),
            seeding: self.seeding.as_ref().map(|seeding| seeding.elapsed(now)),
            uploads: self.seed_progress(),
            paths,
            idle_peers,
            web_seeds: self.web.seeds.progress(now),
        }
    }

    fn path_progress(
        &self,
        id: RemoteId,
        remote: &Remote<T::Path>,
        path: &PathStatus<T::Path>,
    ) -> PathProgress {
        let conn = path.open.and_then(|open| {
            let id = self.dialing.subflows.conn(Peer::Remote(id), open.subflow)?;
            Some((id, self.conns.open.get(&id)?))
        });
        let state = match conn {
            Some((id, conn)) => self.state_of(id, conn),
            None if path.dialing.is_some() => PathState::Dialing,
            None if path.is_wanted() => PathState::Waiting,
            None => PathState::Left,
        };
        let of_uploader = conn.and_then(|(_, conn)| conn.serving.decision(conn.theirs.unchoked));
        PathProgress {
            peer: remote.addr,
            fingerprint: path.fingerprint,
            hops: remote.hops(&path.path),
            interfaces: path.path.as_ref().interfaces.clone(),
            state,
            bytes: path.bytes,
            rate: conn.map_or(0, |(_, conn)| bits(conn.shown.down.rate)),
            rtt: conn.map(|(_, conn)| conn.connection.rtt()),
            decision: Some(of_uploader.unwrap_or_else(|| remote.describe(path.decision()))),
            last_error: path.error.clone(),
        }
    }

    fn state_of(&self, id: ConnId, conn: &Conn) -> PathState {
        if conn.stall.since.is_some() {
            PathState::Stalled
        } else if self.fetching.picker.asked(id) > 0 {
            PathState::Active
        } else {
            PathState::Idle
        }
    }

    /// The interfaces on the path of a connection, as far as they are known.
    fn interfaces(&self, conn: &Conn) -> Vec<Interface> {
        let path = conn.connection.fingerprint();
        let offered = conn.remote().and_then(|(remote, dialed)| {
            let remote = self.dialing.remotes.get(&remote)?;
            remote.paths.path(dialed.path)
        });
        let offered = offered.or_else(|| self.uploads.path(conn.group, path));
        match offered {
            Some(offered) => offered.as_ref().interfaces.clone(),
            None => conn.serving.interfaces(),
        }
    }

    fn peer_state(&self, id: ConnId, conn: &Conn) -> PeerState {
        PeerState {
            client: conn.theirs.client.clone(),
            pieces: self.fetching.picker.has_count(id),
            is_incoming: conn.dialed.is_none(),
            is_interested: conn.serving.is_wanted(),
            is_served: conn.serving.is_unchoked(),
            is_interesting: self.fetching.picker.is_interesting(id),
            serves: conn.theirs.unchoked,
            is_upload_only: conn.theirs.upload_only,
        }
    }

    fn seed_progress(&self) -> SeedProgress {
        let conns = self.conns.open.iter();
        let peers: Vec<SeedPeer> = conns
            .map(|(id, conn)| SeedPeer {
                peer: conn.connection.peer(),
                fingerprint: conn.connection.fingerprint(),
                interfaces: self.interfaces(conn),
                state: self.peer_state(*id, conn),
                key: conn.connection.key(),
                bytes: conn.uploaded(),
                rate: bits(conn.shown.up.rate),
                rtt: Some(conn.connection.rtt()),
                congestion: conn.connection.congestion(),
                decision: self
                    .uploads
                    .decision(conn.group, conn.connection.fingerprint())
                    .map(hawser_path::Decision::convert),
            })
            .collect();
        // Connected paths are listed already.
        let up = self.conns.open.values();
        let up: HashSet<_> = up
            .map(|conn| (conn.group, conn.connection.fingerprint()))
            .collect();
        let left = self.uploads.left();
        let left = left.filter(|(peer, path, _)| !up.contains(&(peer.group, *path)));
        let left = left.map(|(peer, fingerprint, decision)| LeftPath {
            peer: peer.addr.into(),
            fingerprint,
            decision: decision.convert(),
        });
        SeedProgress {
            left: left.collect(),
            changed: self.tally.changed.clone(),
            uploaded_bytes: self.uploaded(),
            rate: peers.iter().map(|peer| peer.rate).sum(),
            peers,
            connections: self.tally.connections,
        }
    }
}

/// Converts bytes per second to bit/s.
fn bits(rate: f64) -> u64 {
    (rate * 8.0).round() as u64
}
