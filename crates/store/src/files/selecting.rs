//! Files that are selected or not while they are downloaded into.

use std::fs::File;
use std::path::PathBuf;

use super::{Files, Writable};
use crate::error::StoreError;
use crate::parts;

impl Files {
    /// Selects the entries for which `is_selected` is true, and no others. What the part file has of
    /// an entry that becomes selected moves to the entry's own file. A file that exists stays where
    /// it is when it is no longer selected. Does nothing if the files are for reading only. Blocks
    /// while bytes are moved, and keeps all others from being read and written meanwhile.
    ///
    /// # Errors
    /// If something is in the way of a file, then nothing is changed; or if a system call fails, then
    /// the selection is as it was for the files that are not moved yet.
    pub fn select(&self, is_selected: impl Fn(usize) -> bool) -> Result<(), StoreError> {
        let Some(writable) = &self.writable else {
            return Ok(());
        };
        let created = writable.created();
        let _moving = writable.parts.moving();
        let entries = self.layout.on_disk().map(|(entry, _)| entry);
        let (selected, others): (Vec<usize>, Vec<usize>) = entries.partition(|it| is_selected(*it));
        let held = |entry: &usize| writable.parts.holds(*entry);
        for entry in selected.iter().copied().filter(held) {
            self.refuse_obstacle(entry, writable)?;
        }
        for entry in selected {
            if writable.parts.holds(entry) {
                self.take_place(entry, writable, *created)?;
            }
            writable.parts.set_skipped(entry, false);
        }
        for entry in others {
            writable.parts.set_skipped(entry, true);
            let path = self.own_place(entry);
            // Nothing was written, so an empty file is there for the lock alone.
            let is_empty = match writable.folder.metadata(&path) {
                Ok(found) => found.is_none_or(|found| found.len() == 0),
                Err(_) => false,
            };
            if !*created && is_empty {
                writable.parts.set_held(entry, true);
            }
        }
        Ok(())
    }

    /// Creates the files of entries that are not selected, but get bytes which the part file has no
    /// place for: they were requested before the selection changed.
    pub(super) fn place(&self, entries: &[usize], writable: &Writable) -> Result<(), StoreError> {
        let created = writable.created();
        let _moving = writable.parts.moving();
        for entry in entries {
            if writable.parts.holds(*entry) {
                self.refuse_obstacle(*entry, writable)?;
                self.take_place(*entry, writable, *created)?;
            }
        }
        Ok(())
    }

    /// Refuses what is at the path of an entry that has no file yet, unless it belongs to the
    /// download or may be overwritten.
    fn refuse_obstacle(&self, entry: usize, writable: &Writable) -> Result<(), StoreError> {
        let (own, place) = (&self.layout.entries[entry], self.own_place(entry));
        let path: PathBuf = self.root.join(&place);
        let Some(found) = writable.folder.metadata(&place)? else {
            return Ok(());
        };
        if !found.is_file() {
            return Err(StoreError::NotAFile(path));
        }
        if writable.options.overwrite || found.len() == 0 {
            return Ok(());
        }
        if found.len() > own.length {
            return Err(StoreError::TooLong {
                path,
                found: found.len(),
                expected: own.length,
            });
        }
        let file = writable.folder.read_file(&place)?;
        let is_own = writable.mark.is_on(&file) == Some(true);
        let is_hole = parts::next_data(&file, 0..found.len()).is_none();
        match is_own || is_hole {
            true => Ok(()),
            false => Err(StoreError::Foreign(path)),
        }
    }

    /// Moves what the part file has of an entry to the entry's own file, which is created if there
    /// is anything to move, or if `create` is true.
    fn take_place(
        &self,
        entry: usize,
        writable: &Writable,
        create: bool,
    ) -> Result<(), StoreError> {
        let own = &self.layout.entries[entry];
        let parts = self.open_part_file(writable)?;
        let moved = writable.parts.parts_of(own.bytes()).into_iter();
        let moved: Vec<_> = moved
            .filter(|(_, from)| {
                let parts = parts.as_ref();
                parts.is_some_and(|parts| parts::next_data(parts, from.clone()).is_some())
            })
            .collect();
        if create || !moved.is_empty() {
            self.grow(entry, writable)?;
        }
        if let (Some(parts), false) = (&parts, moved.is_empty()) {
            let place = self.own_place(entry);
            let file = writable.folder.open_file(&place)?;
            for (to, from) in &moved {
                parts::copy(parts, from.clone(), &file, *to)
                    .map_err(|error| StoreError::io("write", &self.root.join(&place), error))?;
            }
        }
        writable.parts.set_held(entry, false);
        self.handles.close(entry);
        if writable.names.is_complete(entry) {
            self.finish_name(entry, writable)?;
        }
        if !moved.is_empty() {
            writable.changes.note(entry);
        }
        for (_, from) in moved {
            parts
                .iter()
                .for_each(|parts| parts::punch(parts, from.clone()));
            writable.changes.note_parts();
        }
        Ok(())
    }

    /// The part file, open for reading and writing, if it exists.
    fn open_part_file(&self, writable: &Writable) -> Result<Option<File>, StoreError> {
        match writable.folder.open_file(&writable.parts.path) {
            Err(error) if error.is_not_found() => Ok(None),
            file => file.map(Some),
        }
    }
}
