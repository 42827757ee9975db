//! Finding the peers that sent bad data.
//!
//! A piece that fails its hash is fetched again from one peer alone. If all its blocks came from
//! one peer, that one is to blame. Otherwise the digest of each block is kept, and when the piece
//! has the right hash at last, every peer whose block was different is to blame. In version 2, peers are
//! asked for the hashes of the blocks first (`held`).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use hawser_address::{IsdAsn, PeerAddr, ScionAddr};

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
    /// Hosts of peers that sent wrong data: they would connect again from another port, or with another
    /// certificate.
    hosts: Recent<ScionAddr, ()>,
    /// Pieces that had the wrong hash, with blocks of several peers, and are fetched again.
    pub suspects: Recent<u32, Evidence>,
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

/// What is known of the wrong copy of a piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Sender of each block; `None` for padding.
    pub senders: Vec<Option<GroupId>>,
    /// Hash of each block; `None` until computed.
    pub digests: Option<Vec<Hash>>,
}

impl Evidence {
    /// The blocks that differ from the right ones.
    pub fn wrong<'a>(&'a self, right: &'a [Hash]) -> impl Iterator<Item = usize> + 'a {
        let digests = self.digests.iter().flatten();
        let pairs = digests.zip(right).enumerate();
        pairs.filter_map(|(block, (was, right))| (was != right).then_some(block))
    }

    /// The senders of blocks that differ from the right ones.
    pub fn guilty(&self, right: &[Hash]) -> Vec<GroupId> {
        let senders = self
            .wrong(right)
            .filter_map(|block| *self.senders.get(block)?);
        let guilty: BTreeSet<GroupId> = senders.collect();
        guilty.into_iter().collect()
    }
}

impl Blame {
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

    /// Bans the host of `from`, where a peer sent wrong data.
    pub fn ban_host(&mut self, from: PeerAddr) {
        self.hosts.insert(host(from), ());
    }

    /// Whether a connection from the host of `from` is refused. Peers at the same host that are
    /// dialed are not affected: their ports are known.
    pub fn is_host_banned(&self, from: PeerAddr) -> bool {
        self.hosts.contains(&host(from))
    }
}

/// The host of a peer, without a port.
fn host(peer: PeerAddr) -> ScionAddr {
    let (isd_as, addr) = match peer {
        PeerAddr::Scion(addr) => (addr.isd_as, addr.host),
        PeerAddr::Ip(addr) => (IsdAsn::WILDCARD, addr),
    };
    ScionAddr::new(isd_as, SocketAddr::new(addr.ip().to_canonical(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_of_differing_blocks_are_guilty() {
        let suspect = Evidence {
            senders: vec![Some(1), Some(2), None, Some(1), Some(3)],
            digests: Some(vec![[0; 32], [9; 32], [0; 32], [2; 32], [9; 32]]),
        };
        let right = [[0; 32], [1; 32], [0; 32], [2; 32], [3; 32]];
        assert_eq!(suspect.guilty(&right), [2, 3]);
    }

    #[test]
    fn a_host_is_banned_at_all_its_ports_and_in_its_own_network_alone() {
        let peer = |text: &str| text.parse::<PeerAddr>().unwrap();
        let mut blame = Blame::default();
        blame.ban_host(peer("1-ff00:0:110,10.0.0.1:1"));
        blame.ban_host(peer("10.0.0.2:1"));
        for banned in [
            "1-ff00:0:110,10.0.0.1:2",
            "10.0.0.2:2",
            "[::ffff:10.0.0.2]:3",
        ] {
            assert!(blame.is_host_banned(peer(banned)), "{banned}");
        }
        for other in [
            "1-ff00:0:111,10.0.0.1:1",
            "1-ff00:0:110,10.0.0.2:1",
            "10.0.0.1:1",
        ] {
            assert!(!blame.is_host_banned(peer(other)), "{other}");
        }
    }
}
