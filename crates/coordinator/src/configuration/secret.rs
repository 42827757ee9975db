//! The secrets by which machines fetch their configuration.
//!
//! The state has their hashes only. So that an archive can be fetched twice, they are not random
//! but derived from one key in a file of its own, the AS, and the number of the change since which
//! its machine is trusted: a number that is never given again, so that no secret comes back.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hawser_http::Token;
use hawser_topology::{FileError, IsdAsn};
use ring::hmac;

use super::{ConfigurationError, at};

/// The key that secrets are derived from.
pub(super) struct Secrets {
    key: hmac::Key,
}

impl Secrets {
    /// Reads the key from `folder`, or makes it.
    pub fn open(folder: &Path) -> Result<Self, ConfigurationError> {
        let path = folder.join("host-key");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let token = Token::random().map_err(std::io::Error::other);
                let token = token.map_err(at(&path))?;
                write(&path, token.reveal()).map_err(at(&path))?;
                token.reveal().to_owned()
            }
            Err(error) => return Err(at(&path)(error)),
        };
        if text.len() < 64 {
            let reason = "it is too short for a key: remove it, and fetch all archives anew";
            return Err(FileError::at(&path)(std::io::Error::other(reason)).into());
        }
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()),
        })
    }

    /// The secret of an AS's machine that is trusted since the change of this number.
    pub fn of(&self, isd_as: IsdAsn, trusted_since: u64) -> String {
        let text = format!("hawser host {isd_as} {trusted_since}");
        let tag = hmac::sign(&self.key, text.as_bytes());
        tag.as_ref().iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// Hides the key: it must not appear in logs.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// Writes a file for this user only, whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}
