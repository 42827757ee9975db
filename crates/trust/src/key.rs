//! Private keys.

use der::pem::{self, LineEnding};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
    },
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
    pub fn generate() -> Result<(Key, String), KeyError> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            .map_err(|_| KeyError::Random)?;
        let text = pem::encode_string(LABEL, LineEnding::LF, pkcs8.as_ref())
            .map_err(|e| KeyError::Pem(e.to_string()))?;
        Ok((Key::from_pkcs8(pkcs8.as_ref())?, text))
    }

    /// Reads PKCS #8 in PEM.
    pub fn from_pem(text: &[u8]) -> Result<Key, KeyError> {
        let (label, pkcs8) =
            pem::decode_vec(text.trim_ascii_end()).map_err(|e| KeyError::Pem(e.to_string()))?;
        if label != LABEL {
            return Err(KeyError::Pem(format!("it is labelled \"{label}\"")));
        }
        Key::from_pkcs8(&pkcs8)
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Result<Key, KeyError> {
        let random = SystemRandom::new();
        for (algorithm, signs) in [
            (&ECDSA_P256_SHA256_ASN1_SIGNING, Signs::P256),
            (&ECDSA_P384_SHA384_ASN1_SIGNING, Signs::P384),
        ] {
            if let Ok(pair) = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &random) {
                return Ok(Key {
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
