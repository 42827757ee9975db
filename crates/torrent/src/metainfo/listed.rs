//! The list of files in a torrent (BEP 3, BEP 47).

use super::bencode::{Dict, Value};
use super::error::MetainfoError;
use super::fields;
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
    /// Bytes; 0 for a link.
    pub length: u64,
    pub kind: Kind,
}

/// What an entry is (BEP 47, `attr`).
#[derive(Debug)]
pub(super) enum Kind {
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
pub(super) fn files(list: &Value<'_>) -> Result<Vec<Listed>, MetainfoError> {
    let list = list.as_list().ok_or(MetainfoError::Field {
        key: "info.files",
        expected: "a list",
    })?;
    list.iter().map(file).collect()
}

fn file(entry: &Value<'_>) -> Result<Listed, MetainfoError> {
    let entry = entry.as_dict().ok_or(MetainfoError::Field {
        key: "info.files[]",
        expected: "a dictionary",
    })?;
    let attr = entry.find("attr").and_then(Value::as_bytes).unwrap_or(b"");
    // Names in `path.utf-8` are right where those in `path` are in another encoding.
    let elements = ["path.utf-8", "path"].into_iter().find_map(|key| {
        let list = entry.find(key)?.as_list()?;
        (!list.is_empty()).then_some(list)
    });
    let elements = elements.map(strings).transpose()?.unwrap_or_default();
    let padding = attr.contains(&b'p');
    if elements.is_empty() && !padding {
        return Err(PATH);
    }
    let (path, original) = safe_path(&elements)?;
    let kind = if padding || path.iter().any(|part| part.contains(BITCOMET_PADDING)) {
        Kind::Padding
    } else {
        match link_target(entry, attr)? {
            Some(target) => Kind::Link(target),
            None => Kind::Content,
        }
    };
    // Links take no bytes, whatever they say.
    let length = match attr.contains(&b'l') {
        true => 0,
        false => fields::length(entry, "info.files[].length", || shown(&elements))?,
    };
    Ok(Listed {
        path,
        original,
        length,
        kind,
    })
}

const PATH: MetainfoError = MetainfoError::Field {
    key: "info.files[].path",
    expected: "a list of names",
};

fn strings<'a>(list: &[Value<'a>]) -> Result<Vec<&'a [u8]>, MetainfoError> {
    let names = list.iter().map(Value::as_bytes);
    names.collect::<Option<_>>().ok_or(PATH)
}

/// Where a link leads. An entry that is marked as a link but says no target is an empty file.
pub(super) fn link_target(
    entry: &Dict<'_>,
    attr: &[u8],
) -> Result<Option<Vec<String>>, MetainfoError> {
    let target = entry.find("symlink path").and_then(Value::as_list);
    let Some(target) = target.filter(|_| attr.contains(&b'l')) else {
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
    let path: Vec<String> = elements
        .iter()
        .map(|element| name::sanitize_or_blank(element))
        .collect();
    let bytes: usize = path.iter().map(|name| name.len() + 1).sum();
    if bytes > MAX_PATH_BYTES || path.len() > MAX_PATH_DEPTH {
        return Err(MetainfoError::PathTooLong {
            shown: name::printable(path.join("/").as_bytes()),
        });
    }
    let same = path
        .iter()
        .map(String::as_bytes)
        .eq(elements.iter().copied());
    Ok((path, (!same).then(|| shown(elements))))
}

/// A path as it is in the torrent.
fn shown(elements: &[&[u8]]) -> String {
    let elements = elements.iter().map(|name| String::from_utf8_lossy(name));
    elements.collect::<Vec<_>>().join("/")
}
