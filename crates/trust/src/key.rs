//! Private keys.

use der::asn1::ObjectIdentifier;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
};

use crate::ecdsa::{Hash, SHA256, SHA384};
use crate::error::{BoxError, ParseError, SignError};
use crate::{oid, pem};

/// PEM label of PKCS #8 (RFC 7468, section 10).
const LABEL: &str = "PRIVATE KEY";

/// A random master key of an AS, for the file `keys/master0.key` or `keys/master1.key`.
///
/// # Errors
/// When the system has no random bytes.
pub fn master_key() -> Result<[u8; 16], SignError> {
    let mut key = [0; 16];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| SignError::Random)?;
    Ok(key)
}

/// A private key on P-256 or P-384.
pub(crate) struct Key {
    pair: EcdsaKeyPair,
    pub curve: ObjectIdentifier,
    /// The hash function of its signatures.
    pub hash: &'static Hash,
    random: SystemRandom,
}

impl Key {
    /// Creates a key on P-256; returns it also as PKCS #8 in PEM.
    pub fn generate() -> Result<(Self, String), SignError> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            .map_err(|_| SignError::Random)?;
        let key = Self::from_pkcs8(pkcs8.as_ref());
        let key = key.map_err(|reason| SignError::Encode(reason.to_string()))?;
        Ok((key, pem::encode(LABEL, pkcs8.as_ref())?))
    }

    /// Reads PKCS #8 in PEM.
    pub fn from_pem(text: &[u8]) -> Result<Self, ParseError> {
        let read = || match pem::blocks(text)?.as_slice() {
            [(label, pkcs8)] if label == LABEL => Self::from_pkcs8(pkcs8),
            [(label, _)] => Err(format!("it is labelled \"{label}\", not \"{LABEL}\"").into()),
            _ => Err("it does not have one PEM block".into()),
        };
        read().map_err(ParseError::not("a private key in PEM"))
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, BoxError> {
        let random = SystemRandom::new();
        for (algorithm, curve, hash) in [
            (&ECDSA_P256_SHA256_ASN1_SIGNING, oid::SECP_256_R_1, &SHA256),
            (&ECDSA_P384_SHA384_ASN1_SIGNING, oid::SECP_384_R_1, &SHA384),
        ] {
            if let Ok(pair) = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &random) {
                return Ok(Self {
                    pair,
                    curve,
                    hash,
                    random,
                });
            }
        }
        Err(
            "it is not PKCS #8 on P-256 or P-384 with its public key: make one with \
             `scion-pki key private`"
                .into(),
        )
    }

    /// The public key: an uncompressed point (SEC 1, section 2.3.3).
    pub fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The signature of `message` in DER.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let signature = self.pair.sign(&self.random, message);
        let signature = signature.map_err(|_| SignError::Random)?;
        Ok(signature.as_ref().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ecdsa::PublicKey;
    use crate::issue::public_key;

    // Created with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384`.
    const P384: &str = "-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDC5gzxNpR5vjLj7q9Qq
oApOPdVWj92danppsthraXgxwJeTE47+8QgWWTnMbO5b5eyhZANiAAQqNbJsLfss
2FZKGBpzwavROfPePDoxAN5gebqRK/13zxWugHKfD79V5/RwJVASHcbx9jSHWQeB
jNY3pT0rEwzKRiHJALw6XS4okmdv9sOxcXJqew6CRV9Vu+9w6ckmvKI=
-----END PRIVATE KEY-----
";

    #[test]
    fn written_keys_are_read_back() {
        let (key, pem) = Key::generate().unwrap();
        let again = Key::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(again.public(), key.public());
    }

    #[test]
    fn keys_of_both_curves_sign() {
        let (p256, _) = Key::generate().unwrap();
        let p384 = Key::from_pem(P384.as_bytes()).unwrap();
        for (key, hash) in [(p256, &SHA256), (p384, &SHA384)] {
            let signature = key.sign(b"message").unwrap();
            let public = PublicKey::new(&public_key(&key).unwrap()).unwrap();
            assert!(public.verifies(hash, b"message", &signature));
            assert!(!public.verifies(hash, b"another", &signature));
        }
    }

    #[test]
    fn errors_name_other_pem_labels() {
        let other = P384.replace("PRIVATE KEY", "CERTIFICATE");
        let error = Key::from_pem(other.as_bytes()).err().unwrap();
        assert!(
            error.to_string().contains("labelled \"CERTIFICATE\""),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn garbage_is_refused(bytes: Vec<u8>, at in 0..P384.len(), byte: u8) {
            prop_assert!(Key::from_pem(&bytes).is_err());
            let mut bent = P384.as_bytes().to_vec();
            bent[at] = byte;
            let _ = Key::from_pem(&bent);
        }
    }
}
