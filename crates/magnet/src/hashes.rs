//! The hashes that name a torrent.

use std::fmt;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// What identifies a torrent on the wire: the SHA-1 of its info dictionary or, of a torrent of version 2
/// alone, the first 20 bytes of the SHA-256 (BEP 52). Displayed as hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InfoHash(pub [u8; 20]);

impl fmt::Display for InfoHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The info-hashes of one torrent: hashes of its info dictionary as it is encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct InfoHashes {
    /// SHA-1 (BEP 3).
    pub v1: Option<[u8; 20]>,
    /// SHA-256 (BEP 52).
    pub v2: Option<[u8; 32]>,
}

/// How bytes compare to the hashes of a torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// They have all hashes.
    Right,
    /// They have none of the hashes.
    Wrong,
    /// They have one hash and not the other, or there is no hash: no bytes can be right.
    Contradictory,
}

impl InfoHashes {
    /// Whether there is no hash.
    pub fn is_empty(&self) -> bool {
        self.v1.is_none() && self.v2.is_none()
    }

    /// Compares the bytes that `parts` are in order.
    pub(crate) fn compare<'a>(&self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> Comparison {
        let v1 = self.v1.map(|v1| hash::<Sha1>(parts.clone())[..] == v1);
        let v2 = self.v2.map(|v2| hash::<Sha256>(parts)[..] == v2);
        match (v1, v2) {
            (Some(true), Some(true) | None) | (None, Some(true)) => Comparison::Right,
            (Some(false), Some(false) | None) | (None, Some(false)) => Comparison::Wrong,
            (Some(_), Some(_)) | (None, None) => Comparison::Contradictory,
        }
    }
}

fn hash<'a, D: Digest>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut hasher = D::new();
    parts.for_each(|part| hasher.update(part));
    hasher.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_right_if_they_have_all_hashes() {
        let parts = [&b"info "[..], b"dictionary"];
        let whole = parts.concat();
        let v1: [u8; 20] = Sha1::digest(&whole).into();
        let v2: [u8; 32] = Sha256::digest(&whole).into();
        for (v1, v2, expected) in [
            (Some(v1), None, Comparison::Right),
            (None, Some(v2), Comparison::Right),
            (Some(v1), Some(v2), Comparison::Right),
            (Some([0; 20]), None, Comparison::Wrong),
            (None, Some([0; 32]), Comparison::Wrong),
            (Some([0; 20]), Some([0; 32]), Comparison::Wrong),
            (Some(v1), Some([0; 32]), Comparison::Contradictory),
            (Some([0; 20]), Some(v2), Comparison::Contradictory),
            (None, None, Comparison::Contradictory),
        ] {
            let hashes = InfoHashes { v1, v2 };
            assert_eq!(hashes.compare(parts.iter().copied()), expected);
        }
        assert!(InfoHashes::default().is_empty());
    }
}
