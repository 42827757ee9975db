//! Private keys.

use der::pem::{self, LineEnding};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
};

/// PEM label of PKCS #8 (RFC 7468, section 10).
const LABEL: &str = "PRIVATE KEY";

/// Why a private key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not PEM, or PEM of something else.
    #[error("not a PEM block \"{LABEL}\": {0}")]
    Pem(String),
    /// Not a key that can sign here.
    #[error(
        "not a PKCS #8 key on P-256 or P-384 with its public key: make it with `scion-pki key private`"
    )]
    Kind,
    /// The system has no randomness to give.
    #[error("the system gave no random bytes")]
    Random,
}

/// The curve of a private key; it decides the algorithm of its signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signs {
    /// ECDSA on P-256 with SHA-256.
    P256,
    /// ECDSA on P-384 with SHA-384.
    P384,
}

/// A private key.
pub(crate) struct Key {
    pair: EcdsaKeyPair,
    pub signs: Signs,
    random: SystemRandom,
}

impl Key {
    /// A new key on P-256, and its PKCS #8 form in PEM.
    pub fn generate() -> Result<(Self, String), KeyError> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            .map_err(|_| KeyError::Random)?;
        let text = pem::encode_string(LABEL, LineEnding::LF, pkcs8.as_ref())
            .map_err(|e| KeyError::Pem(e.to_string()))?;
        Ok((Self::from_pkcs8(pkcs8.as_ref())?, text))
    }

    /// Reads PKCS #8 in PEM.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let (label, pkcs8) =
            pem::decode_vec(text.trim_ascii_end()).map_err(|e| KeyError::Pem(e.to_string()))?;
        if label != LABEL {
            return Err(KeyError::Pem(format!("it is labelled \"{label}\"")));
        }
        Self::from_pkcs8(&pkcs8)
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        for (algorithm, signs) in [
            (&ECDSA_P256_SHA256_ASN1_SIGNING, Signs::P256),
            (&ECDSA_P384_SHA384_ASN1_SIGNING, Signs::P384),
        ] {
            if let Ok(pair) = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &random) {
                return Ok(Self {
                    pair,
                    signs,
                    random,
                });
            }
        }
        Err(KeyError::Kind)
    }

    /// The public key: an uncompressed point (SEC 1, section 2.3.3).
    pub fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The DER form of the signature of a message.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.pair.sign(&self.random, message);
        let signature = signature.map_err(|_| KeyError::Random)?;
        Ok(signature.as_ref().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ecdsa::{Hash, PublicKey};
    use crate::issue::public_key;

    // Made with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384`.
    const P384: &str = "-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDC5gzxNpR5vjLj7q9Qq
oApOPdVWj92danppsthraXgxwJeTE47+8QgWWTnMbO5b5eyhZANiAAQqNbJsLfss
2FZKGBpzwavROfPePDoxAN5gebqRK/13zxWugHKfD79V5/RwJVASHcbx9jSHWQeB
jNY3pT0rEwzKRiHJALw6XS4okmdv9sOxcXJqew6CRV9Vu+9w6ckmvKI=
-----END PRIVATE KEY-----
";

    #[test]
    fn a_key_reads_what_it_writes() {
        let (key, pem) = Key::generate().unwrap();
        let again = Key::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(again.public(), key.public());
    }

    #[test]
    fn keys_of_both_curves_sign() {
        let (p256, _) = Key::generate().unwrap();
        let p384 = Key::from_pem(P384.as_bytes()).unwrap();
        for (key, hash) in [(p256, Hash::Sha256), (p384, Hash::Sha384)] {
            let signature = key.sign(b"said").unwrap();
            let public = PublicKey::new(&public_key(&key).unwrap()).unwrap();
            assert!(public.verifies(hash, b"said", &signature));
            assert!(!public.verifies(hash, b"unsaid", &signature));
        }
    }

    #[test]
    fn other_pem_is_named() {
        let other = P384.replace("PRIVATE KEY", "CERTIFICATE");
        let error = Key::from_pem(other.as_bytes()).err().unwrap();
        assert!(
            error.to_string().contains("labelled \"CERTIFICATE\""),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn garbage_is_no_key(bytes: Vec<u8>, at in 0..P384.len(), byte: u8) {
            prop_assert!(Key::from_pem(&bytes).is_err());
            let mut bent = P384.as_bytes().to_vec();
            bent[at] = byte;
            let _ = Key::from_pem(&bent);
        }
    }
}
