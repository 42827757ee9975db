//! Finding the peers that sent bad data.
//!
//! A piece that fails its hash is fetched again from one peer alone. If all its blocks came from
//! one peer, that one is to blame. Otherwise the digest of each block is kept, and when the piece
//! has the right hash at last, every peer whose block was different is to blame.

use std::net::IpAddr;

use hawser_address::PeerAddr;

use super::recent::Recent;
use crate::merkle::Hash;
use crate::picker::GroupId;

/// Most peers, and most hosts, that are banned at a time: the last ones. One that was forgotten has to break
/// the protocol again.
const MAX_BANNED: usize = 2000;

/// Most pieces of which the senders are known that had the wrong hash: the last ones.
const MAX_SUSPECTS: usize = 256;

/// Peers that are banned, and evidence against others.
#[derive(Debug)]
pub(super) struct Blame {
    /// By the keys of their certificates, each with the reason.
    pub banned: Recent<[u8; 32], String>,
    /// Hosts of IP peers that sent wrong data: they would connect again from another port.
    pub hosts: Recent<IpAddr, ()>,
    /// Pieces that had the wrong hash, with blocks of several peers.
    pub suspects: Recent<u32, Suspect>,
}

impl Default for Blame {
    fn default() -> Self {
        Self {
            banned: Recent::new(MAX_BANNED),
            hosts: Recent::new(MAX_BANNED),
            suspects: Recent::new(MAX_SUSPECTS),
        }
    }
}

/// A piece that failed its hash with blocks of several peers.
#[derive(Debug, Default)]
pub(super) struct Suspect {
    /// Sender of each block; `None` for padding.
    senders: Vec<Option<GroupId>>,
    /// Digest of each block of the bad copy; `None` until computed.
    digests: Option<Vec<Hash>>,
}

impl Suspect {
    /// The senders of blocks that differ from the right ones.
    fn guilty(&self, right: &[Hash]) -> Vec<GroupId> {
        let Some(digests) = &self.digests else {
            return Vec::new();
        };
        let blocks = digests.iter().zip(right).zip(&self.senders);
        let mut guilty: Vec<GroupId> = blocks
            .filter(|((was, right), _)| was != right)
            .filter_map(|(_, sender)| *sender)
            .collect();
        guilty.sort_unstable();
        guilty.dedup();
        guilty
    }
}

impl Blame {
    /// Records that a piece with blocks of several senders has the wrong hash.
    pub fn suspect(&mut self, piece: u32, senders: Vec<Option<GroupId>>) {
        // A second failure with several senders happens only if the piece's only sender gave it up
        // midway; the newest evidence matches what is on disk.
        let digests = None;
        self.suspects.insert(piece, Suspect { senders, digests });
    }

    /// Takes the digests of the blocks of a suspect piece, first of the bad copy, then of the right
    /// one. Returns the senders of blocks that differ.
    pub fn compare(&mut self, piece: u32, digests: Vec<Hash>) -> Vec<GroupId> {
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

    /// Whether a connection from the host of `from` is refused. Peers at the same host that are
    /// dialed are not affected: their ports are known.
    pub fn is_host_banned(&self, from: PeerAddr) -> bool {
        let host = from.ip().map(|addr| addr.ip());
        host.is_some_and(|host| self.hosts.contains(&host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_of_differing_blocks_are_guilty() {
        let suspect = Suspect {
            senders: vec![Some(1), Some(2), None, Some(1), Some(3)],
            digests: Some(vec![[0; 32], [9; 32], [0; 32], [2; 32], [9; 32]]),
        };
        let right = [[0; 32], [1; 32], [0; 32], [2; 32], [3; 32]];
        assert_eq!(suspect.guilty(&right), [2, 3]);
    }
}
