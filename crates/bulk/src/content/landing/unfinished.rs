//! The mark of a directory that a landing creates at a new name.
//!
//! The rule of `scp` asks whether something is at `PATH`, and the landing itself changes the answer:
//! a second attempt would find the directory of the first one, and put another one into it. So the
//! decision of the first attempt is kept beside the directory until the landing is finished: as a
//! file that names the sender and what it sends.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blake3::Hasher;
use hawser_store::{Folder, StoreError};

use super::place::part_name;

/// The mark of one landing.
#[derive(Debug)]
pub(super) struct Unfinished {
    /// The name of the file. No entry has it, and no part file of one: it is the part file of a part
    /// file.
    name: OsString,
    content: String,
}

impl Unfinished {
    /// The mark for the directory `name` that the directory `top` of `sender` becomes.
    pub fn new(name: &OsStr, sender: &str, top: &Path) -> Self {
        let mut hasher = Hasher::new();
        for part in [sender.as_bytes(), top.as_os_str().as_bytes()] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self {
            name: part_name(&part_name(name)),
            content: format!("hawser landing {}\n", hasher.finalize().to_hex()),
        }
    }

    /// Sets the mark, before the directory is created. One of another landing, whose directory is
    /// gone, is replaced.
    pub fn mark(&self, folder: &Folder) -> Result<(), StoreError> {
        folder.remove(&self.name)?;
        let path = folder.path().join(&self.name);
        let in_use = || StoreError::InUse(path.clone());
        let file = folder.create_new(&self.name, 0o600)?;
        let mut file = file.ok_or_else(in_use)?;
        // On disk before the directory is.
        file.write_all(self.content.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| StoreError::io("write", &path, error))
    }

    /// Whether the directory was created by this landing, in an earlier attempt.
    pub fn is_marked(&self, folder: &Folder) -> Result<bool, StoreError> {
        let Some(file) = folder.open_name(&self.name, false)? else {
            return Ok(false);
        };
        let mut found = Vec::new();
        let most = self.content.len() as u64 + 1;
        file.take(most)
            .read_to_end(&mut found)
            .map_err(|error| StoreError::io("read", &folder.path().join(&self.name), error))?;
        Ok(found == self.content.as_bytes())
    }

    /// Removes the mark.
    pub fn unmark(&self, folder: &Folder) -> Result<(), StoreError> {
        folder.remove(&self.name)
    }
}
