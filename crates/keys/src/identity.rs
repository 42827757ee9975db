//! The identity of a host: its key pair, shown in a self-signed certificate.

use std::fmt;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, PublicKeyData};
use ring::hmac;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::peer_key::PeerKey;

/// An Ed25519 key pair. Cloning shares it.
#[derive(Clone)]
pub struct Identity(Arc<KeyPair>);

/// Why a key pair could not be made or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The system gives no random numbers.
    #[error("cannot make a key: {0}")]
    Generate(String),
    /// The text has no private key in PEM (RFC 7468) and PKCS #8 (RFC 5958).
    #[error("no private key in PKCS #8 (`-----BEGIN PRIVATE KEY-----`)")]
    None,
    /// The private key is broken, or not an Ed25519 key.
    #[error("the private key is broken, or not an Ed25519 key")]
    Broken,
}

/// A name cannot stand in a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot make a certificate for `{name}`: {reason}")]
pub struct CertificateError {
    name: String,
    reason: String,
}

impl Identity {
    /// Makes a new key pair.
    ///
    /// # Errors
    /// [`KeyError::Generate`] when the system gives no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        match KeyPair::generate_for(&PKCS_ED25519) {
            Ok(pair) => Ok(Self(Arc::new(pair))),
            Err(error) => Err(KeyError::Generate(error.to_string())),
        }
    }

    /// Reads the private key in `pem`: PKCS #8, not encrypted, as [`Identity::to_pem`] and
    /// `openssl genpkey -algorithm ed25519` write it.
    ///
    /// # Errors
    /// [`KeyError`] when there is none, or when it is broken or not an Ed25519 key.
    pub fn from_pkcs8_pem(pem: &str) -> Result<Self, KeyError> {
        let key =
            PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| match error {
                pem::Error::NoItemsFound => KeyError::None,
                _ => KeyError::Broken,
            })?;
        match KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519) {
            Ok(pair) => Ok(Self(Arc::new(pair))),
            Err(_) => Err(KeyError::Broken),
        }
    }

    /// The private key in PEM, for [`Identity::from_pkcs8_pem`].
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// The key that peers see.
    pub fn key(&self) -> PeerKey {
        PeerKey(Sha256::digest(self.0.subject_public_key_info()).into())
    }

    /// A self-signed certificate for the server name `name`, as TLS takes it.
    ///
    /// # Errors
    /// [`CertificateError`] when `name` is not ASCII.
    pub fn certificate(&self, name: &str) -> Result<CertificateDer<'static>, CertificateError> {
        let certificate = CertificateParams::new([name.to_owned()])
            .and_then(|params| params.self_signed(&*self.0));
        match certificate {
            Ok(certificate) => Ok(certificate.into()),
            Err(error) => Err(CertificateError {
                name: name.to_owned(),
                reason: error.to_string(),
            }),
        }
    }

    /// The private key, as TLS takes it.
    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.0.serialize_der()).into()
    }

    /// A secret that only holders of the private key can make, the same one each time: one for each
    /// `purpose`, none of which shows anything of another.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0.serialize_der());
        let mut secret = [0; 32];
        secret.copy_from_slice(hmac::sign(&key, purpose.as_bytes()).as_ref());
        secret
    }
}

/// Shows the public key only.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.key())
    }
}

/// Two are equal when peers see the same key.
impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Identity {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by `openssl genpkey -algorithm ed25519`.
    const OPENSSL: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIE0nQ7JCMZcJQK7V894yAqJwhjQ6T/CuIMdWTvRFzxNo
-----END PRIVATE KEY-----
";

    #[test]
    fn a_key_is_written_and_read_back() {
        let made = Identity::generate().unwrap();
        let read = Identity::from_pkcs8_pem(&made.to_pem()).unwrap();
        assert_eq!(read.key(), made.key());
        assert_ne!(Identity::generate().unwrap().key(), made.key());
    }

    #[test]
    fn derived_secrets_are_those_of_one_purpose_and_key() {
        let identity = Identity::generate().unwrap();
        let again = Identity::from_pkcs8_pem(&identity.to_pem()).unwrap();
        assert_eq!(again.derive("a"), identity.derive("a"));
        assert_ne!(identity.derive("b"), identity.derive("a"));
        let other = Identity::generate().unwrap();
        assert_ne!(other.derive("a"), identity.derive("a"));
    }

    #[test]
    fn the_key_is_the_hash_of_what_certificates_show() {
        let identity = Identity::from_pkcs8_pem(OPENSSL).unwrap();
        // openssl pkey -pubout -outform DER | openssl dgst -sha256 -binary | base64
        let key = "SHA256:TZfGJ4fpuKIfCrhvqrq+bPiB8gchwmDIDgNvEcSl91M";
        assert_eq!(identity.key().to_string(), key);
        let certificate = identity.certificate("hawser").unwrap();
        let shown = identity.0.subject_public_key_info();
        assert!(certificate.windows(shown.len()).any(|part| part == shown));
    }

    #[test]
    fn a_name_that_is_not_ascii_has_no_certificate() {
        let error = Identity::generate().unwrap().certificate("é").unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("cannot make a certificate for `é`: "),
            "{error}"
        );
    }

    #[test]
    fn other_texts_are_refused_in_one_line() {
        let pem = Identity::generate().unwrap().to_pem();
        let p256 = KeyPair::generate().unwrap().serialize_pem();
        let none = KeyError::None;
        let broken = KeyError::Broken;
        for (text, error) in [
            (String::new(), &none),
            (pem.replace("PRIVATE", "PUBLIC"), &none),
            (pem.replace("PRIVATE", "OPENSSH PRIVATE"), &none),
            (pem.replace("PRIVATE", "ENCRYPTED PRIVATE"), &none),
            (pem.replace("-----END", ""), &broken),
            (pem.replacen('M', "?", 1), &broken),
            (pem.replacen('M', "A", 1), &broken),
            (p256, &broken),
        ] {
            assert_eq!(
                Identity::from_pkcs8_pem(&text).as_ref(),
                Err(error),
                "{text}"
            );
            assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let identity = Identity::generate().unwrap();
        let printed = format!("{identity:?}");
        assert_eq!(printed, format!("Identity({})", identity.key()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "(-----BEGIN PRIVATE KEY-----\\n)?[A-Za-z0-9+/=\\n]{0,100}(-----END PRIVATE KEY-----)?") {
            let _ = Identity::from_pkcs8_pem(&text);
        }

        #[test]
        fn a_damaged_key_is_read_without_panic(at in 0usize..150, byte in 0u8..128) {
            let mut pem = OPENSSL.as_bytes().to_vec();
            let at = at % pem.len();
            pem[at] = byte;
            let _ = Identity::from_pkcs8_pem(&String::from_utf8(pem).unwrap());
        }
    }
}
