//! The file with this host's key.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::file;
use crate::folder::{NoFolder, folder};
use crate::identity::{Identity, KeyError};

/// The file with this host's private key, in PEM. It is made at first use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile(PathBuf);

/// Why the host's key cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the key {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It cannot be made.
    #[error("cannot make the key {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others than its owner can use it.
    #[error(
        "the key {path} is open to others (mode {mode:04o}): `chmod 600` it, or remove it if somebody may have read it",
        path = path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// There is no key in it.
    #[error("{path} is not a key: {source}; restore it from a backup, or remove it and a new one is made, which others do not know", path = path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with its content.
        source: KeyError,
    },
    /// No key could be made.
    #[error(transparent)]
    Generate(KeyError),
}

impl KeyFile {
    /// The user's key: the file `key` in [`folder`].
    ///
    /// # Errors
    /// [`NoFolder`] when the user has no folder for it.
    pub fn of_user() -> Result<Self, NoFolder> {
        Ok(Self(folder()?.join("key")))
    }

    /// The key in the file `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the key. If there is no such file, a key is made and written first, with its folder;
    /// of several programs that do so at once, all read the same one.
    ///
    /// # Errors
    /// [`KeyFileError`] when the file is open to others, is not a key, or cannot be read or made.
    pub fn open(&self) -> Result<Identity, KeyFileError> {
        match self.read() {
            Err(KeyFileError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let identity = Identity::generate().map_err(KeyFileError::Generate)?;
                self.create(&identity)
                    .map_err(|source| KeyFileError::Write {
                        path: self.0.clone(),
                        source,
                    })?;
                self.read()
            }
            read => read,
        }
    }

    /// Whether there is a key, without making one.
    ///
    /// # Errors
    /// [`KeyFileError`] when there is a file that cannot be used.
    pub fn check(&self) -> Result<bool, KeyFileError> {
        match self.read() {
            Ok(_) => Ok(true),
            Err(KeyFileError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn read(&self) -> Result<Identity, KeyFileError> {
        let path = || self.0.clone();
        let failed = |source| KeyFileError::Read {
            path: path(),
            source,
        };
        let (file, mode) = file::open(&self.0).map_err(failed)?;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Open { path: path(), mode });
        }
        let pem = file::read(file).map_err(failed)?;
        Identity::from_pkcs8_pem(&pem).map_err(|source| KeyFileError::Broken {
            path: path(),
            source,
        })
    }

    /// Writes `identity`, unless there is a file by now.
    fn create(&self, identity: &Identity) -> io::Result<()> {
        let folder = match self.0.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => Path::new("/"),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        // A name that no other program takes: it is this key's.
        let name = format!(".key-{:?}", identity.key());
        let whole = folder.join(name);
        let written = write(&whole, &identity.to_pem());
        // The file appears with all its content, and never in place of another.
        let linked = written.and_then(|()| match fs::hard_link(&whole, &self.0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
        let removed = fs::remove_file(&whole);
        linked?;
        removed?;
        File::open(folder)?.sync_all()
    }
}

/// Writes a new file that only its owner can read, and waits until it is on disk.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::thread;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(|entry| name(entry.unwrap())).collect()
    }

    /// The error of opening the key in `folder`, as text, without the folder's name.
    fn error(folder: &tempfile::TempDir) -> String {
        let file = KeyFile::at(folder.path().join("key"));
        let error = file.open().unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn the_key_is_made_at_first_use_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("new/hawser");
        let file = KeyFile::at(ours.join("key"));
        let made = file.open().unwrap();
        assert_eq!(file.open().unwrap().key(), made.key());
        assert_eq!(mode(file.path()), 0o600);
        assert_eq!(mode(&ours), 0o700);
        assert_eq!(names(&ours), ["key"]);
        let pem = fs::read_to_string(file.path()).unwrap();
        assert_eq!(pem, made.to_pem());
    }

    #[test]
    fn a_check_makes_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::at(folder.path().join("new/key"));
        assert!(!file.check().unwrap());
        assert!(!folder.path().join("new").exists());
        file.open().unwrap();
        assert!(file.check().unwrap());
        fs::set_permissions(file.path(), PermissionsExt::from_mode(0o644)).unwrap();
        let error = file.check().unwrap_err();
        assert!(matches!(error, KeyFileError::Open { mode: 0o644, .. }));
    }

    #[test]
    fn programs_that_begin_at_once_have_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hawser/key");
        let open = || KeyFile::at(&path).open().unwrap().key();
        let keys: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(open)).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap();
            threads.into_iter().map(join).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        assert_eq!(names(path.parent().unwrap()), ["key"]);
    }

    #[test]
    fn a_key_that_is_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = KeyFile::at(&path).open().unwrap().key();
        for wrong in [0o640, 0o604, 0o620, 0o777] {
            fs::set_permissions(&path, PermissionsExt::from_mode(wrong)).unwrap();
            let expected = format!("the key key is open to others (mode {wrong:04o}): `chmod 600`");
            let error = error(&folder);
            assert!(error.starts_with(&expected), "{error}");
        }
        fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
        assert_eq!(KeyFile::at(&path).open().unwrap().key(), key);
    }

    #[test]
    fn what_is_not_a_key_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for text in ["", "hello\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n"] {
            let _ = fs::remove_file(&path);
            write(&path, text).unwrap();
            let error = error(&folder);
            assert!(error.starts_with("key is not a key: "), "{error}");
            assert!(!error.contains('\n'), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(error(&folder), "cannot read the key key: it is not a file");
        fs::remove_dir(&path).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        let cwd = rustix::fs::CWD;
        rustix::fs::mknodat(cwd, &path, fifo, 0o600.into(), 0).unwrap();
        assert_eq!(error(&folder), "cannot read the key key: it is not a file");
        fs::remove_file(&path).unwrap();
        // A link to nothing is not replaced.
        symlink("nothing", &path).unwrap();
        assert!(error(&folder).starts_with("cannot read the key key: No such file"));
        assert_eq!(names(folder.path()), ["key"]);
    }

    #[test]
    fn a_key_that_cannot_be_made_is_one_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = KeyFile::at(folder.path().join("file/key")).open();
        let error = error.unwrap_err().to_string();
        assert!(error.contains("file/key: Not a directory"), "{error}");
    }
}
