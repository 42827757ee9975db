//! Hashing bytes as they are on disk.

use std::ops::Range;

use digest::{Digest, Output};

use crate::error::StoreError;
use crate::files::Files;

/// Bytes read at a time: few enough to stay in the cache until they are hashed.
const CHUNK: u64 = 256 << 10;

impl Files {
    /// The hash of `bytes` as they are on disk.
    pub(crate) fn hash<D: Digest>(&self, bytes: Range<u64>) -> Result<Output<D>, StoreError> {
        let mut hasher = D::new();
        self.hash_into(&mut hasher, bytes)?;
        Ok(hasher.finalize())
    }

    /// Adds `bytes` to what `hasher` has hashed.
    pub(crate) fn hash_into(
        &self,
        hasher: &mut impl Digest,
        bytes: Range<u64>,
    ) -> Result<(), StoreError> {
        let length = bytes.end.saturating_sub(bytes.start);
        let mut buffer = vec![0; length.min(CHUNK) as usize];
        let mut at = bytes.start;
        while at < bytes.end {
            let chunk = &mut buffer[..(bytes.end - at).min(CHUNK) as usize];
            self.read_at(at, chunk)?;
            hasher.update(&*chunk);
            at += chunk.len() as u64;
        }
        Ok(())
    }
}

/// The hash of `length` zeros.
pub(crate) fn hash_zeros<D: Digest>(length: u64) -> Output<D> {
    let zeros = [0; 4096];
    let mut hasher = D::new();
    let mut left = length;
    while left > 0 {
        let step = left.min(zeros.len() as u64);
        hasher.update(&zeros[..step as usize]);
        left -= step;
    }
    hasher.finalize()
}
