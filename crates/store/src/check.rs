//! Hashing whole content on all cores.

use std::io::ErrorKind;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;

use digest::{Digest, Output};

use crate::error::StoreError;
use crate::files::Files;
use crate::range::{Hash, Ranges};

/// Bytes read at a time: few enough to stay in the cache until hashed.
const CHUNK: u64 = 256 << 10;

/// Hashes the ranges `0..count`, the bytes and the hash function of each given by `range`, and passes each
/// hash to `each` on this thread, in no particular order. Ends early when `each` returns `false`.
///
/// # Errors
/// If a file cannot be read.
pub fn hash_ranges<D: Digest>(
    files: &Files,
    count: u32,
    range: impl Fn(u32) -> (Range<u64>, D) + Sync,
    each: impl FnMut(u32, Output<D>) -> bool,
) -> Result<(), StoreError>
where
    Output<D>: Send,
{
    for_each(
        count,
        |index, buffer| {
            let (bytes, hasher) = range(index);
            files.hash(hasher, bytes, buffer)
        },
        each,
    )
}

/// Verifies every range for which `is_wanted` is true and that is not a hole (a part of a file that
/// was never written), and calls `each` with the range and whether it has the expected hash, on
/// this thread and in no particular order. Unwanted ranges count as wrong and are not read; a hole
/// is right if zeros are expected there. Ends early when `each` returns `false`.
///
/// # Errors
/// If a file cannot be read.
pub fn check<R: Ranges>(
    files: &Files,
    ranges: &R,
    is_wanted: impl Fn(u32) -> bool + Sync,
    each: impl FnMut(u32, bool) -> bool,
) -> Result<(), StoreError>
where
    Hash<R>: Send + Sync,
{
    let first = ranges.range(0).end;
    let zeros = hash_zeros(ranges.hasher(0), first);
    let work = |index: u32, buffer: &mut Vec<u8>| {
        let Some(expected) = ranges.expected(index).filter(|_| is_wanted(index)) else {
            return Ok(false);
        };
        let range = ranges.range(index);
        if files.is_hole(range.clone())? {
            // The expected content may be zeros.
            return Ok(match (ranges.zeros(index), range.end - range.start) {
                (Some(zeros), _) => expected == zeros,
                (None, length) if length == first => expected == zeros,
                (None, length) => expected == hash_zeros(ranges.hasher(index), length),
            });
        }
        match files.hash(ranges.hasher(index), range, buffer) {
            Ok(hash) => Ok(hash == expected),
            // The file does not exist yet, or does not have its full length yet.
            Err(StoreError::Io { source, .. })
                if matches!(
                    source.kind(),
                    ErrorKind::NotFound | ErrorKind::UnexpectedEof
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    };
    for_each(ranges.count(), work, each)
}

/// Runs `work` on each of `0..count`, on all cores, each with a buffer of its own, and passes the
/// results to `each` on this thread. Ends with the first error, or when `each` returns `false`.
fn for_each<T: Send>(
    count: u32,
    work: impl Fn(u32, &mut Vec<u8>) -> Result<T, StoreError> + Sync,
    mut each: impl FnMut(u32, T) -> bool,
) -> Result<(), StoreError> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicU32::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (results, received) = mpsc::sync_channel(threads * 4);
        for _ in 0..threads.min(count as usize) {
            let (results, next, stop, work) = (results.clone(), &next, &stop, &work);
            scope.spawn(move || {
                let mut buffer = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || results.send((index, work(index, &mut buffer))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        // Leaving this loop drops `received`, so that workers stop at their next send.
        for (index, result) in received {
            let go_on = result.map(|value| each(index, value));
            if !matches!(go_on, Ok(true)) {
                stop.store(true, Ordering::Relaxed);
                return go_on.map(|_| ());
            }
        }
        Ok(())
    })
}

impl Files {
    /// The hash of `bytes` as they are on disk, read by way of `buffer`, by a `hasher` that has none yet.
    pub(crate) fn hash<D: Digest>(
        &self,
        mut hasher: D,
        bytes: Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> Result<Output<D>, StoreError> {
        self.hash_into(&mut hasher, bytes, buffer)?;
        Ok(hasher.finalize())
    }

    /// Feeds `bytes` into `hasher`, read by way of `buffer`.
    pub(crate) fn hash_into(
        &self,
        hasher: &mut impl Digest,
        bytes: Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let mut at = bytes.start;
        while at < bytes.end {
            let chunk = (bytes.end - at).min(CHUNK) as usize;
            if buffer.len() < chunk {
                buffer.resize(chunk, 0);
            }
            let chunk = &mut buffer[..chunk];
            self.read_at(at, chunk)?;
            hasher.update(&*chunk);
            at += chunk.len() as u64;
        }
        Ok(())
    }
}

/// The hash of `length` zeros, by a `hasher` that has none yet.
pub(crate) fn hash_zeros<D: Digest>(mut hasher: D, length: u64) -> Output<D> {
    let zeros = [0; 4096];
    let mut left = length;
    while left > 0 {
        let step = left.min(zeros.len() as u64);
        hasher.update(&zeros[..step as usize]);
        left -= step;
    }
    hasher.finalize()
}
