//! Reading and writing networks.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::json_file::{FileError, read_json, write_json};
use crate::network::Network;
use crate::topo;

/// Largest `.topo` file that is read, in bytes: some 100,000 links.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// The built-in topologies: those of the paper's experiments (001).
const READY: [(&str, &str); 3] = [
    ("fig4", include_str!("../topologies/fig4.topo")),
    ("fig7a", include_str!("../topologies/fig7a.topo")),
    ("fig9", include_str!("../topologies/fig9.topo")),
];

/// A `.topo` file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The text is not YAML, a key is missing, unknown or of the wrong type, or the parts of the
    /// network contradict each other. The message names the part and the remedy.
    #[error("the topology is not valid: {0}")]
    Invalid(String),
}

impl Network {
    /// Reads a topology in scionproto's `.topo` format.
    ///
    /// Also accepts the link keys `rate`, `delay`, `jitter`, `loss` and `queue`, and the AS key
    /// `note`. scionproto's keys `bw`, `control_servers` and `test_dispatcher` have no effect: its
    /// generator ignores the first two, and the third concerns its containers. Unknown keys are
    /// refused. Ends without an interface number (`1-ff00:0:110`) get the lowest free one of their
    /// AS, in the order of the file.
    ///
    /// # Errors
    /// [`TopologyError`] when the text is not such a topology, or its parts contradict each other.
    pub fn parse(topo: &str) -> Result<Self, TopologyError> {
        topo::parse(topo).map_err(TopologyError::Invalid)
    }

    /// Reads a `.topo` file of at most 16 MiB.
    ///
    /// # Errors
    /// When the file cannot be read, is larger, or [`Network::parse`] fails.
    pub fn load(path: &Path) -> Result<Self, TopologyError> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| {
            file.take(MAX_FILE_SIZE + 1).read_to_string(&mut text)?;
            match text.len() as u64 > MAX_FILE_SIZE {
                true => Err(io::Error::other(format!(
                    "it has more than {MAX_FILE_SIZE} bytes"
                ))),
                false => Ok(()),
            }
        });
        read.map_err(FileError::at(path))?;
        let at_path = |what| TopologyError::Invalid(format!("{}: {what}", path.display()));
        topo::parse(&text).map_err(at_path)
    }

    /// The network in the `.topo` format. [`Network::parse`] reads the same network back.
    pub fn to_topo(&self) -> String {
        topo::write(self)
    }

    /// A built-in topology: `fig4`, `fig7a` or `fig9` (001). `None` for other names.
    pub fn ready(name: &str) -> Option<Self> {
        let (_, text) = READY.iter().find(|(ready, _)| *ready == name)?;
        Self::parse(text).ok()
    }

    /// The names that [`Network::ready`] accepts.
    pub fn ready_names() -> impl Iterator<Item = &'static str> {
        READY.iter().map(|(name, _)| *name)
    }

    /// Reads a file that [`Network::write_json`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read, or does not contain a network in JSON.
    pub fn read_json(path: &Path) -> Result<Self, FileError> {
        read_json(path)
    }

    /// Writes the network as JSON. The file is replaced atomically.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_json(&self, path: &Path) -> Result<(), FileError> {
        write_json(path, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ready_topology_parses() {
        for (name, text) in READY {
            let network = Network::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(!network.links.is_empty(), "{name} has no links");
        }
        assert!(Network::ready("fig5").is_none());
    }
}
