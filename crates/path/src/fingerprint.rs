//! The name of a path.

use std::fmt;
use std::str::FromStr;

use sciparse::identifier::isd_asn::IsdAsn;
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
    use sciparse::dataplane_path::view::ScionDpPathView;
    use sciparse::path::ScionPath;
    use sciparse::path::metadata::PathMetadata;
    use sciparse::path::metadata::path_interface::PathInterface;

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

    fn by_sciparse(src: IsdAsn, dst: IsdAsn, interfaces: &[Interface]) -> String {
        let interfaces = interfaces.iter().map(|interface| PathInterface {
            isd_asn: interface.isd_as,
            id: interface.id,
        });
        let metadata = PathMetadata::new_minimal(0, 1472, interfaces.collect());
        let path = ScionPath::new(src, dst, ScionDpPathView::Empty, Some(metadata), None);
        format!("{:#}", path.cp_fingerprint().unwrap())
    }

    proptest! {
        #[test]
        fn equals_sciparse(ends in prop::collection::vec((1..u64::MAX, any::<u16>()), 1..12)) {
            let interfaces: Vec<_> = ends
                .into_iter()
                .map(|(isd_as, id)| Interface { isd_as: IsdAsn(isd_as), id })
                .collect();
            // Two different ASes, so that sciparse does not take the path for a local one.
            prop_assert_eq!(
                Fingerprint::of(&interfaces).to_string(),
                by_sciparse(IsdAsn(1), IsdAsn(2), &interfaces)
            );
        }

        #[test]
        fn local_equals_sciparse(isd_as: u64) {
            let isd_as = IsdAsn(isd_as);
            prop_assert_eq!(
                Fingerprint::local(isd_as).to_string(),
                by_sciparse(isd_as, isd_as, &[])
            );
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
