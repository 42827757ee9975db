//! The source's side: files and folders listed as a manifest.

mod extents;
mod file;
mod metadata;
mod roots;
mod walk;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use hawser_store::{Folder, FoundKind, StoreError};
use thiserror::Error;

pub(super) use self::extents::extents;
pub(super) use self::metadata::set_id_bits;
pub(crate) use self::roots::Roots;
use self::walk::Walk;
use super::exclude::Pattern;
use super::manifest::{Manifest, ManifestError};
use crate::protocol::Choices;

/// How files are listed.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Whether the first file that cannot be read ends the transfer, now and while it is sent.
    /// Otherwise such files are skipped.
    pub strict: bool,
    /// What is left out.
    pub exclude: Vec<Pattern>,
    /// Which of owners, groups, ACLs and extended attributes are carried.
    pub carry: Choices,
}

/// What is to be transferred.
#[derive(Debug)]
pub struct Scan {
    /// All files, directories and symbolic links.
    pub manifest: Manifest,
    /// What was left out.
    pub warnings: Vec<Warning>,
    /// Files and directories of the manifest that cannot be read.
    pub(super) unreadable: Vec<(usize, StoreError)>,
    /// What is no entry because it cannot be read, or has too long a path.
    pub(super) unlisted: Vec<(PathBuf, StoreError)>,
    pub(super) strict: bool,
    pub(super) carry: Choices,
    /// Where they are on disk.
    pub(super) roots: Roots,
}

/// Something that is not transferred.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Warning {
    /// A device, FIFO or socket.
    #[error("{0} is left out: it is a device, FIFO or socket")]
    Special(PathBuf),
    /// A symbolic link that the sink would refuse.
    #[error("the symbolic link {path} is left out: it leads out of what is sent, to {}", target.display())]
    LeadsOut {
        /// The link.
        path: PathBuf,
        /// What it leads to.
        target: PathBuf,
    },
    /// What is not carried of some files and directories.
    #[error("{metadata} of {count} files or folders will be missing, as of {}", first.display())]
    Missing {
        /// What is missing.
        metadata: Metadata,
        /// Of how many.
        count: u64,
        /// The first of them.
        first: PathBuf,
    },
    /// A file in which another transfer was interrupted.
    #[error("{0} is left out: it is an unfinished file of another transfer")]
    Unfinished(PathBuf),
}

/// What files and directories have besides content, permissions and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Metadata {
    /// Another owner than the user that sends.
    Owner,
    /// Extended attributes that do not fit a message.
    Large,
    /// Set-uid or set-gid.
    SetId,
    /// An ACL. Without it the owning group gets what the ACL gives it, and not what the mode shows.
    Acl,
    /// Extended attributes of users.
    Attributes,
    /// Further names: each becomes a file of its own.
    HardLinks,
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "the owners",
            Self::Large => "the ACLs or extended attributes (too large)",
            Self::SetId => "set-uid and set-gid",
            Self::Acl => "the ACLs",
            Self::Attributes => "the extended attributes",
            Self::HardLinks => "the hard links",
        })
    }
}

/// Why files cannot be listed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScanError {
    /// Files or folders that cannot be read.
    #[error("{0}")]
    Unreadable(Unreadable),
    /// What is wanted is not below the shared folder.
    #[error("{0:?} is not a path below the shared folder: use a relative one without `..`")]
    Outside(PathBuf),
    /// There is no file, directory or link.
    #[error("there is nothing to send")]
    Nothing,
    /// Two of the paths have the same name at the destination.
    #[error(
        "{0:?} would be at the destination twice: send them one after the other, or rename one"
    )]
    Repeated(PathBuf),
    /// The sink would refuse the manifest.
    #[error(transparent)]
    Manifest(ManifestError),
    /// A path that does not exist, or another failed system call.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Files or folders that cannot be read.
#[derive(Debug)]
pub struct Unreadable(
    /// One error for each.
    pub Vec<StoreError>,
);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_NAMED: usize = 5;
        for (index, error) in self.0.iter().take(MAX_NAMED).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{error}")?;
        }
        match self.0.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Lists files and whole directories, in an order that depends on their names only.
///
/// As with `scp -r` and `rsync -a`, `a/dir` is `dir` at the destination, with all that it contains,
/// and `a/dir/` (or `.`) is only what it contains. A symbolic link among `paths` is followed; below
/// them, links stay links.
///
/// # Errors
/// If a path does not exist, two paths have the same name, or, when that is to be strict, something
/// cannot be read.
pub fn scan(paths: &[PathBuf], options: ScanOptions) -> Result<Scan, ScanError> {
    let mut walk = Walk::new(options);
    for path in paths {
        let metadata = path
            .metadata()
            .map_err(|error| StoreError::io("find", path, error))?;
        match path.file_name() {
            Some(name) if metadata.is_dir() && !ends_in_slash(path) => {
                walk.directory(Folder::existing(path)?, Some(name))?;
            }
            _ if metadata.is_dir() => walk.directory(Folder::existing(path)?, None)?,
            Some(name) => {
                let failed = |error| StoreError::io("find", path, error);
                let real = path.canonicalize().map_err(failed)?;
                let folder = real.parent().unwrap_or(&real);
                let real_name = real.file_name().unwrap_or(name);
                walk.file(Folder::existing(folder)?, real_name, name)?;
            }
            None => return Err(StoreError::NotAFolder(path.clone()).into()),
        }
    }
    walk.finish()
}

/// Lists what another host wants of a shared folder, as [`scan`] does; an empty path is all of it.
/// No symbolic link is followed, so that nothing outside is read.
///
/// # Errors
/// If the path leads out of the folder, and as [`scan`].
pub fn scan_shared(shared: &Path, wanted: &Path, options: ScanOptions) -> Result<Scan, ScanError> {
    let name = wanted.file_name().filter(|_| !ends_in_slash(wanted));
    walk_shared(shared, wanted, name, options)?.finish()
}

/// Lists what is at a path of a shared folder, as [`scan_shared`] does, to be `name` at the
/// destination.
///
/// # Errors
/// As [`scan_shared`].
pub fn scan_shared_as(
    shared: &Path,
    wanted: &Path,
    name: &OsStr,
    options: ScanOptions,
) -> Result<Scan, ScanError> {
    walk_shared(shared, wanted, Some(name), options)?.finish()
}

/// Lists what is `wanted` of a shared folder: a directory as `name`, or only what it contains; a file
/// as `name`, or as it is called.
fn walk_shared(
    shared: &Path,
    wanted: &Path,
    name: Option<&OsStr>,
    options: ScanOptions,
) -> Result<Walk, ScanError> {
    let is_plain = |component| matches!(component, Component::Normal(_) | Component::CurDir);
    if !wanted.components().all(is_plain) {
        return Err(ScanError::Outside(wanted.to_owned()));
    }
    let mut walk = Walk::new(options);
    let shared = Folder::existing(shared)?.without_links();
    let Some(real) = wanted.file_name() else {
        walk.directory(shared, name)?;
        return Ok(walk);
    };
    let folder = match wanted.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => shared.folder(parent)?,
        _ => shared,
    };
    match folder.find(real)?.map(|found| found.kind) {
        Some(FoundKind::Folder) => walk.directory(folder.folder(real.as_ref())?, name)?,
        _ => walk.file(folder, real, name.unwrap_or(real))?,
    }
    Ok(walk)
}

/// Whether a path names what a directory contains: `dir/` or `dir/.`.
fn ends_in_slash(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

#[cfg(test)]
mod tests;
