//! Checks entries one by one, as a sink receives them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blake3::Hasher;

use super::{
    ACCESS_ACL, Attributes, DEFAULT_ACL, Directories, Entry, EntryKind, MAX_EXTENTS, MODE,
    Manifest, ManifestError, PART_SUFFIX, USER_ATTRIBUTE, containing,
};
use crate::protocol::MAX_VARINT;

/// Most bytes of a path.
pub(crate) const MAX_PATH: usize = 4096;

/// Most bytes of a component of a path (`NAME_MAX`).
const MAX_NAME: usize = 255;

/// Most bytes of all entries as messages: about ten million files.
const MAX_BYTES: u64 = 1 << 30;

/// What an allocation takes beside its bytes.
const ALLOCATION: usize = 32;

/// Collects the entries of a manifest, and refuses the first one that is invalid.
#[derive(Debug, Default)]
pub struct ManifestBuilder {
    entries: Vec<Entry>,
    parents: Vec<Option<u32>>,
    directories: Directories,
    /// Of all encoded entries.
    hasher: Hasher,
    /// Bytes of content.
    length: u64,
    /// Bytes of all files, holes included.
    size: u64,
    buffer: Vec<u8>,
    /// What the entries take, in bytes of memory.
    memory: u64,
}

impl ManifestBuilder {
    /// Appends an entry: the fields of an `Entry` message.
    ///
    /// # Errors
    /// If the entry is malformed, or not valid at this place of the manifest.
    pub fn push(&mut self, fields: &[u8]) -> Result<(), ManifestError> {
        self.check(Entry::decode(fields)?)?;
        self.hasher.update(fields);
        self.refuse_too_large()
    }

    /// Appends an entry of this host.
    pub(super) fn append(&mut self, entry: Entry) -> Result<(), ManifestError> {
        self.check(entry)?;
        if let Some(entry) = self.entries.last() {
            self.buffer.clear();
            entry.encode(&mut self.buffer);
            self.hasher.update(&self.buffer);
        }
        self.refuse_too_large()
    }

    /// What the entries so far take, in bytes of memory: at least what they do.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    fn refuse_too_large(&self) -> Result<(), ManifestError> {
        match self.hasher.count() > MAX_BYTES {
            true => Err(ManifestError::TooLarge(MAX_BYTES)),
            false => Ok(()),
        }
    }

    /// The manifest, once its end was received: number of `entries`, bytes of content and hash.
    ///
    /// # Errors
    /// If they do not match, or a path is repeated.
    pub fn finish(
        self,
        entries: u64,
        length: u64,
        hash: [u8; 32],
    ) -> Result<Manifest, ManifestError> {
        let counts = [
            ("entries", entries, self.entries.len() as u64),
            ("bytes", length, self.length),
        ];
        for (what, announced, found) in counts {
            if announced != found {
                return Err(ManifestError::Count {
                    what,
                    announced,
                    found,
                });
            }
        }
        let manifest = self.build()?;
        match manifest.hash == hash {
            true => Ok(manifest),
            false => Err(ManifestError::Hash),
        }
    }

    /// The manifest of the entries so far.
    pub(super) fn build(self) -> Result<Manifest, ManifestError> {
        Manifest::assemble(
            self.entries,
            self.parents,
            *self.hasher.finalize().as_bytes(),
        )
    }

    /// Checks an entry against the ones before, and appends it.
    fn check(&mut self, entry: Entry) -> Result<(), ManifestError> {
        check_path(&entry.path)?;
        let parent = match containing(&entry.path) {
            None => None,
            Some(path) => match self.directories.get(path) {
                Some(parent) => Some(*parent),
                None => return Err(ManifestError::NoDirectory(entry.path)),
            },
        };
        if entry.mode & !MODE != 0 {
            let mode = entry.mode.into();
            return Err(ManifestError::Mode {
                path: entry.path,
                mode,
            });
        }
        if entry.modified.nanoseconds >= 1_000_000_000 {
            return Err(ManifestError::Modified(entry.path));
        }
        if !entry.attributes.as_deref().is_none_or(are_carried) {
            return Err(ManifestError::Attributes(entry.path));
        }
        if let Some(of) = entry.hard_link() {
            let is_file = |entry: &Entry| {
                matches!(entry.kind, EntryKind::File { .. }) && entry.hard_link().is_none()
            };
            let is_empty = |kind: &EntryKind| matches!(kind, EntryKind::File { extents, .. } if extents.is_empty());
            if !self.entries.get(of).is_some_and(is_file) || !is_empty(&entry.kind) {
                return Err(ManifestError::HardLink(entry.path));
            }
        }
        match &entry.kind {
            EntryKind::File { size, extents } => {
                let sum = self.size.checked_add(*size);
                let Some(sum) = sum.filter(|sum| *sum <= MAX_VARINT) else {
                    return Err(ManifestError::Size(entry.path));
                };
                self.size = sum;
                let mut end = 0;
                for extent in extents {
                    let extent_end = extent.offset.checked_add(extent.length);
                    let fits = extent_end.is_some_and(|end| end <= *size);
                    if extent.offset < end || extent.length == 0 || !fits {
                        return Err(ManifestError::Extents(entry.path));
                    }
                    end = extent.end();
                    self.length += extent.length;
                }
                if extents.len() > MAX_EXTENTS {
                    return Err(ManifestError::Extents(entry.path));
                }
            }
            EntryKind::Directory => {
                let index = self.entries.len() as u32;
                self.directories.insert(entry.path.clone(), index);
            }
            EntryKind::Link { target } => {
                if !stays_within(&entry.path, target) {
                    let target = target.clone();
                    return Err(ManifestError::LeadsOut {
                        path: entry.path,
                        target,
                    });
                }
            }
        }
        self.memory += memory(&entry);
        self.entries.push(entry);
        self.parents.push(parent);
        Ok(())
    }
}

