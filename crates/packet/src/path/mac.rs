//! The MAC of a hop field.

use std::fmt;

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt, KeyInit};

use super::{HopField, InfoField};

/// An AS's hop-field key, expanded for use.
///
/// A hop field's MAC is the first six bytes of the AES-CMAC (RFC 4493) over exactly one block. It
/// costs one AES call, because the key schedule and the CMAC subkey are computed in advance.
#[derive(Clone)]
pub struct HopKey {
    cipher: Aes128,
    /// RFC 4493, section 2.3: K1, for a message of whole blocks.
    subkey: [u8; 16],
}

impl HopKey {
    /// Expands `key`.
    pub fn new(key: &[u8; 16]) -> Self {
        let cipher = Aes128::new(GenericArray::from_slice(key));
        let mut zero = GenericArray::from([0u8; 16]);
        cipher.encrypt_block(&mut zero);
        let l = u128::from_be_bytes(zero.into());
        // RFC 4493, section 2.3: doubling in GF(2^128).
        let subkey = (l << 1) ^ if l >> 127 == 1 { 0x87 } else { 0 };
        Self {
            cipher,
            subkey: subkey.to_be_bytes(),
        }
    }

    /// The MAC over `input`, the block [`HopField::mac_input`] (SCION dataplane specification, "Hop
    /// Field MAC computation").
    #[inline]
    pub fn mac(&self, input: &[u8; 16]) -> [u8; 6] {
        let masked = u128::from_ne_bytes(*input) ^ u128::from_ne_bytes(self.subkey);
        let mut block = GenericArray::from(masked.to_ne_bytes());
        self.cipher.encrypt_block(&mut block);
        let [a, b, c, d, e, f, ..] = <[u8; 16]>::from(block);
        [a, b, c, d, e, f]
    }

    /// A hop field of this AS, with its MAC, in the segment of `info`.
    pub fn hop_field(
        &self,
        info: &InfoField,
        exp_time: u8,
        cons_ingress: u16,
        cons_egress: u16,
    ) -> HopField {
        let mut field = HopField {
            flags: 0,
            exp_time,
            cons_ingress,
            cons_egress,
            mac: [0; 6],
        };
        field.mac = self.mac(&field.mac_input(info));
        field
    }
}

/// Hides the key: it must not appear in logs.
impl fmt::Debug for HopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HopKey(..)")
    }
}

#[cfg(test)]
mod tests;
