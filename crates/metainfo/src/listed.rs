//! The list of files in a torrent (BEP 3, BEP 47).

use std::path::PathBuf;

use hawser_bencode::{Dict, Value};

use super::error::MetainfoError;
use super::name::{self, MAX_PATH_BYTES, MAX_PATH_DEPTH};

/// BitComet marks padding by the name alone.
const BITCOMET_PADDING: &str = "_____padding_file_";

/// One entry of the list.
#[derive(Debug)]
pub(super) struct Listed {
    /// From the torrent's folder on, each element made safe. Not empty but for padding.
    pub path: Vec<String>,
    /// The path before it was made safe, if that changed it.
    pub original: Option<String>,
    /// The same byte by byte, if a file can have it.
    pub literal: Option<PathBuf>,
    /// Bytes; 0 for a link.
    pub length: u64,
    pub kind: EntryKind,
}

impl Listed {
    /// Whether it is a file that has bytes.
    pub fn has_content(&self) -> bool {
        matches!(self.kind, EntryKind::Content) && self.length > 0
    }
}

/// What an entry is (BEP 47, `attr`).
#[derive(Debug)]
pub(super) enum EntryKind {
    Content,
    /// Zeros that align the next file.
    Padding,
    /// A symbolic link to this path, from the torrent's folder on.
    Link(Vec<String>),
}

/// Reads the `files` of an info dictionary.
///
/// # Errors
/// When an entry has no path or length that can be used.
pub(super) fn files(info: &Dict<'_>) -> Result<Vec<Listed>, MetainfoError> {
    let list = info.list("files");
    let list = list.ok_or(MetainfoError::field("info.files", "a list"))?;
    list.iter().map(file).collect()
}

fn file(entry: &Value<'_>) -> Result<Listed, MetainfoError> {
    let entry = entry.as_dict();
    let entry = entry.ok_or(MetainfoError::field("info.files[]", "a dictionary"))?;
    let attr = entry.bytes("attr").unwrap_or_default();
    // Names in `path.utf-8` are right where those in `path` are in another encoding.
    let lists = ["path.utf-8", "path"].map(|key| entry.list(key).unwrap_or_default());
    let elements = lists.into_iter().find(|list| !list.is_empty());
    let elements = strings(elements.unwrap_or_default())?;
    let padding = attr.contains(&b'p');
    if elements.is_empty() && !padding {
        return Err(PATH);
    }
    let (path, original) = safe_path(&elements)?;
    let literal = original.as_ref().and_then(|_| name::literal(&elements));
    let kind = if padding || path.iter().any(|part| part.contains(BITCOMET_PADDING)) {
        EntryKind::Padding
    } else {
        link_target(entry, attr)?.map_or(EntryKind::Content, EntryKind::Link)
    };
    // Links take no bytes, whatever they say.
    let length = match attr.contains(&b'l') {
        true => 0,
        false => length(entry, "info.files[].length", || shown(&elements))?,
    };
    Ok(Listed {
        path,
        original,
        literal,
        length,
        kind,
    })
}

/// The `length` of a file; `key` names it with its parents, `file` the file.
pub(super) fn length(
    from: &Dict<'_>,
    key: &'static str,
    file: impl FnOnce() -> String,
) -> Result<u64, MetainfoError> {
    let length = from.int("length");
    let length = length.ok_or(MetainfoError::field(key, "a number"))?;
    u64::try_from(length).map_err(|_| MetainfoError::FileLength(file()))
}

const PATH: MetainfoError = MetainfoError::field("info.files[].path", "a list of names");

fn strings<'a>(list: &[Value<'a>]) -> Result<Vec<&'a [u8]>, MetainfoError> {
    let names = list.iter().map(Value::as_bytes);
    names.collect::<Option<_>>().ok_or(PATH)
}

/// Where a link leads. An entry that is marked as a link but has no target is an empty file.
pub(super) fn link_target(
    entry: &Dict<'_>,
    attr: &[u8],
) -> Result<Option<Vec<String>>, MetainfoError> {
    let Some(target) = entry.list("symlink path").filter(|_| attr.contains(&b'l')) else {
        return Ok(None);
    };
    // BEP 47 forbids `.` and `..`; libtorrent leaves them out, and what is left must be in the
    // torrent.
    let names = strings(target)?.into_iter();
    let names = names.filter(|name| !matches!(*name, b"." | b".."));
    Ok(Some(names.map(name::sanitize_or_blank).collect()))
}

/// Makes every element of a path safe; also the path as it stood, if that was another.
///
/// # Errors
/// When it is longer or deeper than any file system takes.
pub(super) fn safe_path(
    elements: &[&[u8]],
) -> Result<(Vec<String>, Option<String>), MetainfoError> {
    let path = elements.iter().copied().map(name::sanitize_or_blank);
    let path: Vec<String> = path.collect();
    let bytes: usize = path.iter().map(|name| name.len() + 1).sum();
    if bytes > MAX_PATH_BYTES || path.len() > MAX_PATH_DEPTH {
        let path = name::printable(path.join("/").as_bytes());
        return Err(MetainfoError::PathTooLong(path));
    }
    let same = path.iter().map(String::as_bytes).eq(elements.to_vec());
    Ok((path, (!same).then(|| shown(elements))))
}

/// A path as it is in the torrent, for people.
fn shown(elements: &[&[u8]]) -> String {
    let elements = elements.iter().map(|name| name::shown(name));
    elements.collect::<Vec<_>>().join("/")
}
