//! Reading `.torrent` files, and telling apart what can be wrong with them.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hawser_torrent::metainfo::MAX_METAINFO_BYTES;
use hawser_torrent::{Metainfo, MetainfoError};

use super::files;
use crate::failure::Failure;

/// Why there is no torrent to work with.
#[derive(Debug)]
pub enum TorrentError {
    /// It is a magnet link.
    Magnet,
    /// It is the URL of one.
    Url(String),
    /// The file is not there or cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The file is read, and no torrent that can be used.
    Refused(PathBuf, MetainfoError),
}

impl fmt::Display for TorrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magnet => f.write_str(
                "magnet links are not supported yet: give the .torrent file of the same content",
            ),
            Self::Url(url) => write!(
                f,
                "{url}: torrents are not fetched from URLs yet: fetch the .torrent file first, \
                 for example with curl -O, and give that"
            ),
            Self::Unreadable(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Refused(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl From<TorrentError> for Failure {
    fn from(error: TorrentError) -> Self {
        match error {
            TorrentError::Magnet | TorrentError::Url(_) => Self::usage(error),
            TorrentError::Unreadable(path, error) => files::unreadable(&path, &error),
            TorrentError::Refused(..) => Self::job(error),
        }
    }
}

/// Reads a `.torrent` file.
///
/// # Errors
/// [`TorrentError`], which says what is wrong with it.
pub fn read(file: &Path) -> Result<Metainfo, TorrentError> {
    // One byte more shows that a file is too large, whatever size a device or a pipe reports.
    let limit = MAX_METAINFO_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(file).and_then(|f| f.take(limit).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(unreadable(file, error));
    }
    if is_magnet(&String::from_utf8_lossy(&bytes[..bytes.len().min(16)])) {
        return Err(TorrentError::Magnet);
    }
    Metainfo::parse(&bytes).map_err(|error| TorrentError::Refused(file.to_owned(), error))
}

/// A path that cannot be read may be meant as something else.
fn unreadable(file: &Path, error: io::Error) -> TorrentError {
    let text = file.to_string_lossy();
    if is_magnet(&text) {
        return TorrentError::Magnet;
    }
    let is_url = ["http://", "https://", "ftp://"]
        .iter()
        .any(|scheme| begins_with(&text, scheme));
    match is_url {
        true => TorrentError::Url(text.into_owned()),
        false => TorrentError::Unreadable(file.to_owned(), error),
    }
}

fn is_magnet(text: &str) -> bool {
    begins_with(text.trim_start(), "magnet:?")
}

/// Compares without regard to letter case, as schemes are (RFC 3986, 3.1).
fn begins_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
