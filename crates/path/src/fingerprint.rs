//! The name of a path.

use std::fmt;
use std::str::FromStr;

use hawser_address::IsdAsn;
use sha2::{Digest, Sha256};

use crate::Interface;
use crate::text::serde_as_text;

/// The name of a path: SHA-256 over its interfaces, each as ISD-AS and interface number, both as
/// 64-bit big-endian integers.
///
/// Equal to scionproto's `snet.Fingerprint`, and to `sciparse`'s control-plane `PathFingerprint`: a
/// path keeps its name when it is refreshed, and when MTU, latency or next hop change. Printed as
/// 64 lower-case hex digits; serde uses that string too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a path over these interfaces, in the order in which it crosses them.
    pub fn of(interfaces: &[Interface]) -> Self {
        let mut hash = Sha256::new();
        for interface in interfaces {
            hash.update(interface.isd_as.to_be_bytes());
            hash.update(u64::from(interface.id).to_be_bytes());
        }
        Self(hash.finalize().into())
    }

    /// The fingerprint of the empty path inside one AS: SHA-256 over its ISD-AS, as `sciparse` has
    /// it (scionproto gives such a path no fingerprint).
    pub fn local(isd_as: IsdAsn) -> Self {
        Self(Sha256::digest(isd_as.to_be_bytes()).into())
    }

    /// The 32 bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 8 hex digits, for people.
    pub fn short(&self) -> String {
        let mut digits = self.to_string();
        digits.truncate(8);
        digits
    }

    /// Whether `prefix` is one or more hex digits that this fingerprint begins with.
    pub fn matches_prefix(&self, prefix: &str) -> bool {
        !prefix.is_empty() && self.to_string().starts_with(&prefix.to_ascii_lowercase())
    }
}

impl From<[u8; 32]> for Fingerprint {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The error of parsing a [`Fingerprint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a path fingerprint: it has 64 hex digits, as `hawser paths` prints them")]
pub struct FingerprintParseError(String);

impl FromStr for Fingerprint {
    type Err = FingerprintParseError;

    /// Reads all 64 digits. For the first few of them see [`Fingerprint::matches_prefix`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || FingerprintParseError(text.to_owned());
        if text.len() != 64 {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or_else(bad);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Ok(Self(bytes))
    }
}

serde_as_text!(Fingerprint);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interfaces(text: &str) -> Vec<Interface> {
        text.split(' ').map(|one| one.parse().unwrap()).collect()
    }

    #[test]
    fn is_the_hash_of_64_bit_pairs() {
        // printf '\x00\x01\xff\x00\x00\x00\x01\x11\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\xff\x00\x00\x00\x01\x10\x00\x00\x00\x00\x00\x00\x00\x02' | sha256sum
        let of = Fingerprint::of(&interfaces("1-ff00:0:111#1 1-ff00:0:110#2"));
        assert_eq!(
            of.to_string(),
            "625eaec88d384e452d581f602824daf698c1822038388edee6694e44e1cd68af"
        );
        assert_eq!(of.short(), of.to_string()[..8]);
    }

    #[test]
    fn prefixes() {
        let one = Fingerprint::of(&interfaces("1-ff00:0:111#1 1-ff00:0:110#2"));
        let text = one.to_string();
        for length in 1..=64 {
            assert!(one.matches_prefix(&text[..length]));
            assert!(one.matches_prefix(&text[..length].to_uppercase()));
        }
        assert!(!one.matches_prefix(""));
        assert!(!one.matches_prefix(&format!("{text}0")));
        assert!(!one.matches_prefix(&text[1..9]));
        assert!(!one.matches_prefix("zz"));
    }

    #[test]
    fn rejects_invalid_fingerprints() {
        for text in [
            "",
            "1f3a",
            &"g".repeat(64),
            &"0".repeat(63),
            &"é".repeat(32),
        ] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }

    #[test]
    fn equals_recorded_fingerprints() {
        // Of `sciparse` 0.8.6.
        for (path, recorded) in [
            (
                "1-ff00:0:110#1 1-ff00:0:111#41",
                "2907f9f7d09cd1b33d0508f09172ed6342831761ecd30207c94dfaeb37ce7ed8",
            ),
            (
                "64-559#7 64-2:0:9#12 64-2:0:9#3 64-2:0:2b#65535",
                "cc44d3633f3b7a8360d6f675de66ca547d928c61f5a79bf0ab352a0f3b1202d0",
            ),
            (
                "1-1#0 2-4294967295#1",
                "14dbe5fc2b579773edfc5da8a27794f7f8ef656c181b8eb760ccb72cc51774ad",
            ),
            (
                "1-ff00:0:131#479 1-ff00:0:111#105 1-ff00:0:111#104 1-ff00:0:130#111 1-ff00:0:130#105 2-ff00:0:220#501",
                "a8bd349adddc23eb47dae3bec467370f4d2be3ef8c0a851ee18a8d9812076db4",
            ),
        ] {
            assert_eq!(Fingerprint::of(&interfaces(path)).to_string(), recorded);
        }
        for (isd_as, recorded) in [
            (
                "1-ff00:0:110",
                "c0d309ae27b164d0e20cd48871445f7c096797d5f6e01e82431bd69dce9d411f",
            ),
            (
                "64-559",
                "234812c9f45b8e593ef09c93e792d0c17bcb03490b79db2404355a94c53446ff",
            ),
            (
                "0-0",
                "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc",
            ),
        ] {
            let local = Fingerprint::local(isd_as.parse().unwrap());
            assert_eq!(local.to_string(), recorded);
        }
    }

    proptest! {
        #[test]
        fn is_the_hash_of_all_ends(ends in prop::collection::vec((any::<u64>(), any::<u16>()), 0..12)) {
            let mut bytes = Vec::new();
            let mut interfaces = Vec::new();
            for (isd_as, id) in ends {
                bytes.extend([isd_as, id.into()].map(u64::to_be_bytes).concat());
                interfaces.push(Interface { isd_as: IsdAsn(isd_as), id });
            }
            let hash: [u8; 32] = Sha256::digest(&bytes).into();
            prop_assert_eq!(*Fingerprint::of(&interfaces).as_bytes(), hash);
        }

        #[test]
        fn local_is_the_hash_of_the_as(isd_as: u64) {
            let hash: [u8; 32] = Sha256::digest(isd_as.to_be_bytes()).into();
            prop_assert_eq!(*Fingerprint::local(IsdAsn(isd_as)).as_bytes(), hash);
        }

        #[test]
        fn reads_what_it_prints(bytes: [u8; 32]) {
            let fingerprint = Fingerprint::from(bytes);
            prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            let json = serde_json::to_string(&fingerprint).unwrap();
            prop_assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), fingerprint);
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "[0-9a-fA-Fg]{60,66}|\\PC{0,70}") {
            if let Ok(fingerprint) = text.parse::<Fingerprint>() {
                prop_assert_eq!(fingerprint.to_string(), text.to_lowercase());
                prop_assert!(fingerprint.matches_prefix(&text));
            }
        }
    }
}
