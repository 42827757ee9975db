//! ECDSA signatures: hashes, curves and verification.

use der::asn1::ObjectIdentifier;
use hawser_proto::crypto::SignatureAlgorithm;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use ring::{digest, signature};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use crate::oid;

/// A hash function for signatures.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hash {
    /// The identifier of the hash function.
    pub digest: ObjectIdentifier,
    /// The identifier of ECDSA with this hash function.
    pub ecdsa: ObjectIdentifier,
    /// ECDSA with this hash function, in signed messages.
    pub message: SignatureAlgorithm,
    algorithm: &'static digest::Algorithm,
}

pub(crate) static SHA256: Hash = Hash {
    digest: oid::ID_SHA_256,
    ecdsa: oid::ECDSA_WITH_SHA_256,
    message: SignatureAlgorithm::EcdsaWithSha256,
    algorithm: &digest::SHA256,
};

pub(crate) static SHA384: Hash = Hash {
    digest: oid::ID_SHA_384,
    ecdsa: oid::ECDSA_WITH_SHA_384,
    message: SignatureAlgorithm::EcdsaWithSha384,
    algorithm: &digest::SHA384,
};

static SHA512: Hash = Hash {
    digest: oid::ID_SHA_512,
    ecdsa: oid::ECDSA_WITH_SHA_512,
    message: SignatureAlgorithm::EcdsaWithSha512,
    algorithm: &digest::SHA512,
};

impl Hash {
    /// The first of the allowed hash functions for which `is` returns `true`.
    pub fn find(is: impl Fn(&Self) -> bool) -> Option<&'static Self> {
        [&SHA256, &SHA384, &SHA512]
            .into_iter()
            .find(|hash| is(hash))
    }

    /// The digest of some bytes.
    pub fn digest(&self, bytes: &[u8]) -> digest::Digest {
        digest::digest(self.algorithm, bytes)
    }
}

/// A public key on one of the curves that SCION allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    curve: ObjectIdentifier,
    /// SEC 1, section 2.3.3.
    pub point: Vec<u8>,
}

impl PublicKey {
    /// Reads a public key; `None` if it is of another type.
    pub fn new(info: &SubjectPublicKeyInfoOwned) -> Option<Self> {
        if info.algorithm.oid != oid::ID_EC_PUBLIC_KEY {
            return None;
        }
        let curve = info.algorithm.parameters.as_ref()?.decode_as().ok()?;
        let allowed = [oid::SECP_256_R_1, oid::SECP_384_R_1, oid::SECP_521_R_1];
        allowed.contains(&curve).then_some(Self {
            curve,
            point: info.subject_public_key.as_bytes()?.to_vec(),
        })
    }

    /// Whether `signature` (DER) is a signature of `message` by this key.
    pub fn verifies(&self, hash: &Hash, message: &[u8], signature: &[u8]) -> bool {
        // ring is five times faster, but supports few combinations. Nearly all certificates and
        // messages use these.
        let algorithm = match (self.curve, hash.digest) {
            (oid::SECP_256_R_1, oid::ID_SHA_256) => &signature::ECDSA_P256_SHA256_ASN1,
            (oid::SECP_384_R_1, oid::ID_SHA_384) => &signature::ECDSA_P384_SHA384_ASN1,
            _ => return self.verifies_digest(hash.digest(message).as_ref(), signature),
        };
        let key = signature::UnparsedPublicKey::new(algorithm, &self.point);
        key.verify(message, signature).is_ok()
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
            oid::SECP_256_R_1 => verifies!(p256),
            oid::SECP_384_R_1 => verifies!(p384),
            _ => verifies!(p521),
        }
    }
}

#[cfg(test)]
mod tests {
    use p256::ecdsa::signature::hazmat::PrehashSigner;

    use super::*;

    const MESSAGE: &[u8] = b"the signed message";
    const SECRET: [u8; 66] = {
        let mut secret = [7; 66];
        // Makes the key smaller than the order of P-521.
        secret[0] = 0;
        secret
    };

    macro_rules! signs_and_verifies {
        ($curve:ident, $name:ident, $size:expr, $hashes:expr) => {
            for hash in $hashes {
                let key = $curve::ecdsa::SigningKey::from_slice(&SECRET[66 - $size..]).unwrap();
                let public = $curve::ecdsa::VerifyingKey::from(&key);
                let public = PublicKey {
                    curve: oid::$name,
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
        let all = [&SHA256, &SHA384, &SHA512];
        signs_and_verifies!(p256, SECP_256_R_1, 32, all);
        signs_and_verifies!(p384, SECP_384_R_1, 48, all);
        // A hash shorter than half of the curve's size is refused.
        signs_and_verifies!(p521, SECP_521_R_1, 66, [&SHA384, &SHA512]);
    }
}