/// What an entry takes, in bytes of memory, at least what it does: lists that grow have up to as much
/// room again.
fn memory(entry: &Entry) -> u64 {
    let path = entry.path.as_os_str().len() + ALLOCATION;
    let kind = match &entry.kind {
        EntryKind::File { extents, .. } => size_of_val(extents.as_slice()) + ALLOCATION,
        // Its path is kept a second time.
        EntryKind::Directory => 2 * (size_of::<(PathBuf, u32)>() + path),
        EntryKind::Link { target } => target.as_os_str().len() + ALLOCATION,
    };
    let attributes = entry.attributes.as_deref().map_or(0, |attributes| {
        let extended = attributes.extended.iter();
        let extended = extended.map(|(name, value)| {
            2 * size_of::<(Vec<u8>, Vec<u8>)>() + name.len() + value.len() + 2 * ALLOCATION
        });
        size_of::<Attributes>() + ALLOCATION + extended.sum::<usize>()
    });
    let own = 2 * (size_of::<Entry>() + size_of::<Option<u32>>());
    (own + path + kind + attributes) as u64
}

/// Whether attributes are ones that are carried.
fn are_carried(attributes: &Attributes) -> bool {
    // chown(2) takes the largest number for no change.
    let is_owner = |number: Option<u32>| number != Some(u32::MAX);
    let is_carried = |name: &[u8]| {
        let is_user = name.starts_with(USER_ATTRIBUTE) && name.len() > USER_ATTRIBUTE.len();
        let is_acl = name == ACCESS_ACL || name == DEFAULT_ACL;
        (is_user || is_acl) && name.len() <= MAX_NAME && !name.contains(&0)
    };
    let mut extended = attributes.extended.iter();
    is_owner(attributes.user)
        && is_owner(attributes.group)
        && extended.all(|(name, _)| is_carried(name))
}

/// Refuses a path that is not plainly below the folder.
fn check_path(path: &Path) -> Result<(), ManifestError> {
    let bytes = path.as_os_str().as_bytes();
    let invalid = |name: &[u8]| {
        name.is_empty()
            || name == b"."
            || name == b".."
            || name.len() > MAX_NAME
            || name.contains(&0)
    };
    if bytes.len() > MAX_PATH || bytes.split(|byte| *byte == b'/').any(invalid) {
        return Err(ManifestError::Path(path.to_owned()));
    }
    // A directory of that name would be in the place of a part file, too.
    if bytes
        .split(|byte| *byte == b'/')
        .any(|name| is_part_name(OsStr::from_bytes(name)))
    {
        return Err(ManifestError::Reserved(path.to_owned()));
    }
    Ok(())
}

/// Whether a file of this name is an unfinished file.
pub(crate) fn is_part_name(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(PART_SUFFIX)
}

/// Whether a symbolic link at `path` leads to something below the folder. `..` is allowed at the
/// beginning of the target only: behind a name, which may be a link itself, it leads anywhere.
pub(crate) fn stays_within(path: &Path, target: &Path) -> bool {
    let bytes = target.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.starts_with(b"/") || bytes.len() >= MAX_PATH || bytes.contains(&0)
    {
        return false;
    }
    let is_up = |name: &&[u8]| *name == b"..";
    let mut names = bytes
        .split(|byte| *byte == b'/')
        .filter(|name| !matches!(*name, b"" | b"."));
    let ups = names.clone().take_while(is_up).count();
    let depth = path.components().count() - 1;
    ups <= depth && !names.by_ref().skip(ups).any(|name| is_up(&name))
}
