//! Who sent bad data.
//!
//! A piece that fails its hash is fetched again from one peer alone. If all its blocks came from
//! one peer, that one is to blame. Otherwise the digest of each bad block is kept, and when the
//! piece is right at last, the peer that sent a block that was different is to blame.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::address::PeerAddr;
use crate::picker::GroupId;

/// Peers that are banned, and what is held against others.
#[derive(Debug, Default)]
pub(super) struct Blame {
    pub banned: HashSet<GroupId>,
    /// Hosts of IP peers that sent wrong data: they would connect again from another port.
    pub hosts: HashSet<IpAddr>,
    /// Pieces that had the wrong hash, with blocks of several peers.
    pub suspects: HashMap<u32, Suspect>,
}

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

impl Blame {
    /// A piece with blocks of several senders has the wrong hash.
    pub fn suspect(&mut self, piece: u32, senders: Vec<GroupId>) {
        // A second failure with several senders would need the piece to have been given up by its
        // only sender midway; the newest evidence is what the disk still has.
        let digests = None;
        self.suspects.insert(piece, Suspect { senders, digests });
    }

    /// What each block of a suspect piece is: wrong the first time, right the second. Who sent what
    /// is not right.
    pub fn compare(&mut self, piece: u32, digests: Vec<[u8; 20]>) -> Vec<GroupId> {
        let Some(suspect) = self.suspects.get_mut(&piece) else {
            return Vec::new();
        };
        if suspect.digests.is_none() {
            suspect.digests = Some(digests);
            return Vec::new();
        }
        let guilty = suspect.guilty(&digests);
        self.suspects.remove(&piece);
        guilty
    }

    /// Whether a connection from there is refused. Others at the same host that are
    /// dialed are not: those are at ports of their own.
    pub fn is_host_banned(&self, from: PeerAddr) -> bool {
        let host = from.ip().map(|addr| addr.ip());
        host.is_some_and(|host| self.hosts.contains(&host))
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
