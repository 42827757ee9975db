//! Reading and writing networks.

use std::io::Read;
use std::path::Path;

use crate::error::TopologyError;
use crate::network::Network;
use crate::{ready, topo};

/// Largest `.topo` file that is read, in bytes: some 100,000 links.
const LARGEST_FILE: u64 = 16 << 20;

impl Network {
    /// Reads a topology in scionproto's `.topo` format.
    ///
    /// Accepted in addition: the link keys `rate`, `delay`, `jitter`, `loss` and `queue`, and the AS
    /// key `note`. Of scionproto's keys, `bw`, `control_servers` and `test_dispatcher` have no
    /// effect: its generator ignores the first two, and the third is about its containers. Unknown
    /// keys are refused. Ends without an interface number (`1-ff00:0:110`) get the lowest free one
    /// of their AS, in the order of the file.
    ///
    /// # Errors
    /// [`TopologyError`] when the text is not such a topology, or its parts contradict each other.
    pub fn parse(topo: &str) -> Result<Self, TopologyError> {
        topo::parse(topo)
    }

    /// Reads a `.topo` file of at most 16 MiB.
    ///
    /// # Errors
    /// When the file cannot be read, is larger, or [`Network::parse`] fails.
    pub fn load(path: &Path) -> Result<Self, TopologyError> {
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(failed(path))?;
        file.take(LARGEST_FILE + 1)
            .read_to_string(&mut text)
            .map_err(failed(path))?;
        if text.len() as u64 > LARGEST_FILE {
            return Err(failed(path)(format!(
                "it has more than {LARGEST_FILE} bytes"
            )));
        }
        Self::parse(&text)
    }

    /// The network in the `.topo` format, from which [`Network::parse`] reads the same network.
    pub fn to_topo(&self) -> String {
        topo::write(self)
    }

    /// A topology that comes with hawser: `fig4`, `fig7a` or `fig9` (001); `None` for other names.
    pub fn ready(name: &str) -> Option<Self> {
        ready::text(name).and_then(|text| Self::parse(text).ok())
    }

    /// The names that [`Network::ready`] knows.
    pub fn ready_names() -> impl Iterator<Item = &'static str> {
        ready::names()
    }

    /// Reads a file that [`Network::write_json`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a network in JSON.
    pub fn read_json(path: &Path) -> Result<Self, TopologyError> {
        let bytes = std::fs::read(path).map_err(failed(path))?;
        serde_json::from_slice(&bytes).map_err(failed(path))
    }

    /// Writes the network as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_json(&self, path: &Path) -> Result<(), TopologyError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(failed(path))?;
        std::fs::write(path, bytes).map_err(failed(path))
    }
}

/// The error of a file.
fn failed<E: ToString>(path: &Path) -> impl Fn(E) -> TopologyError {
    move |error| TopologyError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}
