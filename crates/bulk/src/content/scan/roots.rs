//! Where the entries of a scan are on disk.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_store::{Folder, StoreError};

use crate::content::manifest::Entry;

/// The folders that entries are in; each has the entries from its first one to the next root's.
#[derive(Debug, Default)]
pub(crate) struct Roots(Vec<Root>);

#[derive(Debug, Clone)]
pub(super) struct Root {
    /// Index of its first entry.
    first: usize,
    pub folder: Arc<Folder>,
    names: Names,
}

/// The relation of paths in the folder to paths of entries.
#[derive(Debug, Clone)]
pub(super) enum Names {
    /// They are the same.
    Same,
    /// Entries have the name of the folder before them.
    Below,
    /// The only entry has this name in the folder.
    File(OsString),
}

impl Roots {
    /// Appends a folder, in which no link is followed.
    pub(super) fn push(&mut self, first: usize, folder: Arc<Folder>, names: Names) {
        self.0.push(Root {
            first,
            folder,
            names,
        });
    }

    /// Opens the file of an entry.
    pub fn open(&self, index: usize, entry: &Entry) -> Result<File, StoreError> {
        let root = self.root(index);
        root.folder.read_file(&root.relative(entry))
    }

    /// The roots of some of the entries, ascending, as a list of its own.
    pub fn of(&self, entries: impl IntoIterator<Item = usize>) -> Self {
        let mut roots: Vec<Root> = Vec::new();
        let mut last = None;
        for (first, entry) in entries.into_iter().enumerate() {
            let root = self.root(entry);
            if last != Some(root.first) {
                last = Some(root.first);
                roots.push(Root {
                    first,
                    ..root.clone()
                });
            }
        }
        Self(roots)
    }

    /// The path of an entry, for messages.
    pub fn path_of(&self, index: usize, entry: &Entry) -> PathBuf {
        let root = self.root(index);
        root.folder.path().join(root.relative(entry))
    }

    /// The root of an entry. There is one: the first one begins at entry 0.
    pub(super) fn root(&self, index: usize) -> &Root {
        let after = self.0.partition_point(|root| root.first <= index);
        &self.0[after.saturating_sub(1)]
    }
}

impl Root {
    /// The path of an entry in the folder.
    pub(super) fn relative(&self, entry: &Entry) -> PathBuf {
        match &self.names {
            Names::Same => entry.path.clone(),
            Names::Below => entry.path.components().skip(1).collect(),
            Names::File(name) => Path::new(name).to_owned(),
        }
    }
}
