//! RC4, and the hashes from which its keys are made.

use std::fmt;

use rc4::consts::U20;
use rc4::{KeyInit, Rc4, StreamCipher};
use sha1::{Digest, Sha1};

use crate::dh::KEY_BYTES;

/// Bytes at the beginning of each key stream that are not used: they are the weakest ones.
const DISCARDED: usize = 1024;

/// One direction of an encrypted stream: RC4. Encrypting and decrypting are the same.
pub struct Cipher(Rc4<U20>);

impl Cipher {
    /// For the bytes that the side that dialed sends.
    pub(crate) fn of_initiator(secret: &[u8; KEY_BYTES], skey: &[u8; 20]) -> Self {
        Self::new(sha1(&[b"keyA", secret, skey]))
    }

    /// For the bytes that the other side sends.
    pub(crate) fn of_responder(secret: &[u8; KEY_BYTES], skey: &[u8; 20]) -> Self {
        Self::new(sha1(&[b"keyB", secret, skey]))
    }

    fn new(key: [u8; 20]) -> Self {
        let mut rc4 = Rc4::new(&key.into());
        rc4.apply_keystream(&mut [0; DISCARDED]);
        Self(rc4)
    }

    /// Encrypts or decrypts the next bytes of the stream in place.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        self.0.apply_keystream(bytes);
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

/// What the side that dials shows of the info-hash (in the specification: SKEY), masked by the
/// secret of the connection: its hash with `req2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SkeyHash(pub [u8; 20]);

impl SkeyHash {
    /// Of an info-hash.
    pub fn of(info_hash: &[u8; 20]) -> Self {
        Self(sha1(&[b"req2", info_hash]))
    }

    /// Masks it, or removes the mask.
    pub(crate) fn mask(self, secret: &[u8; KEY_BYTES]) -> Self {
        let mask = sha1(&[b"req3", secret]);
        Self(std::array::from_fn(|at| self.0[at] ^ mask[at]))
    }

    /// The one among `info_hashes` that it is of.
    pub fn find<'a>(self, info_hashes: impl IntoIterator<Item = &'a [u8; 20]>) -> Option<[u8; 20]> {
        let mut info_hashes = info_hashes.into_iter();
        info_hashes.find(|hash| Self::of(hash) == self).copied()
    }
}

/// By which the other side finds the end of the padding of the side that dialed.
pub(crate) fn sync_hash(secret: &[u8; KEY_BYTES]) -> [u8; 20] {
    sha1(&[b"req1", secret])
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hasher = Sha1::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_is_rc4() {
        // RFC 6229, test vectors for the key 0x01 to 0x10, at offset 1024.
        let key: [u8; 16] = std::array::from_fn(|at| at as u8 + 1);
        let mut rc4 = Rc4::<rc4::consts::U16>::new(&key.into());
        rc4.apply_keystream(&mut [0; DISCARDED]);
        let mut bytes = [0; 16];
        rc4.apply_keystream(&mut bytes);
        let expected = [
            0xbd, 0xf0, 0x32, 0x4e, 0x60, 0x83, 0xdc, 0xc6, 0xd3, 0xce, 0xdd, 0x3c, 0xa8, 0xc5,
            0x3c, 0x16,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_directions_have_keys_of_their_own_and_parts_continue() {
        let (secret, skey) = ([7; KEY_BYTES], [3; 20]);
        let mut whole = [0; 600];
        Cipher::of_initiator(&secret, &skey).apply(&mut whole);
        let mut parts = [0; 600];
        let mut cipher = Cipher::of_initiator(&secret, &skey);
        parts.chunks_mut(7).for_each(|part| cipher.apply(part));
        assert_eq!(parts, whole);
        let mut other = [0; 600];
        Cipher::of_responder(&secret, &skey).apply(&mut other);
        assert_ne!(other, whole);
    }

    #[test]
    fn an_info_hash_is_found_among_many() {
        let hashes: Vec<[u8; 20]> = (0..50).map(|n| [n; 20]).collect();
        let secret = [9; KEY_BYTES];
        let shown = SkeyHash::of(&[30; 20]).mask(&secret);
        assert_eq!(shown.find(&hashes), None);
        assert_eq!(shown.mask(&secret).find(&hashes), Some([30; 20]));
    }
}
