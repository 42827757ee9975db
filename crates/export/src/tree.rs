//! The files of an export, written by difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::ExportError;

/// Files by name, relative to a folder.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<String, Content>);

/// The content of a file.
#[derive(Clone, PartialEq, Eq)]
struct Content {
    bytes: Vec<u8>,
    is_secret: bool,
}

/// Shows the size only: files have keys in them.
impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

/// What writing has changed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changes {
    pub written: usize,
    pub removed: usize,
    pub unchanged: usize,
}

impl Tree {
    /// Adds a file that everybody may read.
    pub fn insert(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.put(name.into(), bytes.into(), false);
    }

    /// Adds a file with keys, for its owner only.
    pub fn insert_secret(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.put(name.into(), bytes.into(), true);
    }

    fn put(&mut self, name: String, bytes: Vec<u8>, is_secret: bool) {
        self.0.insert(name, Content { bytes, is_secret });
    }

    /// The names of the files.
    pub fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    /// The bytes of all files together.
    pub fn bytes(&self) -> u64 {
        let sizes = self.0.values().map(|content| content.bytes.len() as u64);
        sizes.sum()
    }

    /// The content of a file.
    #[cfg(test)]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(|content| content.bytes.as_slice())
    }

    /// What is to be done in `folder`, whose files of the export before are `known`. Writes nothing.
    ///
    /// # Errors
    /// When something is in the way that is not `known`, or a file cannot be read.
    pub fn compare<'a>(
        &'a self,
        folder: &Path,
        known: &BTreeSet<String>,
    ) -> Result<Difference<'a>, ExportError> {
        let mut difference = Difference::default();
        for (name, content) in &self.0 {
            let path = folder.join(name);
            match content.state(&path)? {
                State::Same => difference.unchanged += 1,
                State::Missing => difference.writes.push((path, content)),
                State::Other if known.contains(name) => difference.writes.push((path, content)),
                State::Other | State::NotAFile => return Err(ExportError::Foreign(path)),
            }
        }
        for name in known.iter().filter(|name| !self.0.contains_key(*name)) {
            let path = folder.join(name);
            // What somebody has put into its place is not ours.
            if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
                difference.removals.push(path);
            }
        }
        Ok(difference)
    }
}

/// What is at the place of a file.
enum State {
    Missing,
    Same,
    Other,
    NotAFile,
}

impl Content {
    fn mode(&self) -> u32 {
        if self.is_secret { 0o600 } else { 0o644 }
    }

    fn state(&self, path: &Path) -> Result<State, ExportError> {
        let found = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(State::Missing),
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(State::NotAFile),
            found => found.map_err(ExportError::at(path))?,
        };
        if !found.is_file() {
            return Ok(State::NotAFile);
        }
        let closed = !self.is_secret || found.permissions().mode() & 0o077 == 0;
        let same_size = found.len() == self.bytes.len() as u64;
        let same =
            closed && same_size && fs::read(path).map_err(ExportError::at(path))? == self.bytes;
        Ok(if same { State::Same } else { State::Other })
    }
}

/// What is to be done in a folder.
#[derive(Debug, Default)]
pub(crate) struct Difference<'a> {
    writes: Vec<(PathBuf, &'a Content)>,
    removals: Vec<PathBuf>,
    unchanged: usize,
}

impl Difference<'_> {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.removals.is_empty()
    }

    /// Writes and removes files below `folder`; folders that become empty are removed too. Each file is
    /// replaced whole; all are on disk when this returns.
    pub fn apply(self, folder: &Path) -> Result<Changes, ExportError> {
        let changes = Changes {
            written: self.writes.len(),
            removed: self.removals.len(),
            unchanged: self.unchanged,
        };
        let mut made = BTreeSet::new();
        for (path, content) in &self.writes {
            if let Some(parent) = path.parent()
                && made.insert(parent.to_owned())
            {
                create(parent)?;
            }
            replace(path, content).map_err(ExportError::at(path))?;
        }
        for path in &self.removals {
            fs::remove_file(path).map_err(ExportError::at(path))?;
            let mut above = path.parent();
            // One that is not empty stays.
            while let Some(parent) = above.filter(|parent| *parent != folder)
                && fs::remove_dir(parent).is_ok()
            {
                above = parent.parent();
            }
        }
        if !(self.writes.is_empty() && self.removals.is_empty()) {
            sync(folder)?;
        }
        Ok(changes)
    }
}

