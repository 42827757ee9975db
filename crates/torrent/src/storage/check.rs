//! Hashing whole pieces as they are on disk.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;

use sha1::{Digest, Sha1};

use super::error::StorageError;
use super::files::Files;

/// Bytes read at a time: small enough to stay in the cache until they are hashed.
const CHUNK: usize = 256 << 10;

/// The SHA-1 of a piece as it is on disk.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn hash_piece(files: &Files, piece: u32) -> Result<[u8; 20], StorageError> {
    let mut hasher = Sha1::new();
    hash_range(
        files,
        &mut hasher,
        files.layout().piece_start(piece),
        u64::from(files.layout().piece_size(piece)),
    )?;
    Ok(hasher.finalize().into())
}

/// Adds `length` bytes from `start` on to `hasher`.
///
/// # Errors
/// When they cannot be read.
pub(crate) fn hash_range(
    files: &Files,
    hasher: &mut Sha1,
    start: u64,
    length: u64,
) -> Result<(), StorageError> {
    let mut buffer = vec![0; CHUNK.min(length as usize)];
    let mut done = 0;
    while done < length {
        let step = (length - done).min(CHUNK as u64) as usize;
        files.read_at(start + done, &mut buffer[..step])?;
        hasher.update(&buffer[..step]);
        done += step as u64;
    }
    Ok(())
}

/// Runs `work` on every piece, on all cores, and hands what it returns to `each` on this thread, in
/// no order. Ends early when `each` returns `false`.
///
/// # Errors
/// The first error of `work`.
pub(crate) fn for_each_piece<T: Send>(
    count: u32,
    work: impl Fn(u32) -> Result<T, StorageError> + Sync,
    mut each: impl FnMut(u32, T) -> bool,
) -> Result<(), StorageError> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicU32::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (results, received) = mpsc::sync_channel(threads * 4);
        for _ in 0..threads.min(count as usize) {
            let (results, next, stop, work) = (results.clone(), &next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= count || results.send((piece, work(piece))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        // Leaving this loop drops `received`, so that workers end at their next send.
        for (piece, result) in received {
            let go_on = result.map(|value| each(piece, value));
            if !matches!(go_on, Ok(true)) {
                stop.store(true, Ordering::Relaxed);
                return go_on.map(|_| ());
            }
        }
        Ok(())
    })
}

/// What checking one piece found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is there and right.
    Verified,
    /// It is not, or not all of it.
    Missing,
}

/// Hashes every piece that has a hash and is not wholly a hole, and hands each result to `each`
/// (piece, result), in no order, until `each` returns `false`.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn check(
    files: &Files,
    hash_of: impl Fn(u32) -> Option<[u8; 20]> + Sync,
    each: impl FnMut(u32, Found) -> bool,
) -> Result<(), StorageError> {
    let zeros = zero_hash(files.layout().piece_size(0));
    let work = |piece: u32| {
        let Some(expected) = hash_of(piece) else {
            return Ok(Found::Missing);
        };
        let layout = files.layout();
        let size = layout.piece_size(piece);
        let hole = files.is_hole(layout.piece_start(piece), u64::from(size))?;
        let found = match hole {
            // A file of zeros may be all holes and still right.
            true if size == layout.piece_size(0) => zeros,
            true => zero_hash(size),
            false => match hash_piece(files, piece) {
                // A file that is shorter than it will be, or not there yet.
                Err(StorageError::Io { source, .. }) if is_absence(&source) => {
                    return Ok(Found::Missing);
                }
                found => found?,
            },
        };
        Ok(if found == expected {
            Found::Verified
        } else {
            Found::Missing
        })
    };
    for_each_piece(files.layout().piece_count(), work, each)
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | UnexpectedEof)
}

/// The SHA-1 of `length` zeros.
pub(crate) fn zero_hash(length: u32) -> [u8; 20] {
    let zeros = [0; 4096];
    let mut hasher = Sha1::new();
    let mut left = length as usize;
    while left > 0 {
        let step = left.min(zeros.len());
        hasher.update(&zeros[..step]);
        left -= step;
    }
    hasher.finalize().into()
}
