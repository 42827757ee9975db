//! Which names may become file names: what a stranger's torrent may call its files.

use super::MetainfoError;

/// Longest file name of the file systems in use, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Longest path below the download folder, in bytes: the kernel's PATH_MAX of 4096 less room for
/// the folder itself.
pub(super) const MAX_PATH_BYTES: usize = 3072;

/// One path component as a file name.
///
/// # Errors
/// [`MetainfoError::UnsafePath`] for anything that is not a plain name inside its folder.
pub(super) fn component(bytes: &[u8]) -> Result<&str, MetainfoError> {
    match fault(bytes) {
        Some(why) => Err(MetainfoError::UnsafePath {
            shown: printable(bytes),
            why,
        }),
        None => std::str::from_utf8(bytes).map_err(|_| MetainfoError::UnsafePath {
            shown: printable(bytes),
            why: "it is not UTF-8",
        }),
    }
}

/// What keeps `bytes` from being the name of a file in a folder.
fn fault(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        b"" => Some("it is empty"),
        b"." | b".." => Some("`.` and `..` are no names"),
        _ if bytes.contains(&0) => Some("it contains a NUL byte"),
        _ if bytes.contains(&b'/') || bytes.contains(&b'\\') => {
            Some("it contains a path separator")
        }
        _ if bytes.len() > MAX_NAME_BYTES => Some("it is longer than 255 bytes"),
        _ => None,
    }
}

/// `bytes` for an error message: quoted, escaped, and never a screenful.
pub(super) fn printable(bytes: &[u8]) -> String {
    const SHOWN: usize = 120;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    format!("\"{}{more}\"", text.escape_debug())
}
