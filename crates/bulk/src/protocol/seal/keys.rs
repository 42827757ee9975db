//! The keys of packets.

use std::fmt;

use ring::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk};

use super::super::packet::{HEADER, SubflowId, TAG};
use super::super::wire::DecodeError;

/// Bytes that are exported from the TLS session for each direction of a subflow: a secret of 32
/// bytes, the subflow id of 8, the rest unused.
pub const SECRET: usize = 64;

const IV: usize = 12;

/// How packets are encrypted and authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

impl Cipher {
    /// The faster cipher on this processor: AES-128-GCM if it has instructions for both of its
    /// parts, otherwise ChaCha20-Poly1305.
    pub fn preferred() -> Self {
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        let aes = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        let aes = std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
        let aes = false;
        if aes {
            Self::Aes128Gcm
        } else {
            Self::ChaCha20Poly1305
        }
    }

    /// The number of the cipher in messages.
    pub fn to_u8(self) -> u8 {
        match self {
            Self::Aes128Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    /// The cipher with this number.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if there is none.
    pub fn from_u8(number: u8) -> Result<Self, DecodeError> {
        match number {
            1 => Ok(Self::Aes128Gcm),
            2 => Ok(Self::ChaCha20Poly1305),
            _ => Err(DecodeError::Invalid("cipher")),
        }
    }

    fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Aes128Gcm => &AES_128_GCM,
            Self::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

/// The key of one phase, and what makes the next one.
pub(super) struct Keys {
    cipher: Cipher,
    key: LessSafeKey,
    iv: [u8; IV],
    next: [u8; 32],
}

impl Keys {
    /// The first keys of a direction, and its subflow id.
    pub(super) fn exported(cipher: Cipher, exported: &[u8; SECRET]) -> (Self, SubflowId) {
        let (mut secret, mut id) = ([0; 32], SubflowId::default());
        secret.copy_from_slice(&exported[..32]);
        id.copy_from_slice(&exported[32..40]);
        (Self::new(cipher, &secret), id)
    }

    fn new(cipher: Cipher, secret: &[u8; 32]) -> Self {
        let secret = Prk::new_less_safe(HKDF_SHA256, secret);
        let algorithm = cipher.algorithm();
        let mut key = [0; 32];
        let key = &mut key[..algorithm.key_len()];
        expand(&secret, "key", key);
        let key = UnboundKey::new(algorithm, key).expect("a key of the algorithm's length");
        let (mut iv, mut next) = ([0; IV], [0; 32]);
        expand(&secret, "iv", &mut iv);
        expand(&secret, "next", &mut next);
        Self {
            cipher,
            key: LessSafeKey::new(key),
            iv,
            next,
        }
    }

    /// The keys of the phase after this one.
    pub(super) fn next(&self) -> Self {
        Self::new(self.cipher, &self.next)
    }

    /// Encrypts `payload`, and returns its tag.
    #[inline]
    pub(super) fn seal(&self, number: u64, header: &[u8; HEADER], payload: &mut [u8]) -> [u8; TAG] {
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(number), Aad::from(header), payload)
            .expect("a packet is far below 64 GiB");
        let mut bytes = [0; TAG];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// Decrypts `sealed`, a payload with its tag; `None` if it is forged. Then its bytes are
    /// undefined.
    #[inline]
    pub(super) fn open<'a>(
        &self,
        number: u64,
        header: &[u8; HEADER],
        sealed: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        (self.key)
            .open_in_place(self.nonce(number), Aad::from(header), sealed)
            .ok()
    }

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
    fn ciphers_have_their_numbers() {
        for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
            assert_eq!(Cipher::from_u8(cipher.to_u8()), Ok(cipher));
        }
        assert!(Cipher::from_u8(0).is_err() && Cipher::from_u8(3).is_err());
    }

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
