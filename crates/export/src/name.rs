//! Names that other programs accept: DNS labels.

use hawser_topology::IsdAsn;
use sha2::{Digest, Sha256};

use crate::error::ExportError;

/// Longest DNS label in bytes (RFC 1035, section 2.3.4).
pub(crate) const MAX_LABEL: usize = 63;
/// Longest name of an export: what is made of it has further parts.
const MAX_NAME: usize = 40;
/// Hexadecimal digits of the hash in a shortened label.
const HASH_DIGITS: usize = 8;

/// Whether a text is a DNS label (RFC 1123, section 2.1): at most 63 of a-z, 0-9 and `-`, with a letter
/// or digit at both ends.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let ends = !text.starts_with('-') && !text.ends_with('-');
    (1..=MAX_LABEL).contains(&text.len()) && ends && text.bytes().all(inner)
}

/// A DNS label made of a text that begins with a letter. Other characters than a label has become `-`;
/// what is longer than a label is shortened. In both cases it ends in a hash of the text, so that
/// different texts have different labels.
pub(crate) fn label(text: &str) -> String {
    if is_label(text) {
        return text.to_owned();
    }
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    let hash = hex(&Sha256::digest(text.as_bytes()));
    let hash = hash.get(..HASH_DIGITS).unwrap_or(&hash);
    let kept: String = text.chars().map(plain).collect();
    let kept = kept.get(..MAX_LABEL - HASH_DIGITS - 1).unwrap_or(&kept);
    format!("{}-{hash}", kept.trim_end_matches('-'))
}

/// The name of an AS: `as1-ff00-0-110`. Colons are only in numbers of three groups, so different ASes
/// have different names.
pub(crate) fn of_as(isd_as: IsdAsn) -> String {
    label(&format!("as{isd_as}").replace(':', "-"))
}

/// Checks the name of an export, which becomes that of a namespace or of a lab.
pub(crate) fn check_name(name: &str) -> Result<(), ExportError> {
    match is_label(name) && name.len() <= MAX_NAME {
        true => Ok(()),
        false => Err(ExportError::Name {
            name: name.to_owned(),
            most: MAX_NAME,
        }),
    }
}

/// Checks the name of an image.
pub(crate) fn check_image(image: &str) -> Result<(), ExportError> {
    match hawser_image::is_image_name(image) {
        true => Ok(()),
        false => Err(ExportError::Image(image.to_owned())),
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_ases_are_labels() {
        let name = |text: &str| of_as(text.parse().unwrap());
        assert_eq!(name("1-ff00:0:110"), "as1-ff00-0-110");
        assert_eq!(name("65535-ffff:ffff:ffff"), "as65535-ffff-ffff-ffff");
        assert_eq!(name("1-64512"), "as1-64512");
    }

    proptest! {
        #[test]
        fn labels_are_valid_and_different(
            texts in prop::collection::btree_set("a([a-z0-9A-Z._:-]|ä){0,80}", 2..8)
        ) {
            let labels: BTreeSet<String> = texts.iter().map(|text| label(text)).collect();
            for label in &labels {
                prop_assert!(is_label(label), "{label}");
            }
            prop_assert_eq!(labels.len(), texts.len());
        }

    }

    #[test]
    fn names_of_exports_are_labels() {
        assert!(check_name("hawser").is_ok() && check_name("net-1").is_ok());
        let long = "x".repeat(MAX_NAME + 1);
        for wrong in ["", "-x", "x-", "X", "a.b", "a_b", "ä", &long] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
