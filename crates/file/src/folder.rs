//! Folders for their owner alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Permissions of a folder for its owner only.
const PRIVATE: u32 = 0o700;
/// Permissions of the folders above it, which other programs and users share.
const SHARED: u32 = 0o755;

/// Makes the folder `path` for its owner alone (mode 0700), and the missing folders above it for all to
/// read (mode 0755 less the umask). A folder that exists stays as it is.
///
/// # Errors
/// The error of the system; [`io::ErrorKind::AlreadyExists`] or [`io::ErrorKind::NotADirectory`] when
/// `path`, or one above it, is a file; [`io::ErrorKind::PermissionDenied`] also when `path` exists and
/// this process may not enter it.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(SHARED)
            .create(above)?;
    }
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
            // One of another user cannot be entered.
            fs::metadata(path.join(".")).map(drop)
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_folder_itself_is_private() {
        let root = tempfile::tempdir().unwrap();
        // What the umask leaves of it.
        let shared = root.path().join("shared");
        DirBuilder::new().mode(SHARED).create(&shared).unwrap();
        let path = root.path().join("run/hawser/shim");
        for _ in 0..2 {
            create_private_folder(&path).unwrap();
            assert_eq!(mode(&path), PRIVATE);
            for above in ["run/hawser", "run"] {
                assert_eq!(mode(&root.path().join(above)), mode(&shared), "{above}");
            }
        }
        // What is there stays as it is.
        create_private_folder(&root.path().join("run")).unwrap();
        assert_eq!(mode(&root.path().join("run")), mode(&shared));
    }

    #[test]
    fn a_file_in_the_way_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("below")] {
            let error = create_private_folder(&path).unwrap_err().kind();
            let is_expected = matches!(
                error,
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory
            );
            assert!(is_expected, "{error}");
        }
    }
}
