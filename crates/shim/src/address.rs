//! The addresses that this host's kernel sees: of this host and of its peers.
//!
//! They never leave this host. A datagram between two shims carries no IP header: the session and
//! the slot say which addresses each side gives to a packet. So both sides choose theirs freely, and
//! no two hosts can clash.

use std::net::Ipv6Addr;

use hawser_keys::PeerKey;
use sha2::{Digest, Sha256};

/// Bytes of an address that its block has in common: all but the slot.
const BLOCK: usize = 14;

/// The number of a path slot: 0 for the address that serves, 1 to [`SLOTS`] for the addresses from
/// which connections are opened, one for each path.
pub type Slot = u8;

/// Most path slots of a session. The kernel's MPTCP takes eight subflows a connection.
pub const SLOTS: Slot = 8;

/// The addresses of one host: `fd` (RFC 4193), 104 bits of a hash, 16 bits for the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block([u8; BLOCK]);

impl Block {
    /// The addresses of the host with `key`. `tag` tells several uses of one key apart.
    pub fn of(key: &PeerKey, tag: u64) -> Self {
        let hash = Sha256::new()
            .chain_update(b"hawser shim address")
            .chain_update(key.0)
            .chain_update(tag.to_be_bytes())
            .finalize();
        let mut block = [0; BLOCK];
        block.copy_from_slice(&hash[..BLOCK]);
        block[0] = 0xfd;
        Self(block)
    }

    /// The address of a slot.
    pub fn address(&self, slot: Slot) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets[..BLOCK].copy_from_slice(&self.0);
        octets[15] = slot;
        octets.into()
    }

    /// The block and slot of `address`; `None` if it has neither.
    #[inline]
    pub fn split(address: Ipv6Addr) -> Option<(Self, Slot)> {
        let octets = address.octets();
        let (block, slot) = octets.split_first_chunk::<BLOCK>()?;
        match (block[0], slot) {
            (0xfd, [0, slot @ 0..=SLOTS]) => Some((Self(*block), *slot)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_its_block_and_slot() {
        let block = Block::of(&PeerKey([7; 32]), 3);
        for slot in 0..=SLOTS {
            assert_eq!(Block::split(block.address(slot)), Some((block, slot)));
        }
        assert!(block.address(1).is_unique_local());
        assert_eq!(Block::split(block.address(SLOTS + 1)), None);
        assert_eq!(Block::split("fe80::1".parse().unwrap()), None);
    }

    #[test]
    fn keys_and_tags_have_blocks_of_their_own() {
        let blocks = [(1, 0), (2, 0), (1, 1)].map(|(key, tag)| Block::of(&PeerKey([key; 32]), tag));
        assert!(blocks[0] != blocks[1] && blocks[0] != blocks[2]);
        assert_eq!(blocks[0], Block::of(&PeerKey([1; 32]), 0));
    }
}