/// Makes a folder for its owner only, with those above it.
pub(crate) fn create(folder: &Path) -> Result<(), ExportError> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(ExportError::at(folder))
}

/// Brings all that was written to the file system of a folder to the disk: once, as one call for each of
/// hundreds of files takes seconds.
pub(crate) fn sync(folder: &Path) -> Result<(), ExportError> {
    let opened = File::open(folder).map_err(ExportError::at(folder))?;
    rustix::fs::syncfs(&opened).map_err(|error| ExportError::at(folder)(error.into()))
}

fn replace(path: &Path, content: &Content) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(content.mode());
    let written = file
        .open(&new)
        .and_then(|mut file| file.write_all(&content.bytes))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The error that is returned says more.
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 5] = ["a", "b", "x/a", "x/y/b", "z/c"];

    fn trees() -> impl Strategy<Value = Vec<Tree>> {
        let file = (0..NAMES.len(), "[a-c]{0,2}", any::<bool>());
        let tree = prop::collection::vec(file, 0..8).prop_map(|files| {
            let mut tree = Tree::default();
            for (name, text, is_secret) in files {
                tree.put(NAMES[name].to_owned(), text.into_bytes(), is_secret);
            }
            tree
        });
        prop::collection::vec(tree, 1..6)
    }

    /// The files below a folder, with their contents.
    fn files(folder: &Path, below: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(folder, &path, found);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_string_lossy();
            found.insert(name.into_owned(), fs::read(&path).unwrap());
        }
    }

    proptest! {
        /// One export after the other: the folder has the files of the last and a foreign one, keys are
        /// closed to others, and the same again writes nothing.
        #[test]
        fn folders_have_the_last_tree_and_what_is_not_ours(trees in trees()) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            create(&path.join("x")).unwrap();
            fs::write(path.join("x/foreign"), "kept").unwrap();
            let mut known = BTreeSet::new();
            for tree in trees {
                let difference = tree.compare(path, &known).unwrap();
                let changes = difference.apply(path).unwrap();
                prop_assert_eq!(changes.written + changes.unchanged, tree.0.len());
                known = tree.names();
                let mut found = BTreeMap::new();
                files(path, path, &mut found);
                prop_assert_eq!(found.remove("x/foreign"), Some(b"kept".to_vec()));
                let expected: BTreeMap<_, _> =
                    tree.0.iter().map(|(name, c)| (name.clone(), c.bytes.clone())).collect();
                prop_assert_eq!(found, expected);
                for (name, _) in tree.0.iter().filter(|(_, content)| content.is_secret) {
                    let mode = fs::metadata(path.join(name)).unwrap().permissions().mode();
                    prop_assert_eq!(mode & 0o077, 0);
                }
                prop_assert!(tree.compare(path, &known).unwrap().is_empty());
                prop_assert!(path.join("z").exists() == tree.0.contains_key("z/c"));
            }
        }
    }

    #[test]
    fn foreign_files_are_never_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut tree = Tree::default();
        tree.insert("a/b", "ours");
        let refused = |known: &BTreeSet<String>| {
            let error = tree.compare(path, known).unwrap_err();
            matches!(error, ExportError::Foreign(_))
        };
        create(&path.join("a")).unwrap();
        fs::write(path.join("a/b"), "theirs").unwrap();
        assert!(refused(&BTreeSet::new()));
        // Not even if it has taken the place of one of ours.
        fs::remove_file(path.join("a/b")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", path.join("a/b")).unwrap();
        assert!(refused(&tree.names()));
        fs::remove_file(path.join("a/b")).unwrap();
        fs::remove_dir(path.join("a")).unwrap();
        fs::write(path.join("a"), "a file where a folder is needed").unwrap();
        assert!(refused(&tree.names()));
        let none = Tree::default();
        assert!(none.compare(path, &tree.names()).unwrap().is_empty());
    }
}
