//! The torrents on disk.
//!
//! A folder with a file of JSON for each torrent, named after its info-hash, and beside it its metainfo, and
//! what of its content is verified, which the engine writes. Each is written whole or not at all. The metainfo is written before the record and removed after it, so
//! that a crash at any time leaves each torrent whole or away; what it leaves besides is removed at the
//! next start. A file that is damaged is named, set aside under another name, and costs one torrent.

mod limits;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hawser_file::{LockedFile, PRIVATE, create_private_folder};
use hawser_torrent::{InfoHash, Metainfo};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::record::{Record, parse_hash};
use crate::renames;
use crate::torrents::MAX_TORRENTS;

/// The folder of the torrents, and the file that is locked, in the folder of the state.
const FOLDER: &str = "torrents";
const LOCK: &str = "lock";
/// The version of the format of records.
const VERSION: u32 = 1;
/// Most bytes of a record: it has bounded texts, of which a magnet link is the longest.
const MAX_RECORD_BYTES: u64 = 1 << 20;
/// The extension of what the engine has recorded as verified.
const VERIFIED: &str = "verified";
/// What the name of a damaged file ends with.
const DAMAGED: &str = "damaged";

/// Why the torrents cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// A failed system call.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The action that failed, as in "open".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another daemon uses the folder.
    #[error("{0} is in use by another daemon: stop it, or name another folder with --state")]
    InUse(PathBuf),
    /// The metainfo of a torrent is missing or damaged.
    #[error("{path}: {reason}; remove the torrent and add it again")]
    Metainfo {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A record as it is in its file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept<R> {
    version: u32,
    torrent: R,
}

/// A file that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The file.
    pub path: PathBuf,
    /// Its new name.
    pub set_aside: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// The folder with the torrents, locked.
#[derive(Debug)]
pub struct StateFolder {
    folder: PathBuf,
    lock: LockedFile,
}

impl StateFolder {
    /// Opens the folder of the state at `path`, which is made if it does not exist, and reads the records.
    /// Also returns the damaged files, which were set aside.
    ///
    /// # Errors
    /// [`StateError`] if the folder cannot be used.
    pub fn open(path: &Path) -> Result<(Self, Vec<Record>, Vec<Damaged>), StateError> {
        let folder = path.join(FOLDER);
        create_private_folder(path).map_err(|source| failed("make", path, source))?;
        create_private_folder(&folder).map_err(|source| failed("make", &folder, source))?;
        let lock = path.join(LOCK);
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(&lock);
        let file = file.map_err(|source| failed("open", &lock, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed("lock", &lock, source)),
        }
        let state = Self {
            folder,
            lock: LockedFile::new(file),
        };
        let (records, damaged) = state.load()?;
        Ok((state, records, damaged))
    }

    /// Unlocks the folder, for a daemon that starts while requests to this one still hold it. It is only read
    /// from then on.
    pub(crate) fn unlock(&self) {
        // Fails where there are no locks.
        let _ = self.lock.unlock();
    }

    fn load(&self) -> Result<(Vec<Record>, Vec<Damaged>), StateError> {
        let unreadable = |source| failed("read", &self.folder, source);
        let (mut records, mut damaged) = (Vec::new(), Vec::new());
        let mut besides = Vec::new();
        let mut kept = HashSet::new();
        for entry in fs::read_dir(&self.folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') && name.ends_with(".new") {
                // What was being written when the daemon was killed.
                remove(&path)?;
                continue;
            }
            let stem = path.file_stem().and_then(OsStr::to_str);
            let info_hash = stem.and_then(parse_hash);
            match (info_hash, path.extension().and_then(OsStr::to_str)) {
                (Some(info_hash), Some("json")) => match read(&path, info_hash) {
                    Ok(record) if records.len() < MAX_TORRENTS => {
                        kept.insert(info_hash);
                        records.push(record);
                    }
                    Ok(_) => {
                        let reason = format!("there are more than {MAX_TORRENTS} torrents");
                        damaged.push(set_aside(&path, reason)?);
                    }
                    Err(reason) => {
                        kept.insert(info_hash);
                        damaged.push(set_aside(&path, reason)?);
                    }
                },
                (Some(info_hash), Some("torrent" | VERIFIED)) => besides.push((info_hash, path)),
                // The metainfo stays with a record that was set aside earlier.
                _ if name.ends_with(DAMAGED) => {
                    kept.extend(name.split('.').next().and_then(parse_hash))
                }
                _ => {}
            }
        }
        // What was added and not promised yet, or removed in part.
        for (_, path) in besides.iter().filter(|(hash, _)| !kept.contains(hash)) {
            remove(path)?;
        }
        Ok((records, damaged))
    }

    fn path(&self, info_hash: InfoHash, extension: &str) -> PathBuf {
        self.folder.join(format!("{info_hash}.{extension}"))
    }

    /// Writes a record. It is on disk when this returns.
    ///
    /// # Errors
    /// [`StateError::Io`]; then the file is as it was.
    pub fn save(&self, record: &Record) -> Result<(), StateError> {
        let path = self.path(record.info_hash, "json");
        let kept = Kept {
            version: VERSION,
            torrent: record,
        };
        let text = serde_json::to_vec(&kept).map_err(io::Error::other);
        let written = text.and_then(|text| hawser_file::write(&path, &text, PRIVATE));
        written.map_err(|source| failed("write", &path, source))
    }

    /// Keeps the metainfo of a torrent. It is on disk when this returns.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn save_metainfo(&self, info_hash: InfoHash, bytes: &[u8]) -> Result<(), StateError> {
        let path = self.metainfo_path(info_hash);
        let written = hawser_file::write(&path, bytes, PRIVATE);
        written.map_err(|source| failed("write", &path, source))
    }

    /// The folder of the state, in which that of the torrents is.
    pub fn folder(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// Where the metainfo of a torrent is kept.
    pub fn metainfo_path(&self, info_hash: InfoHash) -> PathBuf {
        self.path(info_hash, "torrent")
    }

    /// Reads the metainfo of a torrent.
    ///
    /// # Errors
    /// [`StateError::Metainfo`] if it is missing or damaged.
    pub fn metainfo(&self, info_hash: InfoHash) -> Result<Metainfo, StateError> {
        let path = self.metainfo_path(info_hash);
        let bytes = fs::read(&path).map_err(|error| error.to_string());
        let parsed =
            bytes.and_then(|bytes| Metainfo::parse(&bytes).map_err(|error| error.to_string()));
        let right = parsed.and_then(|metainfo| match metainfo.info_hash == info_hash {
            true => Ok(metainfo),
            false => Err(format!("it is the torrent {}", metainfo.info_hash)),
        });
        right.map_err(|reason| StateError::Metainfo { path, reason })
    }

    /// Reads the metainfo of a torrent, with the names that its files have.
    ///
    /// # Errors
    /// [`StateError::Metainfo`] if it is missing or damaged.
    pub fn metainfo_of(&self, record: &Record) -> Result<Metainfo, StateError> {
        let mut metainfo = self.metainfo(record.info_hash)?;
        renames::apply(&mut metainfo, &record.settings.renames);
        Ok(metainfo)
    }

    /// Removes what is kept of a torrent.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn remove(&self, info_hash: InfoHash) -> Result<(), StateError> {
        remove(&self.path(info_hash, "json"))?;
        remove(&self.verified_path(info_hash))?;
        remove(&self.metainfo_path(info_hash))
    }

    /// Where the engine keeps what is verified of a torrent.
    pub(crate) fn verified_path(&self, info_hash: InfoHash) -> PathBuf {
        self.path(info_hash, VERIFIED)
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> StateError {
    let path = path.to_owned();
    StateError::Io {
        action,
        path,
        source,
    }
}

fn remove(path: &Path) -> Result<(), StateError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, error)),
        _ => Ok(()),
    }
}

