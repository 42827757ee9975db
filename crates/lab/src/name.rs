//! Names of labs and of the folders of their ASes.

/// The default name of a lab.
pub const DEFAULT_NAME: &str = "default";

/// Maximum length of a name in bytes. The name is part of the path of every Unix socket of the lab,
/// which has at most [`crate::place::SOCKET_PATH_MAX`] bytes.
const MAX_NAME_LENGTH: usize = 32;

/// The error that a text is not a valid name of a lab.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name for a lab: write up to {MAX_NAME_LENGTH} of a-z, A-Z, 0-9, '-', '_' and '.', beginning with a letter or digit"
)]
pub struct NameError(pub String);

/// Checks the name of a lab, which must be valid as the name of a folder, and not hidden.
///
/// # Errors
/// [`NameError`] when the name is not valid.
pub fn check(name: &str) -> Result<(), NameError> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && name.len() <= MAX_NAME_LENGTH && name.bytes().all(inner) {
        true => Ok(()),
        false => Err(NameError(name.to_owned())),
    }
}

/// Checks the name of a host, which is a label of DNS (RFC 1123, section 2.1) in lower case, and no number:
/// that would be a process.
pub(crate) fn check_host(name: &str) -> Result<(), String> {
    let is_label = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    match begins && name.len() <= MAX_NAME_LENGTH && name.bytes().all(is_label) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is not a name for a host: write up to {MAX_NAME_LENGTH} of a-z, 0-9 and '-', beginning \
             with a letter"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_labels() {
        for good in ["a", "host2", "web-1"] {
            assert_eq!(check_host(good), Ok(()), "{good:?}");
        }
        let long = "x".repeat(MAX_NAME_LENGTH + 1);
        for wrong in ["", "1", "12", "-a", "A", "a.b", "a/b", "ä", &long] {
            assert!(check_host(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn names_are_plain_file_names() {
        for good in ["default", "a", "Lab-2_x.y", "7a"] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        let long = "x".repeat(MAX_NAME_LENGTH + 1);
        for wrong in ["", ".", "..", ".hidden", "-x", "a/b", "a b", "ä", &long] {
            assert!(check(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
