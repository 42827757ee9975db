//! Files and folders that are copied to another file system.

use std::fs::{self, File, FileTimes, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use hawser_store::Folder;
use rustix::fs::{SeekFrom, XattrFlags, fsetxattr};
use rustix::io::Errno;

/// Most bytes that are copied between looks at whether the program ends.
const CHUNK: usize = 1 << 20;

/// Why content was not moved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MoveError {
    /// For this reason, with the remedy.
    Failed(String),
    /// The program ends. Another call continues it.
    Interrupted,
}

impl From<String> for MoveError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

/// Copies a file, link or folder with all that is in it, with modes, dates and attributes, so that it is on disk when this
/// returns. Files that were copied before and are the same since, by size and date, are not copied again.
///
/// # Errors
/// [`MoveError`].
pub(super) fn copy(from: &Path, to: &Path, is_ending: &dyn Fn() -> bool) -> Result<(), MoveError> {
    let failed = |error: io::Error| {
        let (from, to) = (from.display(), to.display());
        MoveError::Failed(format!("cannot copy {from} to {to}: {error}"))
    };
    if is_ending() {
        return Err(MoveError::Interrupted);
    }
    let facts = from.symlink_metadata().map_err(failed)?;
    if facts.is_dir() {
        return copy_folder(from, to, &facts, is_ending);
    }
    let kept = to.symlink_metadata().ok();
    if facts.is_symlink() {
        if kept.is_some() {
            fs::remove_file(to).map_err(failed)?;
        }
        let target = fs::read_link(from).map_err(failed)?;
        return symlink(target, to).map_err(failed);
    }
    if !facts.is_file() {
        let text = format!("{} is neither a file nor a folder", from.display());
        return Err(MoveError::Failed(text));
    }
    if kept.is_some_and(|kept| kept.is_file() && is_same(&kept, &facts).unwrap_or(false)) {
        return Ok(());
    }
    match copy_file(from, to, &facts, is_ending) {
        Ok(true) => Ok(()),
        Ok(false) => Err(MoveError::Interrupted),
        Err(error) => Err(failed(error)),
    }
}

fn copy_folder(
    from: &Path,
    to: &Path,
    facts: &Metadata,
    is_ending: &dyn Fn() -> bool,
) -> Result<(), MoveError> {
    let failed = |error: io::Error| {
        let (from, to) = (from.display(), to.display());
        MoveError::Failed(format!("cannot copy {from} to {to}: {error}"))
    };
    match fs::create_dir(to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => {}
        made => made.map_err(failed)?,
    }
    for entry in fs::read_dir(from).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        copy(&from.join(&name), &to.join(&name), is_ending)?;
    }
    fs::set_permissions(to, facts.permissions()).map_err(failed)?;
    File::open(to)
        .and_then(|folder| folder.sync_all())
        .map_err(failed)
}

/// Copies a file, without its holes. Returns whether it is copied: the program may be ending.
fn copy_file(
    from: &Path,
    to: &Path,
    facts: &Metadata,
    is_ending: &dyn Fn() -> bool,
) -> io::Result<bool> {
    let (source, target) = (File::open(from)?, File::create(to)?);
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while let Some((start, end)) = data(&source, at, facts.len())? {
        at = start;
        while at < end {
            if is_ending() {
                return Ok(false);
            }
            let part = CHUNK.min(usize::try_from(end - at).unwrap_or(CHUNK));
            let Some(part) = buffer.get_mut(..part) else {
                break;
            };
            source.read_exact_at(part, at)?;
            target.write_all_at(part, at)?;
            at += part.len() as u64;
        }
    }
    target.set_len(facts.len())?;
    target.set_permissions(facts.permissions())?;
    copy_attributes(from, &target)?;
    // The date says that all of it is copied, so it comes last.
    target.sync_all()?;
    target.set_times(FileTimes::new().set_modified(facts.modified()?))?;
    target.sync_all()?;
    match is_same(&source.metadata()?, facts)? && is_same(&target.metadata()?, facts)? {
        true => Ok(true),
        false => Err(io::Error::other(
            "it was changed meanwhile: end the program that writes to it",
        )),
    }
}

/// Copies the extended attributes of users, if the other file system has any: one marks unfinished downloads.
fn copy_attributes(from: &Path, target: &File) -> io::Result<()> {
    let folder = Folder::existing(from.parent().unwrap_or(Path::new("/")));
    let folder = folder.map_err(io::Error::other)?;
    let attributes = folder.attributes(from.file_name().unwrap_or_default(), |name| {
        name.starts_with(b"user.")
    });
    for (name, value) in attributes.map_err(io::Error::other)? {
        match fsetxattr(target, &name[..], &value, XattrFlags::empty()) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Whether two files are the same, by size and date.
fn is_same(one: &Metadata, other: &Metadata) -> io::Result<bool> {
    Ok(one.len() == other.len() && one.modified()? == other.modified()?)
}

/// The next part of a file of `size` bytes that is no hole, from `at` on.
fn data(file: &File, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= size {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        // Nothing but a hole.
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not know.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some((at, size))),
        Err(errno) => return Err(errno.into()),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
    Ok((start < size).then_some((start, end.min(size))))
}
