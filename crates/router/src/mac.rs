//! The MAC of a hop field.

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt, KeyInit};

/// An AS's hop-field key, ready for use.
///
/// A hop field's MAC is the AES-CMAC (RFC 4493) over exactly one block, so it costs one AES call:
/// the key schedule and the CMAC subkey are made once.
#[derive(Clone)]
pub struct HopKey {
    cipher: Aes128,
    /// RFC 4493, section 2.3: K1, for a message of whole blocks.
    subkey: [u8; 16],
}

/// What a hop field's MAC covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacInput {
    /// The segment's accumulated identifier (beta) at this hop.
    pub segment_id: u16,
    /// The segment's timestamp, in Unix seconds.
    pub timestamp: u32,
    /// Expiry of the hop, in units of 337.5 s after the timestamp, less one.
    pub exp_time: u8,
    /// Ingress interface in construction direction.
    pub cons_ingress: u16,
    /// Egress interface in construction direction.
    pub cons_egress: u16,
}

impl HopKey {
    /// Prepares `key`.
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

    /// The MAC over `input` (SCION dataplane specification, "Hop Field MAC computation").
    #[inline]
    pub fn mac(&self, input: &MacInput) -> [u8; 6] {
        let mut block = [0u8; 16];
        block[2..4].copy_from_slice(&input.segment_id.to_be_bytes());
        block[4..8].copy_from_slice(&input.timestamp.to_be_bytes());
        block[9] = input.exp_time;
        block[10..12].copy_from_slice(&input.cons_ingress.to_be_bytes());
        block[12..14].copy_from_slice(&input.cons_egress.to_be_bytes());
        let masked = u128::from_ne_bytes(block) ^ u128::from_ne_bytes(self.subkey);
        let mut block = GenericArray::from(masked.to_ne_bytes());
        self.cipher.encrypt_block(&mut block);
        let [a, b, c, d, e, f, ..] = <[u8; 16]>::from(block);
        [a, b, c, d, e, f]
    }
}

/// Keys do not belong in logs.
impl std::fmt::Debug for HopKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HopKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sciparse::dataplane_path::standard::mac::algo::calculate_hop_mac;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_cmac_of_its_own(
            key: [u8; 16], segment_id: u16, timestamp: u32, exp_time: u8,
            cons_ingress: u16, cons_egress: u16,
        ) {
            let input = MacInput { segment_id, timestamp, exp_time, cons_ingress, cons_egress };
            prop_assert_eq!(
                HopKey::new(&key).mac(&input),
                calculate_hop_mac(segment_id, timestamp, exp_time, cons_ingress, cons_egress, &key)
            );
        }
    }

    #[test]
    fn does_not_show_the_key() {
        assert_eq!(format!("{:?}", HopKey::new(&[7; 16])), "HopKey(..)");
    }
}
