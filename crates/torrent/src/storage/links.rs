//! The symbolic links of a torrent (BEP 47) on disk.

use std::path::Path;

use rustix::io::Errno;

use super::{Files, StorageError};

impl Files {
    /// Makes the links, each relative to the folder that it is in. One that is there already stays,
    /// and so does anything else in its place.
    ///
    /// # Errors
    /// When something is in the way, or the disk does not take it.
    pub(super) fn make_links(&self) -> Result<(), StorageError> {
        for (path, target) in self.layout().links() {
            self.make_link(path, target)?;
        }
        Ok(())
    }

    fn make_link(&self, path: &Path, target: &Path) -> Result<(), StorageError> {
        let Some(folder) = self.make_folders_of(path)? else {
            return Ok(());
        };
        let name = path.file_name().unwrap_or_default();
        match rustix::fs::symlinkat(target, &folder, name) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => {
                let there = rustix::fs::readlinkat(&folder, name, Vec::new());
                match there {
                    Ok(there) if Path::new(&*there.to_string_lossy()) == target => Ok(()),
                    _ => Err(StorageError::NotTheLink {
                        path: self.root().join(path),
                        target: target.to_owned(),
                    }),
                }
            }
            Err(errno) => Err(StorageError::io(
                "make the symbolic link",
                &self.root().join(path),
                errno.into(),
            )),
        }
    }
}
