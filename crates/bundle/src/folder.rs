//! Bundles as folders.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::bundle::Bundle;
use crate::name;

/// A bundle cannot be written to or read from a folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path}: {source}", path = path.display())]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl WriteError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            path: path.to_owned(),
            source,
        }
    }
}

impl Bundle {
    /// Writes the files to a new folder, closed to other users, whole or not at all: beside it
    /// first, to the disk, and then renamed. Keys and the manifest get mode 0600.
    ///
    /// # Errors
    /// When the folder exists already (and is not empty), or a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), WriteError> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let new = folder.with_file_name(format!(".{name}.new"));
        if new.exists() {
            // Left by a process that ended in the middle.
            fs::remove_dir_all(&new).map_err(WriteError::at(&new))?;
        }
        let written = self.write_files(&new).and_then(|()| {
            fs::rename(&new, folder).map_err(WriteError::at(folder))?;
            sync_parent(folder)
        });
        if written.is_err() {
            // The error that is returned says more.
            let _ = fs::remove_dir_all(&new);
        }
        written
    }

    fn write_files(&self, folder: &Path) -> Result<(), WriteError> {
        let create = |path: &Path| {
            let mut builder = DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(path);
            made.map_err(WriteError::at(path))
        };
        create(folder)?;
        let mut folders = vec![folder.to_owned()];
        for (name, bytes) in self.files() {
            let path = folder.join(name);
            if let Some(parent) = path.parent().filter(|p| !folders.iter().any(|f| f == p)) {
                create(parent)?;
                folders.push(parent.to_owned());
            }
            let mode = if name::is_secret(name) { 0o600 } else { 0o644 };
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(mode).open(&path);
            file.and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .map_err(WriteError::at(&path))?;
        }
        for folder in folders {
            sync(&folder)?;
        }
        Ok(())
    }

    /// Reads the files of a folder; such as have names that a bundle cannot have (sockets,
    /// temporary files) are left out.
    ///
    /// # Errors
    /// When the folder or a file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, WriteError> {
        let mut bundle = Self::default();
        bundle.read_folder(folder, folder)?;
        Ok(bundle)
    }

    fn read_folder(&mut self, root: &Path, folder: &Path) -> Result<(), WriteError> {
        for entry in fs::read_dir(folder).map_err(WriteError::at(folder))? {
            let entry = entry.map_err(WriteError::at(folder))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(WriteError::at(&path))?;
            let name = path.strip_prefix(root).unwrap_or(&path);
            if name::check(name).is_err() {
                continue;
            }
            if kind.is_dir() {
                self.read_folder(root, &path)?;
            } else if kind.is_file() {
                let bytes = fs::read(&path).map_err(WriteError::at(&path))?;
                // The name has been checked.
                let _ = self.insert(&name.to_string_lossy(), bytes);
            }
        }
        Ok(())
    }
}

/// Writes a folder's entries to the disk.
fn sync(folder: &Path) -> Result<(), WriteError> {
    let opened = File::open(folder);
    opened
        .and_then(|folder| folder.sync_all())
        .map_err(WriteError::at(folder))
}

fn sync_parent(path: &Path) -> Result<(), WriteError> {
    match path.parent().filter(|parent| *parent != Path::new("")) {
        Some(parent) => sync(parent),
        None => sync(Path::new(".")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::bundle::tests::example;

    #[test]
    fn folders_are_written_whole_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("as");
        // What a killed process left is no obstacle.
        fs::create_dir(folder.path().join(".as.new")).unwrap();
        example().write(&at).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mode = |name: &str| at.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(""), 0o700);
        assert_eq!(mode("keys/master0.key"), 0o600);
        assert_eq!(mode("hawser.json"), 0o600);
        assert_eq!(mode("topology.json"), 0o644);
        let _socket = UnixListener::bind(at.join("router.sock")).unwrap();
        fs::write(at.join(".hidden"), "x").unwrap();
        assert_eq!(Bundle::read(&at).unwrap(), example());
    }

    #[test]
    fn an_existing_folder_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("as");
        fs::create_dir(&at).unwrap();
        fs::write(at.join("file"), "mine").unwrap();
        let error = example().write(&at).unwrap_err().to_string();
        assert!(error.contains("as"), "{error}");
        assert_eq!(fs::read(at.join("file")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_where_a_folder_is_needed_is_an_error_that_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut bundle = Bundle::default();
        bundle.insert("a", "x").unwrap();
        bundle.insert("a/b", "x").unwrap();
        assert!(bundle.write(&folder.path().join("as")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
