//! The file that is transferred.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::cmd::unreadable;
use crate::failure::{Doing, Failure};

/// The file, its size and its hash.
pub struct Content {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    sha256: [u8; 32],
}

impl Content {
    /// Takes the user's file, or makes one in `folder`.
    pub fn prepare(file: Option<&Path>, folder: &Path, bytes: u64) -> Result<Self, Failure> {
        let path = match file {
            Some(file) => {
                let path = file
                    .canonicalize()
                    .map_err(|error| unreadable(file, &error))?;
                if !path.is_file() {
                    return Err(Failure::usage(format!(
                        "--file {}: is not a file",
                        file.display()
                    )));
                }
                path
            }
            None => {
                let path = folder.join(format!("hawser-{bytes}.bin"));
                make(&path, bytes).doing(path.display())?;
                path
            }
        };
        let bytes = std::fs::metadata(&path).doing(path.display())?.len();
        if bytes == 0 {
            return Err(Failure::usage(format!("{}: is empty", path.display())));
        }
        let sha256 = hash(&path).doing(path.display())?;
        Ok(Self {
            path,
            bytes,
            sha256,
        })
    }

    /// Whether the file at `path` has the same content.
    pub fn matches(&self, path: &Path) -> Result<bool, Failure> {
        Ok(hash(path).doing(path.display())? == self.sha256)
    }
}

/// Writes bytes that nothing can compress (xorshift64*, Vigna 2014).
fn make(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut left = bytes;
    while left > 0 {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let word = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        let take = left.min(8) as usize;
        out.write_all(&word[..take])?;
        left -= take as u64;
    }
    out.flush()
}

fn hash(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(sha.finalize().into()),
            n => sha.update(&buffer[..n]),
        }
    }
}
