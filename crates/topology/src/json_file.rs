//! Files that hold one JSON value.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file or folder cannot be read or written, or its content is not valid.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path}: {source}", path = path.display())]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error, or the defect of the content.
    pub source: io::Error,
}

impl FileError {
    /// Returns a function that turns an error about `path` into a [`FileError`], for `map_err`.
    pub fn at<E: Into<io::Error>>(path: &Path) -> impl Fn(E) -> Self {
        move |error| Self {
            path: path.to_owned(),
            source: error.into(),
        }
    }

    /// Whether the file can be read, and its content is not valid.
    pub fn is_damaged(&self) -> bool {
        self.source.kind() == io::ErrorKind::InvalidData
    }

    /// Whether the file does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Reads a value from a JSON file.
///
/// # Errors
/// When the file cannot be read, or does not contain a `T` in JSON.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    let bytes = std::fs::read(path).map_err(FileError::at(path))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let reason = match bytes.is_empty() {
            true => "it is empty".to_owned(),
            false => error.to_string(),
        };
        FileError::at(path)(io::Error::new(io::ErrorKind::InvalidData, reason))
    })
}

/// Writes a value as JSON to a file, which is whole at any time, and on disk when this returns.
///
/// # Errors
/// When the file cannot be written, or the value cannot be encoded as JSON.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), FileError> {
    let bytes = serde_json::to_vec_pretty(value).map_err(FileError::at(path))?;
    hawser_file::write(path, &bytes, hawser_file::PUBLIC).map_err(FileError::at(path))
}
