//! Small text files that decide whom to trust.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use thiserror::Error;

/// Largest such file, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// Why a file of keys cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeysFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others than its owner can write it, so that it proves nothing.
    #[error(
        "{path} can be written by others (mode {mode:04o}): check its lines, then `chmod go-w` it",
        path = path.display()
    )]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A line is wrong.
    #[error("{path}:{line}: {reason}", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong, for people.
        reason: String,
    },
}

/// Opens a file, and reads its permissions. Fails at once for what is not a file.
pub(crate) fn open(path: &Path) -> io::Result<(File, u32)> {
    let file = OpenOptions::new()
        .read(true)
        // A FIFO without a writer would keep us.
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok((file, meta.mode() & 0o7777))
}

/// Reads all of a file. Bytes that are not UTF-8 are replaced, so that they are found at their line.
pub(crate) fn read(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_SIZE {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_FILE_SIZE} bytes"
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the lines of a file that has one entry a line, blank lines and comments, which begin with
/// `#`. Returns each entry with its line, from 1.
pub(crate) fn entries<T>(
    path: &Path,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(usize, T)>, KeysFileError> {
    lines(&checked_text(path)?, parse).map_err(|(line, reason)| KeysFileError::Line {
        path: path.to_owned(),
        line,
        reason,
    })
}

/// As [`entries`], without lines that are wrong.
pub(crate) fn right_entries<T>(
    path: &Path,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, KeysFileError> {
    let text = checked_text(path)?;
    let lines = text.lines().map(str::trim);
    Ok(lines.filter_map(|line| parse(line).ok()).collect())
}

/// The text of a file that only its owner can write.
fn checked_text(path: &Path) -> Result<String, KeysFileError> {
    let failed = |source| KeysFileError::Read {
        path: path.to_owned(),
        source,
    };
    let (file, mode) = open(path).map_err(failed)?;
    if mode & 0o022 != 0 {
        return Err(KeysFileError::Writable {
            path: path.to_owned(),
            mode,
        });
    }
    read(file).map_err(failed)
}

/// Reads the entries of a text as [`entries`] does. The error is the number of a line, and what is
/// wrong with it.
pub(crate) fn lines<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(usize, T)>, (usize, String)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| match parse(line) {
            Ok(entry) => Ok((number, entry)),
            Err(reason) => Err((number, reason)),
        })
        .collect()
}

impl KeysFileError {
    /// Whether there is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
