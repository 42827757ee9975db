//! The exchange of keys (Diffie-Hellman).

use std::fmt;

use crypto_bigint::modular::constant_mod::{Residue, ResidueParams};
use crypto_bigint::{Encoding, U192, U768, impl_modulus};
use fastrand::Rng;

/// Length of a public key and of the shared secret, in bytes.
pub(crate) const KEY_BYTES: usize = 96;

/// Length of a private key, in bits.
const PRIVATE_BITS: usize = 160;

/// The generator.
const GENERATOR: U768 = U768::from_u8(2);

impl_modulus!(
    Prime,
    U768,
    "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a36210000000000090563"
);

type Element = Residue<Prime, { U768::LIMBS }>;

/// A private key.
pub(crate) struct PrivateKey(U192);

impl PrivateKey {
    pub fn random(random: &mut Rng) -> Self {
        let mut bytes = [0; 24];
        random.fill(&mut bytes[24 - PRIVATE_BITS / 8..]);
        Self(U192::from_be_slice(&bytes))
    }

    /// The key to send.
    pub fn public(&self) -> [u8; KEY_BYTES] {
        self.raise(&GENERATOR)
    }

    /// The secret that both sides can compute; `None` if the peer's key is none, or if everybody can
    /// compute it.
    pub fn secret(&self, theirs: &[u8; KEY_BYTES]) -> Option<[u8; KEY_BYTES]> {
        let theirs = U768::from_be_slice(theirs);
        let last = Prime::MODULUS.wrapping_sub(&U768::ONE);
        let is_key = theirs > U768::ONE && theirs < last;
        is_key.then(|| self.raise(&theirs))
    }

    fn raise(&self, base: &U768) -> [u8; KEY_BYTES] {
        let power = Element::new(base).pow_bounded_exp(&self.0, PRIVATE_BITS);
        power.retrieve().to_be_bytes()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_the_same_secret() {
        let mut random = Rng::with_seed(1);
        for _ in 0..20 {
            let (a, b) = (
                PrivateKey::random(&mut random),
                PrivateKey::random(&mut random),
            );
            assert_eq!(a.secret(&b.public()), b.secret(&a.public()));
            assert_ne!(a.public(), b.public());
        }
    }

    #[test]
    fn small_powers_of_the_generator_are_right() {
        for exponent in [1u8, 2, 3, 64, 159] {
            let key = PrivateKey(U192::from_u8(exponent));
            let mut expected = [0; KEY_BYTES];
            expected[KEY_BYTES - 1 - usize::from(exponent) / 8] = 1 << (exponent % 8);
            assert_eq!(key.public(), expected);
        }
    }

    #[test]
    fn keys_with_a_secret_that_everybody_knows_are_refused() {
        let key = PrivateKey::random(&mut Rng::with_seed(2));
        let mut small = [0; KEY_BYTES];
        assert_eq!(key.secret(&small), None);
        small[KEY_BYTES - 1] = 1;
        assert_eq!(key.secret(&small), None);
        small[KEY_BYTES - 1] = 2;
        assert_eq!(key.secret(&small), Some(key.public()));
        assert_eq!(key.secret(&[0xff; KEY_BYTES]), None);
        // The prime, and the numbers around it.
        let mut prime = [0xff; KEY_BYTES];
        let digits = "c90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e\
                      3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42\
                      e9a63a36210000000000090563";
        for (at, byte) in prime[8..].iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        }
        for (minus, is_key) in [(0, false), (1, false), (2, true)] {
            let mut key_of_peer = prime;
            key_of_peer[KEY_BYTES - 1] -= minus;
            assert_eq!(key.secret(&key_of_peer).is_some(), is_key, "{minus}");
        }
    }
}
