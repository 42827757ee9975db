//! The keys that a server allows.

use std::path::PathBuf;

use hawser_quic::PeerKey;

use super::file::{self, KeysFileError};

/// The keys whose holders may connect: those given, and those of a file.
///
/// The file is in the manner of OpenSSH's `authorized_keys`: one key a line, then a comment; blank
/// lines and lines that begin with `#` are skipped. It is read anew for every question, so that a
/// running server follows it.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    keys: Vec<PeerKey>,
    file: Option<Source>,
}

#[derive(Debug, Clone)]
struct Source {
    path: PathBuf,
    /// Whether it has to exist.
    required: bool,
}

impl Allowed {
    /// The name of the user's file in [`folder`](super::folder).
    pub const FILE: &str = "allowed_keys";

    /// Allows `keys`, and nobody else.
    pub fn new(keys: impl IntoIterator<Item = PeerKey>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            file: None,
        }
    }

    /// Allows the keys in the file `path` too, in place of an earlier file.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file cannot be used as it is now.
    pub fn with_file(self, path: impl Into<PathBuf>) -> Result<Self, KeysFileError> {
        self.with(path.into(), true)
    }

    /// Allows the keys in the file `path` too, as long as there is one.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file exists and cannot be used as it is now.
    pub fn with_file_if_any(self, path: impl Into<PathBuf>) -> Result<Self, KeysFileError> {
        self.with(path.into(), false)
    }

    fn with(mut self, path: PathBuf, required: bool) -> Result<Self, KeysFileError> {
        self.file = Some(Source { path, required });
        self.in_file()?;
        Ok(self)
    }

    /// Whether `key` is allowed now.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file has become unusable: then only the given keys are allowed.
    pub fn allows(&self, key: &PeerKey) -> Result<bool, KeysFileError> {
        Ok(self.keys.contains(key) || self.in_file()?.contains(key))
    }

    /// All keys that are allowed now.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file has become unusable.
    pub fn keys(&self) -> Result<Vec<PeerKey>, KeysFileError> {
        let mut keys = self.keys.clone();
        keys.extend(self.in_file()?);
        Ok(keys)
    }

    fn in_file(&self) -> Result<Vec<PeerKey>, KeysFileError> {
        let Some(source) = &self.file else {
            return Ok(Vec::new());
        };
        match file::entries(&source.path, parse) {
            Ok(entries) => Ok(entries.into_iter().map(|(_, key)| key).collect()),
            Err(error) if error.is_missing() && !source.required => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Reads the key at the beginning of a line.
fn parse(line: &str) -> Result<PeerKey, String> {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    match first.parse::<PeerKey>() {
        Ok(key) => Ok(key),
        Err(_) if words.any(|word| word.parse::<PeerKey>().is_ok()) => Err(format!(
            "options before the key (`{first}`) are not supported yet"
        )),
        Err(error) => Err(error.to_string()),
    }
}
