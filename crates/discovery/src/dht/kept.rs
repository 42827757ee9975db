//! The nodes that are kept on disk from one run to the next: a file for each kind of address, in a folder
//! that one process at a time writes to.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hawser_dht::{Address, Id, MAX_SAVED_BYTES, Saved, SavedError};
use hawser_file::{LockedFile, PRIVATE, create_private_folder};
use thiserror::Error;

use super::nodes::SavedNodes;

/// The file that is locked by the process that writes.
const LOCK: &str = "lock";
/// The files of each kind of address.
const V4: &str = "ipv4";
const V6: &str = "ipv6";
const SCION: &str = "scion";

/// A folder with the nodes of the last run.
#[derive(Debug)]
pub struct KeptNodes {
    folder: PathBuf,
    /// `None` if another process has it: its nodes are of use here, too, but not its ids, and nothing is
    /// written.
    lock: Option<LockedFile>,
}

/// Why nodes are not kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeptError {
    /// The folder or a file of it cannot be used.
    #[error("{path}: {error}")]
    File {
        /// The folder or the file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file has other content.
    #[error("{path} has no nodes of the DHT and will be replaced: {error}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: SavedError,
    },
}

impl KeptNodes {
    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// If that fails.
    pub fn open(folder: PathBuf) -> Result<Self, KeptError> {
        let failed = |path: &Path, error| KeptError::File {
            path: path.to_owned(),
            error,
        };
        create_private_folder(&folder).map_err(|error| failed(&folder, error))?;
        let path = folder.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| failed(&path, error))?;
        let lock = match file.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            // There are file systems without locks.
            Ok(()) | Err(TryLockError::Error(_)) => Some(LockedFile::new(file)),
        };
        Ok(Self { folder, lock })
    }

    /// Whether this process writes to it; if not, another one does.
    pub fn is_writer(&self) -> bool {
        self.lock.is_some()
    }

    /// What the last run kept, and what of that cannot be read.
    pub fn read(&self) -> (SavedNodes, Vec<KeptError>) {
        let mut errors = Vec::new();
        let saved = SavedNodes {
            v4: self.read_file(V4, &mut errors),
            v6: self.read_file(V6, &mut errors),
            scion: self.read_file(SCION, &mut errors),
        };
        (saved, errors)
    }

    fn read_file<A: Address>(&self, name: &str, errors: &mut Vec<KeptError>) -> Option<Saved<A>> {
        let path = self.folder.join(name);
        let mut bytes = Vec::new();
        // One more byte shows that it is too long.
        let read = File::open(&path).and_then(|file| {
            let most = MAX_SAVED_BYTES as u64 + 1;
            file.take(most).read_to_end(&mut bytes)
        });
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                errors.push(KeptError::File { path, error });
                return None;
            }
        }
        match Saved::decode(&bytes) {
            Ok(saved) if self.is_writer() => Some(saved),
            // Two nodes with the same id are one to others.
            Ok(saved) => Some(Saved {
                id: Id::random(&mut Rng::new()),
                ..saved
            }),
            Err(error) => {
                errors.push(KeptError::Content { path, error });
                None
            }
        }
    }

    /// Keeps nodes for the next run, unless another process does. What is `None` stays as it is. Waits for
    /// the disk.
    ///
    /// # Errors
    /// If a file cannot be written; it is then as it was.
    pub fn write(&self, nodes: &SavedNodes) -> Result<(), KeptError> {
        if !self.is_writer() {
            return Ok(());
        }
        let files = [
            (V4, nodes.v4.as_ref().map(Saved::encode)),
            (V6, nodes.v6.as_ref().map(Saved::encode)),
            (SCION, nodes.scion.as_ref().map(Saved::encode)),
        ];
        for (name, content) in files {
            let path = self.folder.join(name);
            if let Some(content) = content {
                hawser_file::write(&path, &content, PRIVATE)
                    .map_err(|error| KeptError::File { path, error })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use super::*;

    fn nodes(id: u8, port: u16) -> SavedNodes {
        let v4 = Saved {
            id: Id([id; 20]),
            nodes: vec![SocketAddrV4::new([127, 0, 0, 1].into(), port)],
        };
        SavedNodes {
            v4: Some(v4),
            ..SavedNodes::default()
        }
    }

    fn read(kept: &KeptNodes) -> SavedNodes {
        let (nodes, errors) = kept.read();
        assert!(errors.is_empty(), "{errors:?}");
        nodes
    }

    #[test]
    fn the_next_run_has_the_nodes_of_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let open = || KeptNodes::open(dir.path().join("a/dht")).unwrap();
        let kept = open();
        assert_eq!(read(&kept), SavedNodes::default());
        kept.write(&nodes(1, 10)).unwrap();
        drop(kept);
        let kept = open();
        assert_eq!(read(&kept), nodes(1, 10));
        // A run that found no node changes nothing.
        kept.write(&SavedNodes::default()).unwrap();
        assert_eq!(read(&kept), nodes(1, 10));
    }

    #[test]
    fn a_second_process_at_once_has_the_nodes_and_another_id() {
        let dir = tempfile::tempdir().unwrap();
        let open = || KeptNodes::open(dir.path().to_owned()).unwrap();
        let first = open();
        first.write(&nodes(1, 10)).unwrap();
        let second = open();
        assert!(first.is_writer() && !second.is_writer());
        let other = read(&second).v4.unwrap();
        assert_ne!(other.id, Id([1; 20]));
        assert_eq!(Some(other.nodes), nodes(1, 10).v4.map(|saved| saved.nodes));
        second.write(&nodes(2, 20)).unwrap();
        assert_eq!(read(&first), nodes(1, 10));
    }

    #[test]
    fn other_content_is_reported_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptNodes::open(dir.path().to_owned()).unwrap();
        let path = dir.path().join(V4);
        for wrong in [&b"other"[..], &[b'd'; MAX_SAVED_BYTES + 2]] {
            std::fs::write(&path, wrong).unwrap();
            let (saved, errors) = kept.read();
            assert_eq!((saved, errors.len()), (SavedNodes::default(), 1));
            let text = errors[0].to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
        }
        kept.write(&nodes(3, 30)).unwrap();
        assert_eq!(read(&kept), nodes(3, 30));
    }

    #[test]
    fn a_folder_that_cannot_be_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = KeptNodes::open(file.join("dht")).unwrap_err().to_string();
        assert!(error.contains(file.to_str().unwrap()), "{error}");
    }
}
