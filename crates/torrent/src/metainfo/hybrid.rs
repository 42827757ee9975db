//! The version 2 part of a hybrid torrent (BEP 52). It must describe the same files as the version
//! 1 part, so that clients fetch the same content whichever part they use.

use super::bencode::{self, Dict, Value};
use super::error::MetainfoError;
use super::fields;
use super::listed::{self, Kind, Listed};
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

/// The version 1 part.
pub(super) struct VersionOne<'a> {
    /// The name, unchanged.
    pub name: &'a [u8],
    pub piece_length: u32,
    /// The files in order, padding among them.
    pub files: &'a [Listed],
    /// Whether there is a folder around the files.
    pub multi_file: bool,
}

/// Checks a hybrid's version 2 part, `info` with its `bytes`, against its version 1 part.
///
/// # Errors
/// [`MetainfoError::Hybrid`], when it is malformed or says something else.
pub(super) fn check(
    info: &Dict<'_>,
    bytes: &[u8],
    one: &VersionOne<'_>,
) -> Result<(), MetainfoError> {
    let contradiction = |why: String| MetainfoError::Hybrid { why };
    // BEP 52 has other forms than the canonical one refused.
    bencode::parse(bytes).map_err(|error| contradiction(error.to_string()))?;
    if !one.piece_length.is_power_of_two() || one.piece_length < MIN_PIECE_LENGTH {
        return Err(contradiction(format!(
            "version 2 has no piece length {}",
            one.piece_length
        )));
    }
    let tree = fields::dict(info, "file tree", "info.file tree")?;
    let mut two = Vec::new();
    walk(tree, &mut Vec::new(), &mut two)?;
    if !one.multi_file {
        // A single file is its own name in the tree.
        let named = two.len() == 1 && two[0].path == [name::sanitize_or_blank(one.name)];
        if !named {
            return Err(contradiction(format!(
                "version 1 has the file {} alone, version 2 has others",
                name::printable(one.name)
            )));
        }
    }
    compare(one, &two)
}

/// Compares the files that have bytes, in order: their paths, lengths and where they begin. Empty
/// ones and links carry nothing that could differ.
fn compare(one: &VersionOne<'_>, two: &[Leaf]) -> Result<(), MetainfoError> {
    let contradiction = |why: String| Err(MetainfoError::Hybrid { why });
    let piece = u64::from(one.piece_length);
    let mut two = two.iter().filter(|file| file.length > 0);
    let (mut at, mut end) = (0u64, 0u64);
    for file in one.files {
        let content = matches!(file.kind, Kind::Content) && file.length > 0;
        if content {
            let path = file.path.join("/");
            let Some(other) = two.next() else {
                return contradiction(format!("version 2 lacks the file {path}"));
            };
            let same_path = !one.multi_file || other.path == file.path;
            if !same_path || other.length != file.length {
                return contradiction(format!(
                    "where version 1 has {path} of {} bytes, version 2 has {} of {} bytes",
                    file.length,
                    other.path.join("/"),
                    other.length
                ));
            }
            // In version 2 every file begins with a piece.
            if at != end.next_multiple_of(piece) {
                return contradiction(format!(
                    "{path} begins at byte {at} in version 1, and at byte {} in version 2",
                    end.next_multiple_of(piece)
                ));
            }
        }
        at = at.saturating_add(file.length);
        if content {
            end = at;
        }
    }
    if let Some(other) = two.next() {
        return contradiction(format!("version 1 lacks the file {}", other.path.join("/")));
    }
    // There may be padding after the last file.
    if at != end && at != end.next_multiple_of(piece) {
        return contradiction(format!(
            "version 1 goes on for {} bytes after the last file",
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
    let malformed = |why: String| Err(MetainfoError::Hybrid { why });
    for (key, value) in folder.iter() {
        let Some(inner) = value.as_dict() else {
            return malformed(format!("{} is not a dictionary", name::printable(key)));
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
            Some(file) if inner.iter().count() == 1 => {
                let Some(file) = file.as_dict() else {
                    return malformed(format!("{} is not a dictionary", name::printable(key)));
                };
                files.push(Leaf {
                    path: path.clone(),
                    length: leaf_length(file, key)?,
                });
            }
            Some(_) => {
                let key = name::printable(key);
                return malformed(format!("{key} is a file and a folder"));
            }
            None => walk(inner, path, files)?,
        }
        path.pop();
    }
    Ok(())
}

/// The length of a file, which must have a hash unless it is empty.
fn leaf_length(file: &Dict<'_>, key: &[u8]) -> Result<u64, MetainfoError> {
    let attr = file.find("attr").and_then(Value::as_bytes).unwrap_or(b"");
    if attr.contains(&b'p') {
        return Err(MetainfoError::Hybrid {
            why: format!("version 2 has {} as padding", name::printable(key)),
        });
    }
    if attr.contains(&b'l') {
        listed::link_target(file, attr)?;
        return Ok(0);
    }
    let length = fields::length(file, "info.file tree[].length", || name::printable(key))?;
    let root = file.find("pieces root").and_then(Value::as_bytes);
    let sound = root.is_some_and(|root| root.len() == ROOT_BYTES && root.iter().any(|b| *b != 0));
    if length > 0 && !sound {
        return Err(MetainfoError::Hybrid {
            why: format!("{} has no valid `pieces root`", name::printable(key)),
        });
    }
    Ok(length)
}
