//! Who sent bad data.
//!
//! A piece that fails its hash is fetched again from one peer alone. If all its blocks came from
//! one peer, that one is to blame. Otherwise the digest of each bad block is kept, and when the
//! piece is right at last, whoever sent a block that was different is to blame.

use super::conn::Origin;
use super::remotes::RemoteId;
use super::{Swarm, SwarmError};
use crate::address::PeerAddr;
use crate::close::CloseCode;
use crate::picker::{ConnId, GroupId};
use crate::transport::{Connection, Transport};
use crate::wire::BLOCK;

/// A piece that failed its hash with blocks of several peers.
#[derive(Debug, Default)]
pub(super) struct Suspect {
    /// Who sent each block.
    senders: Vec<GroupId>,
    /// What each block was; `None` until worked out.
    digests: Option<Vec<[u8; 20]>>,
}

impl Suspect {
    /// Who sent a block that is not what it should be.
    fn guilty(&self, right: &[[u8; 20]]) -> Vec<GroupId> {
        let Some(digests) = &self.digests else {
            return Vec::new();
        };
        let blocks = digests.iter().zip(right).zip(&self.senders);
        let mut guilty: Vec<GroupId> = blocks
            .filter(|((was, right), _)| was != right)
            .map(|(_, sender)| *sender)
            .collect();
        guilty.sort_unstable();
        guilty.dedup();
        guilty
    }
}

impl<T: Transport> Swarm<T> {
    /// A piece has the wrong hash.
    pub(super) fn failed(&mut self, piece: u32) -> Result<(), SwarmError> {
        let senders = self.picker.fail(piece);
        self.tally.wasted_bytes += u64::from(self.metainfo.piece_size(piece));
        tracing::warn!(piece, "a piece has the wrong hash and is fetched again");
        let Some(first) = senders.first().copied() else {
            return Ok(());
        };
        if senders.iter().all(|sender| *sender == first) {
            let reason = format!("dropped: it sent piece {piece} with wrong data");
            return self.ban_liar(first, &reason);
        }
        // A second failure with several senders would need the piece to have been given up by its
        // only sender midway; the newest evidence is what the disk still has.
        let digests = None;
        self.suspects.insert(piece, Suspect { senders, digests });
        // The disk does this before it writes any block of the piece again.
        self.disk.digest(piece, u64::from(BLOCK));
        Ok(())
    }

    /// What each block of a suspect piece is: wrong the first time, right the second.
    pub(super) fn compare(&mut self, piece: u32, digests: Vec<[u8; 20]>) -> Result<(), SwarmError> {
        let Some(suspect) = self.suspects.get_mut(&piece) else {
            return Ok(());
        };
        if suspect.digests.is_none() {
            suspect.digests = Some(digests);
            return Ok(());
        }
        let guilty = suspect.guilty(&digests);
        self.suspects.remove(&piece);
        for group in guilty {
            let reason = format!("dropped: it sent wrong data in piece {piece}");
            self.ban_liar(group, &reason)?;
        }
        Ok(())
    }

    /// Drops a peer that sent wrong data. Breaking the protocol harms nobody but who does; this
    /// costs a piece every time, so an IP peer may not come again from another port.
    fn ban_liar(&mut self, group: GroupId, reason: &str) -> Result<(), SwarmError> {
        let conns = self.conns.values().filter(|conn| conn.group == group);
        let hosts = conns.filter_map(|conn| conn.connection.peer().ip());
        self.banned_hosts.extend(hosts.map(|addr| addr.ip()));
        self.ban(group, reason)
    }

    /// Whether who connects from there is turned away. Others at the same host who are dialed are
    /// not: those are at ports of their own.
    pub(super) fn is_host_banned(&self, from: PeerAddr) -> bool {
        from.ip()
            .is_some_and(|addr| self.banned_hosts.contains(&addr.ip()))
    }

    /// Drops a peer with all its path-level peers, for good.
    pub(super) fn ban(&mut self, group: GroupId, reason: &str) -> Result<(), SwarmError> {
        let keys = self.groups.iter().filter(|(_, g)| **g == group);
        self.banned.extend(keys.map(|(key, _)| *key));
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
    pub(super) fn ban_remote(&mut self, remote: RemoteId, reason: &str) -> Result<(), SwarmError> {
        if let Some(remote) = self.remotes.get_mut(remote) {
            remote.ban(reason);
        }
        if self.goal.until_complete
            && self.conns.is_empty()
            && self.remotes.all().all(|remote| remote.banned.is_some())
        {
            return Err(SwarmError::AllDropped(self.troubles()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sent_what_differs_is_guilty() {
        let suspect = Suspect {
            senders: vec![1, 2, 1, 3],
            digests: Some(vec![[0; 20], [9; 20], [2; 20], [9; 20]]),
        };
        let right = [[0; 20], [1; 20], [2; 20], [3; 20]];
        assert_eq!(suspect.guilty(&right), [2, 3]);
    }
}
