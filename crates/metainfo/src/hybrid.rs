//! The version 2 part of a hybrid torrent (BEP 52). It must describe the same files as the version
//! 1 part, so that clients fetch the same content whichever part they use.

use super::error::MetainfoError;
use super::listed::Listed;
use super::name;
use super::tree::Leaf;

/// Checks the files `two` of a hybrid's version 2 part against its version 1 part: pieces of
/// `piece_length` bytes, and the `files` in order, padding among them. A torrent of a `single` file
/// has its name, unchanged.
///
/// # Errors
/// [`MetainfoError::Hybrid`], when it describes other content.
pub(super) fn check(
    two: &[Leaf<'_>],
    piece_length: u32,
    files: &[Listed],
    single: Option<&[u8]>,
) -> Result<(), MetainfoError> {
    if let Some(name) = single
        // A single file is its own name in the tree.
        && !(two.len() == 1 && two[0].path() == [name::sanitize_or_blank(name)])
    {
        return Err(MetainfoError::Hybrid(format!(
            "version 1 has the file {} alone, version 2 has others",
            name::printable(name)
        )));
    }
    compare(piece_length, files, single.is_none(), two)
}

/// Compares the files that have bytes, in order: their lengths, where they begin and, if
/// `with_paths`, their paths. Empty ones and links carry nothing that could differ.
fn compare(
    piece_length: u32,
    files: &[Listed],
    with_paths: bool,
    two: &[Leaf<'_>],
) -> Result<(), MetainfoError> {
    let contradiction = |why: String| Err(MetainfoError::Hybrid(why));
    let aligned = |at: u64| at.next_multiple_of(piece_length.into());
    let mut two = two.iter().filter(|file| file.length > 0);
    let (mut at, mut end) = (0u64, 0u64);
    for file in files {
        let begin = at;
        at = at.saturating_add(file.length);
        if !file.has_content() {
            continue;
        }
        let path = file.path.join("/");
        let Some(other) = two.next() else {
            return contradiction(format!("version 2 lacks the file {path}"));
        };
        if (with_paths && other.path() != file.path) || other.length != file.length {
            return contradiction(format!(
                "where version 1 has {path} of {} bytes, version 2 has {} of {} bytes",
                file.length,
                other.path().join("/"),
                other.length
            ));
        }
        // In version 2 every file begins with a piece.
        if begin != aligned(end) {
            return contradiction(format!(
                "{path} begins at byte {begin} in version 1, and at byte {} in version 2",
                aligned(end)
            ));
        }
        end = at;
    }
    if let Some(other) = two.next() {
        return contradiction(format!(
            "version 1 lacks the file {}",
            other.path().join("/")
        ));
    }
    // There may be padding after the last file.
    if at != end && at != aligned(end) {
        return contradiction(format!(
            "version 1 has {} bytes after the last file",
            at - end
        ));
    }
    Ok(())
}
