//! Names of labs and of the folders of their ASes.

/// The name a lab has when none is given.
pub const DEFAULT_NAME: &str = "default";

/// Longest accepted name. The name is part of the path of every Unix socket of the lab, which may
/// have [`crate::place::SOCKET_PATH_MAX`] bytes in all.
const LONGEST: usize = 32;

/// A name that no lab can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name for a lab: up to {LONGEST} of a-z, A-Z, 0-9, '-', '_' and '.', beginning with a letter or digit"
)]
pub struct NameError(pub String);

/// Refuses what cannot be a folder's name, or would be hidden.
///
/// # Errors
/// [`NameError`] when no lab can be called that.
pub fn check(name: &str) -> Result<(), NameError> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let good = name.len() <= LONGEST
        && name.bytes().all(inner)
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
    if good {
        Ok(())
    } else {
        Err(NameError(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_file_names() {
        for good in ["default", "a", "Lab-2_x.y", "7a"] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        let long = "x".repeat(LONGEST + 1);
        for wrong in ["", ".", "..", ".hidden", "-x", "a/b", "a b", "ä", &long] {
            assert!(check(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
