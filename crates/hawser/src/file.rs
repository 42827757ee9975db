//! Files that commands write: in the place of another one only with `--force`.

use crate::failure::{Doing, Failure};
use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::Path,
};

/// Makes a file that grows as the command runs; a pipe or a device is written to as it is.
pub fn create(path: &Path, force: bool) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    match (is_stream(path), force) {
        (true, _) => &mut options,
        (false, true) => options.create(true).truncate(true),
        (false, false) => options.create_new(true),
    };
    check(path, force)?;
    options.open(path).map_err(|error| refused(path, &error))
}

/// Makes a file of these bytes: beside its place first, then renamed, so that there is never a part
/// of it.
pub fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    if is_stream(path) {
        return create(path, force)?.write_all(bytes).doing(path.display());
    }
    check(path, force)?;
    let mut beside = tempfile::Builder::new()
        .prefix(".hawser-")
        // The umask decides, as for any new file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(path))
        // The error's own text names the file that is made for the moment.
        .map_err(|error| refused(path, &error.kind().into()))?;
    beside.write_all(bytes).doing(path.display())?;
    let placed = match force {
        true => beside.persist(path),
        false => beside.persist_noclobber(path),
    };
    placed
        .map(drop)
        .map_err(|error| refused(path, &error.error))
}

/// Refuses what cannot be a file, or is one that is to stay.
fn check(path: &Path, force: bool) -> Result<(), Failure> {
    let wrong = |why: &str| Err(Failure::usage(format!("{}: {why}", path.display())));
    if path.is_dir() {
        return wrong("this is a folder: name a file");
    }
    if !folder(path).is_dir() {
        return wrong("its folder is not there: make it first, or name another");
    }
    match path.exists() && !force && !is_stream(path) {
        true => Err(exists(path)),
        false => Ok(()),
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The error for a file that is not to be replaced.
pub fn exists(path: &Path) -> Failure {
    Failure::usage(format!(
        "{}: the file exists: choose another name, or replace it with --force",
        path.display()
    ))
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::usage(format!("{}: {error}", path.display())),
    }
}

fn is_stream(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || kind.is_char_device()
    })
}
