//! The version 2 part of a hybrid torrent (BEP 52). It must describe the same files as the version
//! 1 part, so that clients fetch the same content whichever part they use.

use hawser_bencode::{self as bencode, Dict};

use super::error::MetainfoError;
use super::listed::{self, Listed};
use super::name::{self, MAX_PATH_DEPTH};

/// Bytes of a SHA-256 hash.
const ROOT_BYTES: usize = 32;

/// Smallest piece length of version 2, in bytes.
const MIN_PIECE_LENGTH: u32 = 16 << 10;

/// A file of version 2.
struct Leaf {
    /// From the torrent's folder on.
    path: Vec<String>,
    length: u64,
}

/// Checks a hybrid's version 2 part, `info`, against its version 1 part: pieces of
/// `piece_length` bytes, and the `files` in order, padding among them. A torrent of a `single` file
/// has its name, unchanged.
///
/// # Errors
/// [`MetainfoError::Hybrid`], when it is malformed or describes other content.
pub(super) fn check(
    info: &Dict<'_>,
    piece_length: u32,
    files: &[Listed],
    single: Option<&[u8]>,
) -> Result<(), MetainfoError> {
    // BEP 52 has other forms than the canonical one refused.
    bencode::parse(info.raw).map_err(|error| MetainfoError::Hybrid(error.to_string()))?;
    if !piece_length.is_power_of_two() || piece_length < MIN_PIECE_LENGTH {
        let why = format!("version 2 has no piece length {piece_length}");
        return Err(MetainfoError::Hybrid(why));
    }
    let tree = info.dict("file tree");
    let tree = tree.ok_or(MetainfoError::field("info.file tree", "a dictionary"))?;
    let mut two = Vec::new();
    walk(tree, &mut Vec::new(), &mut two)?;
    if let Some(name) = single
        // A single file is its own name in the tree.
        && !(two.len() == 1 && two[0].path == [name::sanitize_or_blank(name)])
    {
        return Err(MetainfoError::Hybrid(format!(
            "version 1 has the file {} alone, version 2 has others",
            name::printable(name)
        )));
    }
    compare(piece_length, files, single.is_none(), &two)
}

/// Compares the files that have bytes, in order: their lengths, where they begin and, if
/// `with_paths`, their paths. Empty ones and links carry nothing that could differ.
fn compare(
    piece_length: u32,
    files: &[Listed],
    with_paths: bool,
    two: &[Leaf],
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
        if (with_paths && other.path != file.path) || other.length != file.length {
            return contradiction(format!(
                "where version 1 has {path} of {} bytes, version 2 has {} of {} bytes",
                file.length,
                other.path.join("/"),
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
        return contradiction(format!("version 1 lacks the file {}", other.path.join("/")));
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

/// Gathers the files of a `file tree`, in its order.
fn walk(
    folder: &Dict<'_>,
    path: &mut Vec<String>,
    files: &mut Vec<Leaf>,
) -> Result<(), MetainfoError> {
    let malformed = |why: String| Err(MetainfoError::Hybrid(why));
    for (key, value) in &folder.entries {
        let shown = name::printable(key);
        let Some(inner) = value.as_dict() else {
            return malformed(format!("{shown} is not a dictionary"));
        };
        if key.is_empty() {
            return malformed("a file of its tree has no name".to_owned());
        }
        if path.len() >= MAX_PATH_DEPTH {
            return malformed("its folders are too deep".to_owned());
        }
        path.push(name::sanitize_or_blank(key));
        match inner.find("") {
            // The description of a file has an empty name.
            Some(file) if inner.entries.len() == 1 => {
                let Some(file) = file.as_dict() else {
                    return malformed(format!("{shown} is not a dictionary"));
                };
                files.push(Leaf {
                    path: path.clone(),
                    length: leaf_length(file, &shown)?,
                });
            }
            Some(_) => return malformed(format!("{shown} is a file and a folder")),
            None => walk(inner, path, files)?,
        }
        path.pop();
    }
    Ok(())
}

/// The length of a file, which must have a hash unless it is empty.
fn leaf_length(file: &Dict<'_>, shown: &str) -> Result<u64, MetainfoError> {
    let attr = file.bytes("attr").unwrap_or_default();
    if attr.contains(&b'p') {
        let why = format!("version 2 has {shown} as padding");
        return Err(MetainfoError::Hybrid(why));
    }
    if attr.contains(&b'l') {
        listed::link_target(file, attr)?;
        return Ok(0);
    }
    let length = listed::length(file, "info.file tree[].length", || shown.to_owned())?;
    let root = file.bytes("pieces root").unwrap_or_default();
    if length > 0 && (root.len() != ROOT_BYTES || root.iter().all(|byte| *byte == 0)) {
        let why = format!("{shown} has no valid `pieces root`");
        return Err(MetainfoError::Hybrid(why));
    }
    Ok(length)
}
