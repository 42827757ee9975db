//! The file that is transferred.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hawser_torrent::CreateOptions;
use sha2::{Digest, Sha256};

use crate::error::{During, ExperimentError};

/// A file with its size and hash.
#[derive(Debug)]
pub struct Content {
    /// The path of the file.
    pub path: PathBuf,
    /// The size, in bytes.
    pub bytes: u64,
    sha256: [u8; 32],
}

impl Content {
    /// A file of the user.
    pub fn existing(file: &Path) -> Result<Self, ExperimentError> {
        let path = file.canonicalize().during(file.display())?;
        let bytes = std::fs::metadata(&path).during(path.display())?.len();
        if bytes == 0 {
            let text = format!("{}: is empty", path.display());
            return Err(ExperimentError::Request(text));
        }
        Self::hashed(path, bytes)
    }

    /// A new file of `bytes` bytes in `folder`.
    pub fn generate(folder: &Path, bytes: u64) -> Result<Self, ExperimentError> {
        let path = folder.join(format!("hawser-{bytes}.bin"));
        write_random(&path, bytes).during(path.display())?;
        Self::hashed(path, bytes)
    }

    fn hashed(path: PathBuf, bytes: u64) -> Result<Self, ExperimentError> {
        let sha256 = hash(&path).during(path.display())?;
        Ok(Self {
            path,
            bytes,
            sha256,
        })
    }

    /// Whether the file at `path` has the same content.
    pub fn matches(&self, path: &Path) -> Result<bool, ExperimentError> {
        Ok(hash(path).during(path.display())? == self.sha256)
    }
}

/// The content of a download.
#[derive(Debug)]
pub struct Load {
    /// The file.
    pub content: Content,
    /// The `.torrent` file.
    pub torrent: PathBuf,
}

impl Load {
    /// Hashes the file into a torrent in `folder`, beside earlier ones.
    pub fn new(
        content: Content,
        folder: &Path,
        options: &CreateOptions,
        hashing: impl FnMut(u64, u64),
    ) -> Result<Self, ExperimentError> {
        let document = hawser_torrent::create(&content.path, options, hashing)
            .map_err(ExperimentError::step)?;
        let torrent = folder.join(format!("{}.torrent", content.bytes));
        std::fs::write(&torrent, document).during(torrent.display())?;
        Ok(Self { content, torrent })
    }
}

/// Writes incompressible bytes.
fn write_random(path: &Path, bytes: u64) -> io::Result<()> {
    let mut out = File::create(path)?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut buffer = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let part = &mut buffer[..left.min(1 << 20) as usize];
        random.fill(part);
        out.write_all(part)?;
        left -= part.len() as u64;
    }
    out.flush()
}

fn hash(path: &Path) -> io::Result<[u8; 32]> {
    let mut sha = Sha256::new();
    io::copy(&mut File::open(path)?, &mut sha)?;
    Ok(sha.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_copy_does_not_match() {
        let folder = tempfile::tempdir().unwrap();
        let content = Content::generate(folder.path(), 1001).unwrap();
        let copy = folder.path().join("copy");
        let mut bytes = std::fs::read(&content.path).unwrap();
        assert_eq!(bytes.len(), 1001);
        std::fs::write(&copy, &bytes).unwrap();
        assert!(content.matches(&copy).unwrap());
        let again = Content::existing(&copy).unwrap();
        assert!(again.matches(&content.path).unwrap());
        bytes[1000] ^= 1;
        std::fs::write(&copy, &bytes).unwrap();
        assert!(!content.matches(&copy).unwrap());
        std::fs::write(&copy, "").unwrap();
        let empty = Content::existing(&copy);
        assert!(matches!(empty, Err(ExperimentError::Request(_))));
    }
}
