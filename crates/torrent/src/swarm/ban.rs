//! Dropping peers that broke the protocol or sent wrong data.

use super::conn::Origin;
use super::remotes::RemoteId;
use super::state::Swarm;
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::picker::{ConnId, GroupId};
use crate::transport::{Connection, Transport};
use crate::wire::BLOCK;

impl<T: Transport> Swarm<T> {
    /// A piece has the wrong hash.
    pub(super) fn failed(&mut self, piece: u32) -> Result<(), DownloadError> {
        let senders = self.picker.fail(piece);
        self.tally.wasted_bytes += u64::from(self.metainfo.pieces.size(piece));
        tracing::warn!(piece, "a piece has the wrong hash and is fetched again");
        let Some(first) = senders.first().copied() else {
            return Ok(());
        };
        if senders.iter().all(|sender| *sender == first) {
            let reason = format!("dropped: it sent piece {piece} with wrong data");
            return self.ban_liar(first, &reason);
        }
        self.blame.suspect(piece, senders);
        // The disk does this before it writes any block of the piece again.
        self.disk.digest(piece, u64::from(BLOCK));
        Ok(())
    }

    /// What each block of a suspect piece is: wrong the first time, right the second.
    pub(super) fn compare(
        &mut self,
        piece: u32,
        digests: Vec<[u8; 20]>,
    ) -> Result<(), DownloadError> {
        for group in self.blame.compare(piece, digests) {
            let reason = format!("dropped: it sent wrong data in piece {piece}");
            self.ban_liar(group, &reason)?;
        }
        Ok(())
    }

    /// Drops a peer that sent wrong data. Breaking the protocol harms only the peer that does; this
    /// costs a piece every time, so an IP peer may not come again from another port.
    fn ban_liar(&mut self, group: GroupId, reason: &str) -> Result<(), DownloadError> {
        let conns = self.conns.values().filter(|conn| conn.group == group);
        let hosts = conns.filter_map(|conn| conn.connection.peer().ip());
        hosts.for_each(|addr| self.blame.ban_host(addr.ip()));
        self.ban(group, reason)
    }

    /// Drops a peer with all its path-level peers, for good.
    pub(super) fn ban(&mut self, group: GroupId, reason: &str) -> Result<(), DownloadError> {
        if let Some(key) = self.conns.key(group) {
            self.blame.ban(key);
        }
        let members: Vec<(ConnId, Origin)> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.group == group)
            .map(|(id, conn)| (*id, conn.origin))
            .collect();
        for (id, origin) in members {
            if let Some(conn) = self.conns.get(&id) {
                let peer = conn.connection.peer();
                tracing::warn!(%peer, reason, "a peer was dropped");
            }
            self.drop_conn(id, CloseCode::Banned, reason);
            if let Origin::Dialed(dialed) = origin {
                self.ban_remote(dialed.remote, reason)?;
            }
        }
        Ok(())
    }

    /// Never dials a remote again.
    pub(super) fn ban_remote(
        &mut self,
        remote: RemoteId,
        reason: &str,
    ) -> Result<(), DownloadError> {
        if let Some(remote) = self.remotes.get_mut(remote) {
            remote.ban(reason);
        }
        if self.give_up_after.is_some()
            && self.conns.is_empty()
            && self.remotes.all().all(|remote| remote.banned.is_some())
        {
            return Err(DownloadError::AllDropped(self.troubles()));
        }
        Ok(())
    }
}
