//! The ciphers.

use ring::aead::{AES_128_GCM, Algorithm, CHACHA20_POLY1305};

use crate::TAG;
use crate::header::HEADER;

/// How packets are encrypted and authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// Neither encryption nor authentication: packets have header, number and payload, and no tag.
    /// Only for measuring what sealing costs; it must not be taken because a peer asks for it.
    Null,
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
            Self::Null => 3,
        }
    }

    /// The cipher with this number; `None` if there is none.
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Aes128Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            3 => Some(Self::Null),
            _ => None,
        }
    }

    /// Bytes of a packet that are not payload: the header, and the tag if there is one.
    pub const fn overhead(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => HEADER + TAG,
            Self::Null => HEADER,
        }
    }

    /// `None` for [`Cipher::Null`].
    pub(crate) fn algorithm(self) -> Option<&'static Algorithm> {
        match self {
            Self::Aes128Gcm => Some(&AES_128_GCM),
            Self::ChaCha20Poly1305 => Some(&CHACHA20_POLY1305),
            Self::Null => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_have_their_numbers() {
        for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305, Cipher::Null] {
            assert_eq!(Cipher::from_u8(cipher.to_u8()), Some(cipher));
        }
        assert_eq!((Cipher::from_u8(0), Cipher::from_u8(4)), (None, None));
        assert_ne!(Cipher::preferred(), Cipher::Null);
    }
}
