//! From bencode to a checked [`Metainfo`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

use super::bencode::{self, Dict, Value};
use super::{
    File, InfoHash, MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH, Metainfo,
    MetainfoError, name,
};

pub(super) fn parse(bytes: &[u8]) -> Result<Metainfo, MetainfoError> {
    if bytes.len() > MAX_METAINFO_BYTES {
        return Err(MetainfoError::TooLarge(bytes.len()));
    }
    let document = bencode::parse(bytes)?;
    let top = document.as_dict().ok_or(MetainfoError::Field {
        key: "",
        expected: "a dictionary",
    })?;
    let info = dict(top, "info", "info")?;
    // `dict` found it, so its span is there.
    let span = top.span("info").unwrap_or_default();
    let info_hash = InfoHash(Sha1::digest(&bytes[span]).into());

    let name = name::component(string(info, "name", "info.name")?)?.to_owned();
    if info.find("pieces").is_none() && info.find("meta version").is_some() {
        return Err(MetainfoError::VersionTwoOnly);
    }
    let piece_length = int(info, "piece length", "info.piece length")?;
    let piece_length = u32::try_from(piece_length)
        .ok()
        .filter(|length| (MIN_PIECE_LENGTH..=MAX_PIECE_LENGTH).contains(length))
        .ok_or(MetainfoError::PieceLength(piece_length))?;
    let pieces = string(info, "pieces", "info.pieces")?;
    if !pieces.len().is_multiple_of(20) {
        return Err(MetainfoError::PiecesCut(pieces.len()));
    }

    let (files, multi_file) = match (info.find("length"), info.find("files")) {
        (Some(_), None) => (vec![single_file(info, &name)?], false),
        (None, Some(_)) => (several_files(info, &name)?, true),
        _ => return Err(MetainfoError::OneOrSeveral),
    };
    let total_length = total(&files)?;
    if files.iter().all(|file| file.padding || file.length == 0) {
        return Err(MetainfoError::Empty);
    }
    let expected = total_length.div_ceil(u64::from(piece_length));
    let found = (pieces.len() / 20) as u64;
    if found != expected {
        return Err(MetainfoError::PieceCount {
            found,
            expected,
            total_length,
        });
    }

    Ok(Metainfo {
        info_hash,
        name,
        piece_length,
        total_length,
        pieces: pieces.to_vec(),
        files,
        multi_file,
        comment: text(top, "comment"),
        created_by: text(top, "created by"),
        creation_date: top.find("creation date").and_then(Value::as_int),
    })
}

fn single_file(info: &Dict<'_>, name: &str) -> Result<File, MetainfoError> {
    let length = int(info, "length", "info.length")?;
    Ok(File {
        path: PathBuf::from(name),
        length: file_length(length, Path::new(name))?,
        padding: false,
    })
}

fn several_files(info: &Dict<'_>, name: &str) -> Result<Vec<File>, MetainfoError> {
    let list = info
        .find("files")
        .and_then(Value::as_list)
        .ok_or(MetainfoError::Field {
            key: "info.files",
            expected: "a list",
        })?;
    let mut files = Vec::with_capacity(list.len());
    let mut places = Places::default();
    for entry in list {
        let entry = entry.as_dict().ok_or(MetainfoError::Field {
            key: "info.files[]",
            expected: "a dictionary",
        })?;
        let path = file_path(entry, name)?;
        // BEP 47: `p` padding, `l` symbolic link, `x` executable, `h` hidden.
        let attr = entry.find("attr").and_then(Value::as_bytes).unwrap_or(b"");
        if attr.contains(&b'l') {
            let shown = path.display().to_string();
            return Err(MetainfoError::Symlink { shown });
        }
        let padding = attr.contains(&b'p');
        let length = file_length(int(entry, "length", "info.files[].length")?, &path)?;
        if !padding {
            places.claim(&path)?;
        }
        files.push(File {
            path,
            length,
            padding,
        });
    }
    Ok(files)
}

fn file_path(entry: &Dict<'_>, name: &str) -> Result<PathBuf, MetainfoError> {
    let parts = entry
        .find("path")
        .and_then(Value::as_list)
        .filter(|parts| !parts.is_empty())
        .ok_or(MetainfoError::Field {
            key: "info.files[].path",
            expected: "a list of names",
        })?;
    let mut path = PathBuf::from(name);
    for part in parts {
        let part = part.as_bytes().ok_or(MetainfoError::Field {
            key: "info.files[].path",
            expected: "a list of names",
        })?;
        path.push(name::component(part)?);
        if path.as_os_str().len() > name::MAX_PATH_BYTES {
            return Err(MetainfoError::UnsafePath {
                shown: name::printable(path.as_os_str().as_encoded_bytes()),
                why: "the path is too long",
            });
        }
    }
    Ok(path)
}

/// The places that files take, so that no two take one.
#[derive(Default)]
struct Places {
    files: HashSet<PathBuf>,
    folders: HashSet<PathBuf>,
}

impl Places {
    fn claim(&mut self, path: &Path) -> Result<(), MetainfoError> {
        let duplicate = |at: &Path| MetainfoError::Duplicate {
            shown: at.display().to_string(),
        };
        if self.folders.contains(path) || !self.files.insert(path.to_owned()) {
            return Err(duplicate(path));
        }
        for folder in path.ancestors().skip(1) {
            if self.files.contains(folder) {
                return Err(duplicate(folder));
            }
            // Its own parents were claimed with it.
            if !self.folders.insert(folder.to_owned()) {
                break;
            }
        }
        Ok(())
    }
}

fn total(files: &[File]) -> Result<u64, MetainfoError> {
    let mut sum: i64 = 0;
    for file in files {
        sum = i64::try_from(file.length)
            .ok()
            .and_then(|length| sum.checked_add(length))
            .ok_or_else(|| MetainfoError::FileLength {
                file: file.path.display().to_string(),
            })?;
    }
    Ok(sum.unsigned_abs())
}

fn file_length(length: i64, file: &Path) -> Result<u64, MetainfoError> {
    u64::try_from(length).map_err(|_| MetainfoError::FileLength {
        file: file.display().to_string(),
    })
}

fn dict<'d, 'a>(
    from: &'d Dict<'a>,
    key: &str,
    shown: &'static str,
) -> Result<&'d Dict<'a>, MetainfoError> {
    from.find(key)
        .and_then(Value::as_dict)
        .ok_or(MetainfoError::Field {
            key: shown,
            expected: "a dictionary",
        })
}

fn int(from: &Dict<'_>, key: &str, shown: &'static str) -> Result<i64, MetainfoError> {
    from.find(key)
        .and_then(Value::as_int)
        .ok_or(MetainfoError::Field {
            key: shown,
            expected: "a number",
        })
}

fn string<'a>(from: &Dict<'a>, key: &str, shown: &'static str) -> Result<&'a [u8], MetainfoError> {
    from.find(key)
        .and_then(Value::as_bytes)
        .ok_or(MetainfoError::Field {
            key: shown,
            expected: "a string",
        })
}

/// An optional text; one that is no UTF-8 is shown as well as it can be.
fn text(from: &Dict<'_>, key: &str) -> Option<String> {
    let bytes = from.find(key)?.as_bytes()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}
