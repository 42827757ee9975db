//! `export.json`: what an export has written, so that the next one changes what differs only.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};

use hawser_topology::IsdAsn;
use serde::{Deserialize, Serialize};

use crate::error::ExportError;
use crate::keys::Roles;

/// The name of the file.
pub(crate) const INDEX: &str = "export.json";
/// The format that this version writes, and the newest that it reads.
const FORMAT: u32 = 1;
/// Largest file that is read, in bytes: a network of 500 ASes takes 0.2 MiB.
const MAX_INDEX: u64 = 64 << 20;

/// What an export has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    format: u32,
    /// The program that the export is for.
    pub to: String,
    /// The name of the export.
    pub name: String,
    /// The files, relative to the folder.
    pub files: BTreeSet<String>,
    /// The roles of the ASes that the keys were made for.
    pub roles: Roles,
    /// When the keys were made, in Unix seconds.
    pub keys_made: u64,
    /// The segments; `None` before they are made.
    pub segments: Option<MadeSegments>,
    /// How many ConfigMaps the pods of Kubernetes mount for the segments.
    #[serde(default)]
    pub config_maps: usize,
    /// The versions of the ASes' configurations.
    pub versions: BTreeMap<IsdAsn, Version>,
}

/// Segments that were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeSegments {
    /// Hash of what they were made from.
    pub of: String,
    /// Time of creation, in Unix seconds.
    pub made: u64,
    /// Time of expiry, in Unix seconds.
    pub expiry: u64,
    /// How many they are.
    pub count: usize,
    /// How many files they take.
    pub parts: usize,
}

/// The version of an AS's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// Its number, which grows with each change.
    pub number: u64,
    /// Hash of the configuration without its number.
    pub of: String,
}

impl Index {
    /// The index of an export that has written nothing yet.
    pub fn new(to: &str, name: &str) -> Self {
        Self {
            format: FORMAT,
            to: to.to_owned(),
            name: name.to_owned(),
            files: BTreeSet::new(),
            roles: Roles::new(),
            keys_made: 0,
            segments: None,
            config_maps: 0,
            versions: BTreeMap::new(),
        }
    }

    /// Reads the index of a folder; `None` if it has none.
    pub fn read(folder: &Path) -> Result<Option<Self>, ExportError> {
        use std::io::Read;
        let path = folder.join(INDEX);
        let mut bytes = Vec::new();
        let file = match std::fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(ExportError::at(&path))?,
        };
        let read = file.take(MAX_INDEX + 1).read_to_end(&mut bytes);
        read.map_err(ExportError::at(&path))?;
        let parsed = match bytes.len() as u64 > MAX_INDEX {
            true => Err(format!("it has more than {MAX_INDEX} bytes")),
            false => Self::parse(&bytes),
        };
        parsed
            .map(Some)
            .map_err(|reason| ExportError::Index { path, reason })
    }

    /// Reads an index. The error says what is wrong.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let damaged = |error: serde_json::Error| format!("it is damaged ({error})");
        let Format { format } = serde_json::from_slice(bytes).map_err(damaged)?;
        if format > FORMAT {
            return Err(format!("it is of format {format}, of a newer hawser"));
        }
        let read: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        // Files of these names are removed.
        match read.files.iter().find(|name| !is_plain(name)) {
            Some(name) => Err(format!("it names {name:?}, which is not below its folder")),
            None => Ok(read),
        }
    }

    /// The file: JSON.
    pub fn to_json(&self) -> Vec<u8> {
        // Plain data with text keys can always be written as JSON.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// Whether a name is relative, and leads to nothing outside.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;

    use super::*;

    fn index() -> Index {
        let mut index = Index::new("kubernetes", "hawser");
        index.files = ["a.yaml".to_owned(), "x/b.yaml".to_owned()].into();
        index.segments = Some(MadeSegments {
            of: "00".to_owned(),
            made: 1,
            expiry: 2,
            count: 3,
            parts: 1,
        });
        let version = Version {
            number: 7,
            of: "ff".to_owned(),
        };
        index
            .versions
            .insert("1-ff00:0:110".parse().unwrap(), version);
        index
    }

    #[test]
    fn an_index_is_read_back() {
        assert_eq!(Index::parse(&index().to_json()).unwrap(), index());
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Index::read(folder.path()).unwrap(), None);
        std::fs::write(folder.path().join(INDEX), index().to_json()).unwrap();
        assert_eq!(Index::read(folder.path()).unwrap(), Some(index()));
    }

    #[test]
    fn names_outside_the_folder_and_newer_formats_are_refused() {
        for wrong in ["/etc/passwd", "../x", "a/../../x", ""] {
            let mut index = index();
            index.files.insert(wrong.to_owned());
            let error = Index::parse(&index.to_json()).unwrap_err();
            assert!(error.contains("not below"), "{wrong}: {error}");
        }
        let newer = br#"{"format": 2, "other": []}"#;
        assert!(Index::parse(newer).unwrap_err().contains("newer"));
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        fuzz(&[index().to_json()], |bytes| drop(Index::parse(bytes)));
    }
}