/// Renames a damaged file, so that it is neither read again nor lost.
fn set_aside(path: &Path, reason: String) -> Result<Damaged, StateError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(DAMAGED);
    let set_aside = PathBuf::from(name);
    fs::rename(path, &set_aside).map_err(|source| failed("rename", path, source))?;
    Ok(Damaged {
        path: path.to_owned(),
        set_aside,
        reason,
    })
}

/// Reads the record in a file that is named after `info_hash`.
fn read(path: &Path, info_hash: InfoHash) -> Result<Record, String> {
    let mut text = Vec::new();
    let file =
        File::open(path).and_then(|file| file.take(MAX_RECORD_BYTES + 1).read_to_end(&mut text));
    file.map_err(|error| error.to_string())?;
    let record = parse(&text)?;
    match record.info_hash == info_hash {
        true => Ok(record),
        false => Err(format!("it is the record of {}", record.info_hash)),
    }
}

/// Checks the version of a file. It comes first: another one may have other fields.
fn check_version(text: &[u8], expected: u32) -> Result<(), String> {
    let version = serde_json::from_slice::<serde_json::Value>(text);
    let version = version.map_err(|error| error.to_string())?["version"].as_u64();
    match version {
        Some(version) if version == u64::from(expected) => Ok(()),
        Some(version) => Err(format!(
            "it has version {version}, which this hawser does not know"
        )),
        None => Err("it has no version".to_owned()),
    }
}

/// Reads a record.
fn parse(text: &[u8]) -> Result<Record, String> {
    if text.len() as u64 > MAX_RECORD_BYTES {
        return Err(format!("it is longer than {MAX_RECORD_BYTES} bytes"));
    }
    check_version(text, VERSION)?;
    let kept: Kept<Record> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match kept.torrent.fault() {
        Some(fault) => Err(fault),
        None => Ok(kept.torrent),
    }
}
