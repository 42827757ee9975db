//! Names of files in a bundle.

use std::path::{Component, Path};

/// Longest name in bytes: what a tar header holds without an extension (POSIX ustar).
const MAX_NAME_LENGTH: usize = 100;
/// Most folders above a file.
const DEEPEST: usize = 4;

/// A name that a file of a bundle must not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name for a file of an AS: names are relative, without \"..\", of letters, digits, \".\", \"_\" and \"-\", and have at most 100 bytes"
)]
pub struct NameError(pub String);

/// The name in its normal form, without `./` in front.
///
/// Only letters, digits, `.`, `_` and `-` are accepted, so a name is the same on every file system
/// and cannot lead out of the folder. Parts do not begin with a dot: such names are left to
/// temporary files.
pub(crate) fn check(name: &Path) -> Result<String, NameError> {
    let shown = || {
        NameError(
            name.to_string_lossy()
                .chars()
                .take(2 * MAX_NAME_LENGTH)
                .collect(),
        )
    };
    let mut parts = Vec::new();
    for part in name.components() {
        match part {
            Component::CurDir if parts.is_empty() => {}
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(shown)?),
            _ => return Err(shown()),
        }
    }
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    let good = |part: &&str| !part.starts_with('.') && part.bytes().all(plain);
    let checked = parts.join("/");
    let fits = (1..=MAX_NAME_LENGTH).contains(&checked.len()) && parts.len() <= DEEPEST + 1;
    match fits && parts.iter().all(good) {
        true => Ok(checked),
        false => Err(shown()),
    }
}

/// Whether a file of a bundle is readable by its owner only: keys, and the manifest, which has a
/// token.
pub fn is_secret(name: &str) -> bool {
    name == super::MANIFEST || name.starts_with("keys/") || name.ends_with(".key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_relative_names_are_accepted() {
        let good = |name: &str| check(Path::new(name)).unwrap();
        for name in [
            "topology.json",
            "crypto/as/ISD1-ASff00_0_110.pem",
            "a/b/c/d/e",
        ] {
            assert_eq!(good(name), name);
        }
        assert_eq!(good("./certs/ISD1-B1-S1.trc"), "certs/ISD1-B1-S1.trc");
        assert_eq!(good("./././x"), "x");
        assert_eq!(good("a//b/"), "a/b");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(101);
        let hidden = [
            ".",
            "",
            ".x",
            "a/.x",
            "a/b/c/d/e/f",
            "a\\b",
            "a b",
            "ä",
            "a\n",
            "a\0",
        ];
        let outside = [
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "a/..",
            "./../x",
            "C:x",
        ];
        for name in hidden.iter().chain(&outside).chain(&[long.as_str()]) {
            assert!(check(Path::new(name)).is_err(), "{name:?}");
        }
    }

    #[test]
    fn keys_and_tokens_are_secret() {
        for name in ["keys/master0.key", "crypto/as/cp-as.key", "hawser.json"] {
            assert!(is_secret(name), "{name}");
        }
        assert!(!is_secret("topology.json"));
    }
}
