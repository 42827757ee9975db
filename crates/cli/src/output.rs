//! Files that commands write for the user: checked before the work, never replacing an input,
//! replacing another file only on request, and written completely or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Doing, Failure};
use crate::out::out;

/// A file for a command's output that was found to be writable.
#[derive(Debug)]
pub struct Output {
    /// The path as the user gave it, for messages.
    shown: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// No file exists yet.
    New(PathBuf),
    /// An existing regular file that will be replaced; symbolic links to it are resolved.
    Replaced(PathBuf),
    /// A device or a pipe, which is written to as it is.
    Stream(PathBuf),
    /// Standard output.
    Stdout,
}

impl Output {
    /// Checks that `path`, given with `flag` (empty for a default), can be written, before the work
    /// begins. `inputs` are the files and folders that the command reads: neither they nor a file
    /// in one of them are ever replaced. Any other existing file requires `force`.
    ///
    /// # Errors
    /// Wrong use, when the file cannot be written.
    pub fn check(flag: &str, path: &Path, force: bool, inputs: &[&Path]) -> Result<Self, Failure> {
        let refuse = |why: String| {
            let named = format!("{flag} {}", path.display());
            Failure::usage(format!("{}: {why}", named.trim_start()))
        };
        let place = place(path, force, inputs).map_err(refuse)?;
        if let Place::New(file) | Place::Replaced(file) = &place {
            // Only an attempt shows whether a file can be created there.
            beside(file).map_err(|error| {
                let folder = folder(file).display();
                refuse(match error.kind() {
                    ErrorKind::NotFound => {
                        format!("the folder {folder} does not exist: make it first")
                    }
                    _ => format!("cannot write in the folder {folder}: {error}"),
                })
            })?;
        }
        Ok(Self {
            shown: path.to_owned(),
            place,
        })
    }

    /// Checks `path` if there is one, as [`Output::check`] does.
    ///
    /// # Errors
    /// As [`Output::check`].
    pub fn check_any(
        flag: &str,
        path: Option<&Path>,
        force: bool,
    ) -> Result<Option<Self>, Failure> {
        path.map(|path| Self::check(flag, path, force, &[]))
            .transpose()
    }

    /// Checks `path` as [`Output::check`] does; `-` is standard output.
    ///
    /// # Errors
    /// As [`Output::check`].
    pub fn check_or_stdout(flag: &str, path: &Path, force: bool) -> Result<Self, Failure> {
        match path.as_os_str() == "-" {
            true => Ok(Self::stdout()),
            false => Self::check(flag, path, force, &[]),
        }
    }

    /// Standard output, for text.
    pub fn stdout() -> Self {
        Self {
            shown: "-".into(),
            place: Place::Stdout,
        }
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.shown
    }

    /// Writes the file: to a temporary file in the same folder, which is then renamed, so that no
    /// reader finds a part of it, and a replaced file stays complete until then.
    ///
    /// # Errors
    /// When it cannot be written, or another file was created at its path since the check.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.try_write(bytes).doing(self.shown.display())
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<()> {
        let (path, replaced) = match &self.place {
            Place::Stdout => {
                out(format_args!("{}", String::from_utf8_lossy(bytes)));
                return Ok(());
            }
            Place::Stream(path) => {
                return File::options().write(true).open(path)?.write_all(bytes);
            }
            Place::New(path) => (path, None),
            Place::Replaced(path) => (path, Some(fs::metadata(path)?)),
        };
        let mut file = beside(path)?;
        file.write_all(bytes)?;
        if let Some(replaced) = &replaced {
            // Keep the permissions of the replaced file.
            file.as_file().set_permissions(replaced.permissions())?;
        }
        file.as_file().sync_all()?;
        match replaced {
            Some(_) => file.persist(path),
            None => file.persist_noclobber(path),
        }
        .map_err(|error| error.error)?;
        // The file is complete in any case. If the folder cannot be synced, as on some file
        // systems, a crash of the system now may lose the file's name.
        if let Ok(folder) = File::open(folder(path)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

fn place(path: &Path, force: bool, inputs: &[&Path]) -> Result<Place, String> {
    let is_folder = || "this is a folder: name a file".to_owned();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The path of a folder that does not exist.
            if path.as_os_str().as_bytes().ends_with(b"/") {
                return Err(is_folder());
            }
            if path.is_symlink() {
                return Err("this is a symbolic link to nothing: choose another name".to_owned());
            }
            return Ok(Place::New(path.to_owned()));
        }
        Err(error) => return Err(error.to_string()),
    };
    let kind = found.file_type();
    if kind.is_dir() {
        return Err(is_folder());
    }
    if kind.is_char_device() || kind.is_fifo() {
        return Ok(Place::Stream(path.to_owned()));
    }
    if !kind.is_file() {
        return Err("this is no regular file: choose another name".to_owned());
    }
    for input in inputs {
        let file = match (is_same(&found, input), is_within(&found, input)) {
            (true, _) => "the file",
            (false, true) => "a file of",
            (false, false) => continue,
        };
        return Err(format!(
            "this is {file} {}, which is read: choose another name",
            input.display()
        ));
    }
    if !force {
        return Err("the file exists: choose another name, or replace it with --force".to_owned());
    }
    // The link stays, and the file that it leads to is replaced.
    let resolved = path.canonicalize().map_err(|error| error.to_string())?;
    Ok(Place::Replaced(resolved))
}

/// Whether `path` leads to the file `one`, under any name.
pub fn is_same(one: &Metadata, path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|other| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Whether the file `one` is in the folder, under any name. Folders that cannot be listed do not
/// count: the command that reads them fails.
fn is_within(one: &Metadata, folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    entries.flatten().any(|entry| {
        entry.metadata().is_ok_and(|found| {
            (found.dev(), found.ino()) == (one.dev(), one.ino())
                || found.is_dir() && is_within(one, &entry.path())
        })
    })
}

/// The folder of `file`.
fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder.as_os_str() != OsStr::new("") => folder,
        _ => Path::new("."),
    }
}

/// A temporary file in the same folder, which is removed unless it is renamed.
fn beside(file: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".hawser-")
        // The umask limits the permissions of others, as for any new file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(file))
        // The text of tempfile's error would name its temporary path.
        .map_err(|error| error.kind().into())
}
