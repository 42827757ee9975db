//! The name of a file while it is unfinished.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::content::manifest::PART_SUFFIX;

/// Longest name of a file (`NAME_MAX`).
const MAX_NAME: usize = 255;

/// The name of a file while it is unfinished: `.NAME.hawser-part`.
pub(super) fn part_name(name: &OsStr) -> OsString {
    let name = name.as_bytes();
    let mut part = vec![b'.'];
    match name.len() + PART_SUFFIX.len() < MAX_NAME {
        true => part.extend(name),
        // Too long for a suffix.
        false => part.extend(blake3::hash(name).to_hex().as_bytes()),
    }
    part.extend(PART_SUFFIX);
    OsString::from_vec(part)
}
