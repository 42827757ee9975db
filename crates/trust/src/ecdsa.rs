//! Checking ECDSA signatures.

use der::asn1::ObjectIdentifier;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use ring::{digest, signature};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::oid;

/// A hash that signatures are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// By the identifier of ECDSA with it.
    pub fn of_signature(algorithm: &AlgorithmIdentifierOwned) -> Option<Self> {
        match algorithm.oid {
            oid::ECDSA_SHA256 => Some(Self::Sha256),
            oid::ECDSA_SHA384 => Some(Self::Sha384),
            oid::ECDSA_SHA512 => Some(Self::Sha512),
            _ => None,
        }
    }

    /// By its own identifier.
    pub fn of_digest(algorithm: &AlgorithmIdentifierOwned) -> Option<Self> {
        match algorithm.oid {
            oid::SHA256 => Some(Self::Sha256),
            oid::SHA384 => Some(Self::Sha384),
            oid::SHA512 => Some(Self::Sha512),
            _ => None,
        }
    }

    /// The digest of some bytes.
    pub fn digest(self, bytes: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    P521,
}

/// A public key on one of the curves SCION allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    curve: Curve,
    point: Vec<u8>,
}

impl PublicKey {
    /// None when it is of another kind.
    pub fn new(info: &SubjectPublicKeyInfoOwned) -> Option<Self> {
        if info.algorithm.oid != oid::EC_PUBLIC_KEY {
            return None;
        }
        let curve: ObjectIdentifier = info.algorithm.parameters.as_ref()?.decode_as().ok()?;
        Some(Self {
            curve: match curve {
                oid::P256 => Curve::P256,
                oid::P384 => Curve::P384,
                oid::P521 => Curve::P521,
                _ => return None,
            },
            point: info.subject_public_key.as_bytes()?.to_vec(),
        })
    }

    /// The point (SEC 1, section 2.3.3).
    pub fn point(&self) -> &[u8] {
        &self.point
    }

    /// Whether `signature` (DER) is this key's of `message`.
    pub fn verifies(&self, hash: Hash, message: &[u8], signature: &[u8]) -> bool {
        match (self.curve, hash) {
            // ring is five times faster, but knows few combinations. These are what nearly all
            // certificates and messages use.
            (Curve::P256, Hash::Sha256) => {
                ring_verifies(&signature::ECDSA_P256_SHA256_ASN1, self, message, signature)
            }
            (Curve::P384, Hash::Sha384) => {
                ring_verifies(&signature::ECDSA_P384_SHA384_ASN1, self, message, signature)
            }
            _ => self.verifies_digest(hash.digest(message).as_ref(), signature),
        }
    }

    fn verifies_digest(&self, digest: &[u8], signature: &[u8]) -> bool {
        macro_rules! verifies {
            ($curve:ident) => {
                match (
                    $curve::ecdsa::VerifyingKey::from_sec1_bytes(&self.point),
                    $curve::ecdsa::Signature::from_der(signature),
                ) {
                    (Ok(key), Ok(signature)) => key.verify_prehash(digest, &signature).is_ok(),
                    _ => false,
                }
            };
        }
        match self.curve {
            Curve::P256 => verifies!(p256),
            Curve::P384 => verifies!(p384),
            Curve::P521 => verifies!(p521),
        }
    }
}

fn ring_verifies(
    algorithm: &'static dyn signature::VerificationAlgorithm,
    key: &PublicKey,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let key = signature::UnparsedPublicKey::new(algorithm, &key.point);
    key.verify(message, signature).is_ok()
}

#[cfg(test)]
mod tests {
    use p256::ecdsa::signature::hazmat::PrehashSigner;

    use super::*;

    const MESSAGE: &[u8] = b"what is signed";
    const SECRET: [u8; 66] = {
        let mut secret = [7; 66];
        // Below the order of P-521.
        secret[0] = 0;
        secret
    };

    macro_rules! signs_and_verifies {
        ($curve:ident, $name:ident, $size:expr, $hashes:expr) => {
            for hash in $hashes {
                let key = $curve::ecdsa::SigningKey::from_slice(&SECRET[66 - $size..]).unwrap();
                let public = $curve::ecdsa::VerifyingKey::from(&key);
                let public = PublicKey {
                    curve: Curve::$name,
                    point: public.to_encoded_point(false).as_bytes().to_vec(),
                };
                let signature: $curve::ecdsa::Signature =
                    key.sign_prehash(hash.digest(MESSAGE).as_ref()).unwrap();
                let signature = signature.to_der();
                let signature = signature.as_bytes();
                assert!(public.verifies(hash, MESSAGE, signature), "{hash:?}");
                assert!(!public.verifies(hash, b"another", signature), "{hash:?}");
                assert!(!public.verifies(hash, MESSAGE, &signature[1..]), "{hash:?}");
                let mut other = public.clone();
                other.point[9] ^= 1;
                assert!(!other.verifies(hash, MESSAGE, signature), "{hash:?}");
            }
        };
    }

    #[test]
    fn all_curves_verify_with_all_their_hashes() {
        let all = [Hash::Sha256, Hash::Sha384, Hash::Sha512];
        signs_and_verifies!(p256, P256, 32, all);
        signs_and_verifies!(p384, P384, 48, all);
        // A hash shorter than half of the curve's size is refused.
        signs_and_verifies!(p521, P521, 66, [Hash::Sha384, Hash::Sha512]);
    }
}
