//! The keys of packets.

use std::fmt;

use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk};

use crate::cipher::Cipher;
use crate::header::{HEADER, SubflowId};

/// Bytes that a TLS session exports (RFC 8446, 7.5) for each direction of a subflow: a secret of 32
/// bytes, the subflow id of 8, the rest unused.
pub const SECRET: usize = 64;

const IV: usize = 12;

/// The key of one phase, and what makes the next one.
pub(crate) struct Keys {
    cipher: Cipher,
    /// `None` with [`Cipher::Null`].
    key: Option<LessSafeKey>,
    iv: [u8; IV],
    next: [u8; 32],
}

impl Keys {
    /// The first keys of a direction, and its subflow id.
    pub(crate) fn exported(cipher: Cipher, exported: &[u8; SECRET]) -> (Self, SubflowId) {
        let (mut secret, mut id) = ([0; 32], SubflowId::default());
        secret.copy_from_slice(&exported[..32]);
        id.copy_from_slice(&exported[32..40]);
        (Self::new(cipher, &secret), id)
    }

    fn new(cipher: Cipher, secret: &[u8; 32]) -> Self {
        let secret = Prk::new_less_safe(HKDF_SHA256, secret);
        let key = cipher.algorithm().map(|algorithm| {
            let mut key = [0; 32];
            let key = &mut key[..algorithm.key_len()];
            expand(&secret, "key", key);
            UnboundKey::new(algorithm, key).expect("a key of the algorithm's length")
        });
        let (mut iv, mut next) = ([0; IV], [0; 32]);
        expand(&secret, "iv", &mut iv);
        expand(&secret, "next", &mut next);
        Self {
            cipher,
            key: key.map(LessSafeKey::new),
            iv,
            next,
        }
    }

    /// The keys of the phase after this one.
    pub(crate) fn next(&self) -> Self {
        Self::new(self.cipher, &self.next)
    }

    /// Encrypts the payload, which begins at `start`, and appends its tag.
    #[inline]
    pub(crate) fn seal(
        &self,
        number: u64,
        header: &[u8; HEADER],
        packet: &mut Vec<u8>,
        start: usize,
    ) {
        let Some(key) = &self.key else { return };
        let (nonce, payload) = (self.nonce(number), &mut packet[start..]);
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(header), payload)
            .expect("a packet is far below 64 GiB");
        packet.extend_from_slice(tag.as_ref());
    }

    /// Decrypts `sealed`, a payload with its tag, and returns the length of the payload; `None` if
    /// it is forged. Then its bytes are undefined.
    #[inline]
    pub(crate) fn open(
        &self,
        number: u64,
        header: &[u8; HEADER],
        sealed: &mut [u8],
    ) -> Option<usize> {
        let Some(key) = &self.key else {
            return Some(sealed.len());
        };
        let opened = key.open_in_place(self.nonce(number), Aad::from(header), sealed);
        opened.ok().map(|payload| payload.len())
    }

    #[inline]
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[IV - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand (RFC 5869, 2.3).
fn expand(secret: &Prk, info: &str, out: &mut [u8]) {
    secret
        .expand(&[info.as_bytes()], Length(out.len()))
        .and_then(|expanded| expanded.fill(out))
        .expect("at most 32 bytes are expanded");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_print_themselves() {
        let (keys, _) = Keys::exported(Cipher::preferred(), &[7; SECRET]);
        let text = format!("{keys:?}");
        assert!(
            text.starts_with("Keys { cipher: ") && !text.contains('7'),
            "{text}"
        );
    }
}
