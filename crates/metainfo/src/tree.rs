//! The `file tree` of version 2 (BEP 52): the files of a torrent, by folders.

use hawser_bencode::Dict;

use super::error::MetainfoError;
use super::listed::{self, EntryKind, Listed};
use super::name::{self, MAX_PATH_DEPTH};
use hawser_merkle::Hash;

/// A file of the tree.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    /// Its path as it is in the torrent, from the torrent's folder on.
    pub elements: Vec<&'a [u8]>,
    /// Bytes; 0 for a link.
    pub length: u64,
    /// The root of its merkle tree (`pieces root`); zeros if it has no bytes.
    pub root: Hash,
    /// Where it leads, if it is a link (BEP 47).
    link: Option<Vec<String>>,
}

impl Leaf<'_> {
    /// Its path, each element made safe.
    pub fn path(&self) -> Vec<String> {
        let elements = self.elements.iter();
        elements
            .map(|element| name::sanitize_or_blank(element))
            .collect()
    }

    /// The file as the list of version 1 would have it.
    pub fn listed(self) -> Result<Listed, MetainfoError> {
        let (path, original) = listed::safe_path(&self.elements)?;
        let literal = original
            .as_ref()
            .and_then(|_| name::literal(&self.elements));
        Ok(Listed {
            path,
            original,
            literal,
            length: self.length,
            kind: self.link.map_or(EntryKind::Content, EntryKind::Link),
        })
    }
}

/// Reads the files of the tree of `info`, in its order.
///
/// # Errors
/// If there is none, or it is malformed.
pub(super) fn read<'a>(info: &Dict<'a>) -> Result<Vec<Leaf<'a>>, MetainfoError> {
    let tree = info.dict("file tree");
    let tree = tree.ok_or(MetainfoError::field("info.file tree", "a dictionary"))?;
    let mut leaves = Vec::new();
    walk(tree, &mut Vec::new(), &mut leaves)?;
    Ok(leaves)
}

/// Gathers the files below a folder.
fn walk<'a>(
    folder: &Dict<'a>,
    path: &mut Vec<&'a [u8]>,
    leaves: &mut Vec<Leaf<'a>>,
) -> Result<(), MetainfoError> {
    let malformed = |why: String| Err(MetainfoError::VersionTwo(why));
    for (key, value) in &folder.entries {
        let shown = name::printable(key);
        let Some(inner) = value.as_dict() else {
            return malformed(format!("{shown} is not a dictionary"));
        };
        if key.is_empty() {
            return malformed("a file of its tree has no name".to_owned());
        }
        if path.len() >= MAX_PATH_DEPTH {
            return malformed("its folders are too deep".to_owned());
        }
        path.push(key);
        match inner.find("") {
            // The description of a file has an empty name.
            Some(file) if inner.entries.len() == 1 => {
                let Some(file) = file.as_dict() else {
                    return malformed(format!("{shown} is not a dictionary"));
                };
                leaves.push(leaf(file, path, &shown)?);
            }
            Some(_) => return malformed(format!("{shown} is a file and a folder")),
            None => walk(inner, path, leaves)?,
        }
        path.pop();
    }
    Ok(())
}

/// A file, which must have a root unless it is empty.
fn leaf<'a>(file: &Dict<'a>, path: &[&'a [u8]], shown: &str) -> Result<Leaf<'a>, MetainfoError> {
    let attr = file.bytes("attr").unwrap_or_default();
    if attr.contains(&b'p') {
        let why = format!("version 2 has {shown} as padding");
        return Err(MetainfoError::VersionTwo(why));
    }
    let mut leaf = Leaf {
        elements: path.to_vec(),
        length: 0,
        root: [0; 32],
        link: None,
    };
    if attr.contains(&b'l') {
        leaf.link = listed::link_target(file, attr)?;
        return Ok(leaf);
    }
    leaf.length = listed::length(file, "info.file tree[].length", || shown.to_owned())?;
    if leaf.length > 0 {
        let root = file.bytes("pieces root").unwrap_or_default();
        let root = Hash::try_from(root).ok().filter(|root| *root != [0; 32]);
        let why = || MetainfoError::VersionTwo(format!("{shown} has no valid `pieces root`"));
        leaf.root = root.ok_or_else(why)?;
    }
    Ok(leaf)
}
