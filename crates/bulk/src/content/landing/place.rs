//! Where the entries of a manifest are below the folder of the sink.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hawser_store::{Folder, FoundKind, Handles, StoreError};

use super::LandingError;
use super::part_name::part_name;
use super::unfinished::Unfinished;
use crate::content::manifest::{EntryKind, Manifest};

/// The folder that entries are written to, and the folders in it.
#[derive(Debug)]
pub(super) struct Place {
    manifest: Arc<Manifest>,
    root: Arc<Folder>,
    /// The name of the only entry at the top, instead of its own.
    name: Option<OsString>,
    /// By entry of the directory.
    folders: Handles<Folder>,
    /// The mark of a directory that this landing creates at a new name, until it is finished.
    unfinished: Option<Unfinished>,
}

impl Place {
    /// Applies the rule of `scp`: into `path` if that is a folder, else as `path`. Creates the
    /// folders that it needs. A folder that an unfinished landing of the same `sender` has created at
    /// `path` does not count as one that was there: the landing continues in it.
    pub fn resolve(
        manifest: Arc<Manifest>,
        folder: &Path,
        path: &Path,
        sender: &str,
    ) -> Result<Self, LandingError> {
        let is_plain = |component| matches!(component, Component::Normal(_) | Component::CurDir);
        let bytes = path.as_os_str().as_bytes();
        if !path.components().all(is_plain) || bytes.contains(&0) {
            return Err(LandingError::Path(path.to_owned()));
        }
        let place = |root: Folder, name: Option<&OsStr>| Self {
            manifest: Arc::clone(&manifest),
            root: Arc::new(root),
            name: name.map(OsStr::to_owned),
            folders: Handles::default(),
            unfinished: None,
        };
        let folder = Folder::create(folder)?.without_links();
        let Some(name) = path.file_name() else {
            return Ok(place(folder, None));
        };
        let folder = create_all(folder, path.parent().unwrap_or(Path::new("")))?;
        let mut tops =
            (0..manifest.entries().len()).filter(|entry| manifest.parent(*entry).is_none());
        let only = (tops.next(), tops.next());
        let renamed = match only {
            (Some(top), None) if !bytes.ends_with(b"/") => Some(&manifest.entries()[top]),
            _ => None,
        };
        let found = folder.find(name)?.map(|found| found.kind);
        if let Some(top) = renamed
            && matches!(top.kind, EntryKind::Directory)
            && matches!(found, None | Some(FoundKind::Folder))
        {
            let unfinished = Unfinished::new(name, sender, &top.path);
            let is_ours = match found {
                None => unfinished.mark(&folder).map(|()| true)?,
                Some(_) => unfinished.is_marked(&folder)?,
            };
            if is_ours {
                return Ok(Self {
                    unfinished: Some(unfinished),
                    ..place(folder, Some(name))
                });
            }
        }
        match (found, renamed.map(|top| &top.kind)) {
            (Some(FoundKind::Folder), _) => Ok(place(folder.folder(name.as_ref())?, None)),
            (None, Some(_)) | (Some(_), Some(EntryKind::File { .. } | EntryKind::Link { .. })) => {
                Ok(place(folder, Some(name)))
            }
            (None, None) => Ok(place(create_all(folder, name.as_ref())?, None)),
            (Some(_), _) => Err(StoreError::NotAFolder(folder.path().join(name)).into()),
        }
    }

    /// Removes the mark of an unfinished landing: from now on the directory counts as any other.
    pub fn settle(&self) -> Result<(), StoreError> {
        match &self.unfinished {
            Some(unfinished) => unfinished.unmark(&self.root),
            None => Ok(()),
        }
    }

    /// The folder of the transfer.
    pub fn root(&self) -> &Folder {
        &self.root
    }

    /// The folder that contains an entry.
    pub fn folder_of(&self, entry: usize) -> Result<Arc<Folder>, StoreError> {
        match self.manifest.parent(entry) {
            None => Ok(Arc::clone(&self.root)),
            Some(parent) => self
                .folders
                .get(parent, || self.root.folder(&self.below(parent))),
        }
    }

    /// The name of an entry in its folder.
    pub fn name_of(&self, entry: usize) -> &OsStr {
        let own = || {
            self.manifest.entries()[entry]
                .path
                .file_name()
                .unwrap_or_default()
        };
        match &self.name {
            Some(name) if self.manifest.parent(entry).is_none() => name,
            _ => own(),
        }
    }

    /// The name of an entry's file while it is unfinished.
    pub fn part_name_of(&self, entry: usize) -> OsString {
        part_name(self.name_of(entry))
    }

    /// The path of an entry, for messages.
    pub fn path_of(&self, entry: usize) -> PathBuf {
        self.root.path().join(self.below(entry))
    }

    /// The path of an entry in the root.
    fn below(&self, entry: usize) -> PathBuf {
        let path = &self.manifest.entries()[entry].path;
        match &self.name {
            None => path.clone(),
            Some(name) => std::iter::once(name.as_os_str())
                .chain(path.iter().skip(1))
                .collect(),
        }
    }
}

/// Opens the folder at `path` below `folder`; creates what does not exist of it.
fn create_all(folder: Folder, path: &Path) -> Result<Folder, StoreError> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut folder = folder;
    for name in names {
        folder.create_folder_at(name, 0o777)?;
        folder = folder.folder(name.as_ref())?;
    }
    Ok(folder)
}
