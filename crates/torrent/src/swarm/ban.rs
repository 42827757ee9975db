//! Dropping peers that broke the protocol or sent wrong data.

use std::time::Instant;

use hawser_address::PeerAddr;

use super::blame::Evidence;
use super::digests::Purpose;
use super::remotes::RemoteId;
use super::state::Swarm;
use crate::close::CloseCode;
use crate::merkle::Hash;
use crate::picker::GroupId;
use crate::transport::Transport;

impl<T: Transport> Swarm<T> {
    /// Handles a piece that has the wrong hash.
    pub(super) fn failed(&mut self, piece: u32, now: Instant) {
        let senders = self.fetching.picker.senders(piece);
        let mut known = senders.iter().flatten().copied();
        let first = known.next();
        if known.all(|sender| Some(sender) == first) {
            self.fail_whole(piece);
            if let Some(sender) = first {
                let reason = format!("dropped: it sent piece {piece} with wrong data");
                self.ban_liar(sender, &reason);
            }
            return;
        }
        // The disk computes the digests before it writes any block of the piece again.
        self.digest(piece, Purpose::Blame);
        let evidence = Evidence {
            senders,
            digests: None,
        };
        if let Some(evidence) = self.hold(piece, evidence, now) {
            self.refetch_whole(piece, evidence);
        }
    }

    /// Fetches a piece again from one peer alone, and keeps what shows later who sent wrong blocks.
    pub(super) fn refetch_whole(&mut self, piece: u32, evidence: Evidence) {
        self.fail_whole(piece);
        // A second failure with several senders happens only if the piece's only sender gave it up
        // midway; the newest evidence matches what is on disk.
        self.blame.suspects.insert(piece, evidence);
    }

    fn fail_whole(&mut self, piece: u32) {
        tracing::warn!(piece, "a piece has the wrong hash and is fetched again");
        self.fetching.picker.fail(piece);
        self.tally.wasted_bytes += u64::from(self.metainfo.pieces.size(piece));
        self.conns.touch_all();
    }

    /// Takes the digests of the blocks of a suspect piece, first of the bad copy, then of the right
    /// one, and bans the senders of blocks that differ.
    pub(super) fn compare(&mut self, piece: u32, digests: Vec<Hash>) {
        for group in self.blame.compare(piece, digests) {
            let reason = format!("dropped: it sent wrong data in piece {piece}");
            self.ban_liar(group, &reason);
        }
    }

    /// Drops a peer that sent wrong data, also one that has left. Breaking the protocol harms only the peer
    /// that does it, but wrong data costs a piece every time: it may not return from another port of its host,
    /// nor with another certificate.
    pub(super) fn ban_liar(&mut self, group: GroupId, reason: &str) {
        let conns = self.conns.open.values().filter(|conn| conn.group == group);
        let open = conns.map(|conn| conn.connection.peer());
        for from in open.chain(self.conns.groups.last_address(group)) {
            self.blame.ban_host(from);
        }
        self.ban(group, reason);
    }

    /// Drops a peer with all its path-level peers, for good.
    pub(super) fn ban(&mut self, group: GroupId, reason: &str) {
        if let Some(key) = self.conns.groups.key(group)
            && !self.blame.banned.contains(&key)
        {
            self.blame.banned.insert(key, reason.to_owned());
        }
        let members = self.conns.open.iter();
        let members = members.filter(|(_, conn)| conn.group == group);
        let members: Vec<_> = members.map(|(id, conn)| (*id, conn.remote())).collect();
        self.ban_web_seed(group, reason);
        for (id, remote) in members {
            if let Some(conn) = self.conns.open.get(&id) {
                let peer = conn.connection.peer();
                tracing::warn!(%peer, reason, "a peer was dropped");
            }
            self.drop_conn(id, CloseCode::Banned, reason);
            if let Some((remote, _)) = remote {
                self.ban_remote(remote, reason);
            }
        }
    }

    /// Why a connection to the peer with this key at `from` is refused; `None` if it is not. `accepted`
    /// says that the peer opened it.
    pub(super) fn ban_reason(
        &self,
        key: &[u8; 32],
        from: PeerAddr,
        accepted: bool,
    ) -> Option<String> {
        let of_key = self.blame.banned.get(key).map(String::as_str);
        let mut at_address = self
            .dialing
            .remotes
            .values()
            .filter(|remote| remote.addr == from);
        let of_address = || at_address.find_map(|remote| remote.banned.as_deref());
        let of_host = || {
            let banned = accepted && self.blame.is_host_banned(from);
            banned.then_some("a peer at its host sent wrong data")
        };
        let reason = of_key.or_else(of_address).or_else(of_host);
        reason.map(str::to_owned)
    }

    /// Never dials a remote again.
    pub(super) fn ban_remote(&mut self, remote: RemoteId, reason: &str) {
        if let Some(remote) = self.dialing.remotes.get_mut(&remote) {
            remote.ban(reason);
        }
        self.check_all_dropped();
    }
}
