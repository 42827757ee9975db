//! The handshake: the first 68 bytes in each direction (BEP 3).

use super::error::WireError;
use crate::metainfo::InfoHash;

/// Bytes of a handshake.
pub(crate) const HANDSHAKE_BYTES: usize = 68;

const PROTOCOL: &[u8; 20] = b"\x13BitTorrent protocol";

/// The reserved byte and its bit that stand for extended messages (BEP 10).
const EXTENDED: (usize, u8) = (5, 0x10);

/// The info-hash in the answer to a handshake for a torrent that is not served here. The peer
/// learns that (BEP 3: both sides end the connection if the values differ), but not what is served.
const NO_TORRENT: InfoHash = InfoHash([0; 20]);

/// The name of a running program, new for every torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerId(pub [u8; 20]);

impl PeerId {
    /// A new one: `-HW` and the version, then random bytes (BEP 20).
    pub fn random() -> Self {
        let mut id = *b"-HW0100-............";
        fastrand::Rng::new().fill(&mut id[8..]);
        Self(id)
    }
}

/// The first message of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    /// Whether it understands extended messages (BEP 10).
    pub extended: bool,
}

impl Handshake {
    /// The answer to a peer that asks for another torrent.
    pub fn refusal(&self) -> Self {
        Self {
            info_hash: NO_TORRENT,
            ..*self
        }
    }

    /// Encodes it.
    pub fn encode(&self) -> [u8; HANDSHAKE_BYTES] {
        let mut out = [0; HANDSHAKE_BYTES];
        out[..20].copy_from_slice(PROTOCOL);
        if self.extended {
            out[20 + EXTENDED.0] |= EXTENDED.1;
        }
        out[28..48].copy_from_slice(&self.info_hash.0);
        out[48..].copy_from_slice(&self.peer_id.0);
        out
    }

    /// Decodes a handshake.
    ///
    /// # Errors
    /// If it is not BitTorrent, or for another torrent than `expected`.
    pub fn decode(bytes: &[u8; HANDSHAKE_BYTES], expected: InfoHash) -> Result<Self, WireError> {
        if &bytes[..20] != PROTOCOL {
            return Err(WireError::NotBitTorrent);
        }
        let (mut info_hash, mut peer_id) = ([0; 20], [0; 20]);
        info_hash.copy_from_slice(&bytes[28..48]);
        peer_id.copy_from_slice(&bytes[48..]);
        let info_hash = InfoHash(info_hash);
        if info_hash == NO_TORRENT {
            return Err(WireError::NotThisTorrent);
        }
        if info_hash != expected {
            return Err(WireError::WrongInfoHash(info_hash));
        }
        Ok(Self {
            info_hash,
            peer_id: PeerId(peer_id),
            extended: bytes[20 + EXTENDED.0] & EXTENDED.1 != 0,
        })
    }
}
