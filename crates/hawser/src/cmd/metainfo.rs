//! Reading `.torrent` files, and telling apart what can be wrong with them.

use std::io::{self, Read};
use std::path::Path;

use hawser_torrent::Metainfo;
use hawser_torrent::metainfo::MAX_METAINFO_BYTES;

use super::files;
use crate::failure::{Doing, Failure};

/// Reads a `.torrent` file.
///
/// # Errors
/// When the file is no torrent that can be used; wrong use, if it cannot be read, or a magnet link
/// or a URL is given.
pub fn read(file: &Path) -> Result<Metainfo, Failure> {
    // One byte more shows that a file is too large, whatever size a device or a pipe reports.
    let limit = MAX_METAINFO_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(file).and_then(|f| f.take(limit).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(unreadable(file, &error));
    }
    refuse_magnet(&String::from_utf8_lossy(&bytes[..bytes.len().min(16)]))?;
    Metainfo::parse(&bytes).doing(file.display())
}

/// A path that cannot be read may be meant as something else.
fn unreadable(file: &Path, error: &io::Error) -> Failure {
    let text = file.to_string_lossy();
    if let Err(magnet) = refuse_magnet(&text) {
        return magnet;
    }
    let schemes = ["http://", "https://", "ftp://"];
    match schemes.iter().any(|scheme| begins_with(&text, scheme)) {
        true => Failure::usage(format!(
            "{text}: torrents are not fetched from URLs yet: fetch the .torrent file first, for \
             example with curl -O, and give that"
        )),
        false => files::unreadable(file, error),
    }
}

fn refuse_magnet(text: &str) -> Result<(), Failure> {
    match begins_with(text.trim_start(), "magnet:?") {
        true => Err(Failure::usage(
            "magnet links are not supported yet: give the .torrent file of the same content",
        )),
        false => Ok(()),
    }
}

/// Compares without regard to letter case, as schemes are (RFC 3986, 3.1).
fn begins_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
