//! Other names for files and folders while they are downloaded into.

use std::path::{Path, PathBuf};

use super::Files;
use crate::error::StoreError;
use crate::partial_names::part_name;

impl Files {
    /// Gives a file or folder of the layout another path in the same folder, on disk and here; what does not exist
    /// yet is created there. No bytes are read or written meanwhile, and open files stay open. Does nothing
    /// if no entry has the path, or the files are for reading only. The new path must be none of the layout.
    ///
    /// # Errors
    /// If something has that path, or a system call fails. Nothing is changed then.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let Some(writable) = &self.writable else {
            return Ok(());
        };
        let _created = writable.created();
        let _moving = writable.parts.moving();
        let _renaming = writable.names.lock();
        let mut renamed: Vec<(usize, PathBuf)> = Vec::new();
        let mut file = None;
        for (entry, _) in self.layout.on_disk() {
            let path = self.full_name(entry);
            if *path == *from {
                file = Some(entry);
                renamed.push((entry, to.to_owned()));
            } else if let Ok(inner) = path.strip_prefix(from) {
                renamed.push((entry, to.join(inner)));
            }
        }
        // A look at a file that is not found waits until this is done.
        for (entry, _) in &renamed {
            writable.names.note_rename(*entry);
        }
        let is_partial = file.is_some_and(|entry| writable.names.is_partial(entry));
        match part_name(from).filter(|_| is_partial) {
            Some(partial) => {
                // A name that is too long for the suffix has none.
                let to = part_name(to).unwrap_or_else(|| to.to_owned());
                writable.folder.rename_path(&partial, &to)?;
            }
            None => writable.folder.rename_path(from, to)?,
        }
        writable.names.set_paths(renamed);
        Ok(())
    }
}
