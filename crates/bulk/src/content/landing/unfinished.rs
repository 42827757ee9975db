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

use super::LandingError;
use super::part_name::part_name;

/// The beginning of a mark.
const HEAD: &str = "hawser landing ";
/// Digits of the hash that follows, and of its check.
const HASH: usize = 64;
const CHECK: usize = 16;

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
            content: line(hasher.finalize().to_hex().as_str()),
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
    ///
    /// # Errors
    /// Also when a mark is damaged: it may have been this landing's, which would then begin anew in
    /// another directory.
    pub fn is_marked(&self, folder: &Folder) -> Result<bool, LandingError> {
        let Some(file) = folder.open_name(&self.name, false)? else {
            return Ok(false);
        };
        let mut found = Vec::new();
        let most = self.content.len() as u64 + 1;
        file.take(most)
            .read_to_end(&mut found)
            .map_err(|error| StoreError::io("read", &folder.path().join(&self.name), error))?;
        let older = format!("{}\n", &self.content[..HEAD.len() + HASH]);
        match found == self.content.as_bytes() || found == older.as_bytes() {
            true => Ok(true),
            false if is_mark(&found) => Ok(false),
            false => Err(LandingError::Mark(folder.path().join(&self.name))),
        }
    }

    /// Removes the mark.
    pub fn unmark(&self, folder: &Folder) -> Result<(), StoreError> {
        folder.remove(&self.name)
    }
}

/// The content of a mark with this hash. Its end is there to detect damage.
fn line(hash: &str) -> String {
    let check = blake3::hash(hash.as_bytes()).to_hex();
    format!("{HEAD}{hash} {}\n", &check[..CHECK])
}

/// Whether these bytes are a mark of any landing, as this or an older version makes them.
fn is_mark(found: &[u8]) -> bool {
    let hash = (found.strip_prefix(HEAD.as_bytes())).and_then(|rest| rest.get(..HASH));
    let Some(hash) = hash.and_then(|hash| str::from_utf8(hash).ok()) else {
        return false;
    };
    let is_hash = hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let older = format!("{HEAD}{hash}\n");
    is_hash && (found == line(hash).as_bytes() || found == older.as_bytes())
}
