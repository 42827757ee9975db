//! The first 68 bytes each way (BEP 3).

use rand::RngExt;

use super::error::WireError;
use crate::metainfo::InfoHash;

/// How long a handshake is.
pub(crate) const HANDSHAKE_BYTES: usize = 68;

const PROTOCOL: &[u8; 20] = b"\x13BitTorrent protocol";

/// Where in the reserved bytes, and which bit, says that extended messages are understood (BEP 10).
const EXTENDED: (usize, u8) = (5, 0x10);

/// Stands in place of an info-hash in the answer to a handshake for a torrent that is not here. The
/// peer learns that its own is not served (BEP 3: both sides end the connection when the values
/// differ), and not what is.
const NO_TORRENT: InfoHash = InfoHash([0; 20]);

/// What a program calls itself, new for every torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerId(pub [u8; 20]);

impl PeerId {
    /// A new one: `-HW` and the version, then random bytes (BEP 20).
    pub fn random() -> Self {
        let mut id = *b"-HW0100-............";
        rand::rng().fill(&mut id[8..]);
        Self(id)
    }
}

/// The first thing each side says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    /// Whether it understands extended messages (BEP 10).
    pub extended: bool,
}

impl Handshake {
    /// The answer to a peer that asked for another torrent.
    pub fn refusal(&self) -> Self {
        Self {
            info_hash: NO_TORRENT,
            ..*self
        }
    }

    /// As sent.
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

    /// As received.
    ///
    /// # Errors
    /// When it is no BitTorrent, or another torrent than `expected`.
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
