//! What names a host's key.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use thiserror::Error;

/// What the text form begins with: the hash function, as in OpenSSH's fingerprints.
const PREFIX: &str = "SHA256:";

/// SHA-256 of the public key (DER `SubjectPublicKeyInfo`) in a peer's certificate: the same on all
/// connections of one endpoint.
///
/// Prints as `SHA256:` and 43 characters of base64, without padding, and is read from that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerKey(pub [u8; 32]);

/// A text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a key: write `{PREFIX}` and 43 characters of base64, as `hawser key` prints it"
)]
pub struct PeerKeyError(String);

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", BASE64_STANDARD_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for PeerKey {
    type Err = PeerKeyError;

    fn from_str(text: &str) -> Result<Self, PeerKeyError> {
        let hash = text.strip_prefix(PREFIX);
        let bytes = hash.and_then(|hash| BASE64_STANDARD_NO_PAD.decode(hash).ok());
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| PeerKeyError(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_written_as_openssh_writes_fingerprints() {
        let text = "SHA256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
        let key = PeerKey(std::array::from_fn(|i| i as u8));
        assert_eq!(key.to_string(), text);
        assert_eq!(text.parse(), Ok(key));
    }

    #[test]
    fn other_texts_are_refused() {
        let hash = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
        for text in [
            hash,
            &format!("SHA256:{hash}="),
            &format!("SHA256: {hash}"),
            &format!("sha256:{hash}"),
            &format!("MD5:{hash}"),
            &format!("SHA256:{}", &hash[1..]),
            &format!("SHA256:{hash}AAAA"),
            // The last character has bits that belong to no byte.
            &format!("SHA256:{}9", &hash[..42]),
            "SHA256:",
            "",
        ] {
            let error = text.parse::<PeerKey>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}` is not a key")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn every_key_is_read_back(bytes: [u8; 32]) {
            prop_assert_eq!(PeerKey(bytes).to_string().parse(), Ok(PeerKey(bytes)));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "(SHA256:)?\\PC*") {
            let _ = text.parse::<PeerKey>();
        }
    }
}
