//! Small files: written whole or not at all, and watched for changes; locks of files; and folders for
//! their owner alone.
//!
//! A file is written to a temporary file in the same folder, synced, and renamed. After a crash, or when
//! the disk is full, readers see either the old content or the new content, never a part.

mod folder;
mod locked;
mod stamp;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub use self::folder::create_private_folder;
pub use self::locked::LockedFile;
pub use self::stamp::Stamp;

/// Permissions of a file that everybody may read, as far as the umask lets them.
pub const PUBLIC: u32 = 0o666;
/// Permissions of a file for its owner only.
pub const PRIVATE: u32 = 0o600;

/// Writes `content` to the file `path`, with these permissions less the umask, in place of what is
/// there. Its folder must exist. The content is on disk when this returns.
///
/// # Errors
/// The error of the system; then the file at `path` is as it was, and no other file is left behind.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write_with(path, mode, |file| file.write_all(content))
}

/// As [`write()`], with the content that `fill` writes.
///
/// # Errors
/// As [`write()`].
pub fn write_with(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let new = aside(path)?;
    let written = fill_new(&new, mode, fill).and_then(|()| fs::rename(&new, path));
    if let Err(error) = written {
        // It may not have been created.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

fn fill_new(
    new: &Path,
    mode: u32,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    // One that an earlier process of this number left behind has other permissions.
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(new)?;
    fill(&mut file)?;
    file.sync_all()
}

/// The name under which a file is written: hidden, without the extension of the file, and of this
/// thread alone.
fn aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut aside = OsString::from(".");
    aside.push(name);
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    aside.push(format!(".{}-{thread}.new", std::process::id()));
    Ok(path.with_file_name(aside))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for (content, mode) in [("one", PUBLIC), ("two", PRIVATE)] {
            write(&path, content.as_bytes(), mode).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn a_disk_that_is_full_once_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let full = |file: &mut File| {
            file.write_all(b"ha")?;
            // A device without space.
            let mut full = OpenOptions::new().write(true).open("/dev/full")?;
            full.write_all(b"lf")
        };
        let error = write_with(&path, PUBLIC, full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(names(folder.path()).is_empty());
        write(&path, b"whole", PUBLIC).unwrap();
        write_with(&path, PUBLIC, full).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["a.json"]);
        write(&path, b"again", PUBLIC).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"again");
    }

    #[test]
    fn threads_that_write_the_same_file_leave_one_of_their_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::thread::scope(|scope| {
            for byte in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write(path, &[byte; 5000], PUBLIC).unwrap();
                        let read = fs::read(path).unwrap();
                        assert!(read.len() == 5000 && read.iter().all(|b| *b == read[0]));
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_path_without_a_name_is_refused() {
        for path in ["/", ".."] {
            assert!(write(Path::new(path), b"x", PUBLIC).is_err());
        }
    }
}
