//! The threads that write and verify, so that no async thread ever waits for the disk.
//!
//! A block is written at its place as soon as it comes and hashed on the way if it is the next of
//! its piece; what came out of order is read back once the gap before it is closed, from the page
//! cache. So nothing of a piece is held in memory, whatever its length.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use sha1::{Digest, Sha1};

use super::check::{hash_piece, hash_range};
use super::error::StorageError;
use super::files::Files;
use crate::wire::BLOCK;

/// More threads than this write no faster.
const MOST_THREADS: usize = 4;

/// What a disk thread reports.
#[derive(Debug)]
pub(crate) enum DiskEvent {
    /// The hash of a piece is this.
    Hashed { piece: u32, hash: [u8; 20] },
    /// The SHA-1 of each block of a piece, as asked.
    Digests { piece: u32, digests: Vec<[u8; 20]> },
    /// Nothing more can be done.
    Failed(StorageError),
}

enum Job<K> {
    Write {
        piece: u32,
        begin: u32,
        data: Bytes,
        /// Dropped once the data is written.
        _keep: K,
    },
    Hash(u32),
    Digest(u32),
}

/// The disk threads. Dropping it ends them after what they have been given.
///
/// `K` travels with the bytes and is dropped with them: the caller's means to bound how much is
/// waiting.
#[derive(Debug)]
pub(crate) struct Disk<K> {
    lanes: Vec<Sender<Job<K>>>,
    threads: Vec<JoinHandle<()>>,
}

impl<K: Send + 'static> Disk<K> {
    /// Starts threads that call `report` with what they find.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        files: Arc<Files>,
        report: impl Fn(DiskEvent) + Clone + Send + 'static,
    ) -> Result<Self, StorageError> {
        let count = std::thread::available_parallelism().map_or(1, NonZero::get);
        let mut disk = Self {
            lanes: Vec::new(),
            threads: Vec::new(),
        };
        for number in 0..count.min(MOST_THREADS) {
            let (sender, jobs) = channel();
            let (files, report) = (Arc::clone(&files), report.clone());
            let root = files.root().to_owned();
            let thread = std::thread::Builder::new()
                .name(format!("disk-{number}"))
                .spawn(move || Worker::new(files).run(&jobs, &report))
                .map_err(|e| StorageError::io("start a thread to write to", &root, e))?;
            disk.lanes.push(sender);
            disk.threads.push(thread);
        }
        Ok(disk)
    }

    /// Writes a block. Blocks of one piece are written in the order given.
    pub fn write(&self, piece: u32, begin: u32, data: Bytes, keep: K) {
        self.give(
            piece,
            Job::Write {
                piece,
                begin,
                data,
                _keep: keep,
            },
        );
    }

    /// Works out the hash of a piece, after the blocks given before.
    pub fn hash(&self, piece: u32) {
        self.give(piece, Job::Hash(piece));
    }

    /// Works out the hash of each block of a piece.
    pub fn digest(&self, piece: u32) {
        self.give(piece, Job::Digest(piece));
    }

    /// Waits until everything given is done.
    pub fn finish(self) {
        drop(self.lanes);
        for thread in self.threads {
            // A panic there was reported by the panic hook; what was verified stays so.
            let _ = thread.join();
        }
    }

    /// All jobs of a piece go to one thread, so that they stay in order.
    fn give(&self, piece: u32, job: Job<K>) {
        if let Some(lane) = self.lanes.get(piece as usize % self.lanes.len().max(1)) {
            // A thread that is gone has reported why.
            let _ = lane.send(job);
        }
    }
}

struct Worker {
    files: Arc<Files>,
    /// How far each piece under way is hashed.
    hashers: HashMap<u32, (Sha1, u32)>,
}

impl Worker {
    fn new(files: Arc<Files>) -> Self {
        Self {
            files,
            hashers: HashMap::new(),
        }
    }

    fn run<K>(mut self, jobs: &Receiver<Job<K>>, report: &impl Fn(DiskEvent)) {
        for job in jobs {
            let done = match job {
                Job::Write {
                    piece,
                    begin,
                    data,
                    _keep,
                } => self.write(piece, begin, &data).map(|()| None),
                Job::Hash(piece) => self
                    .hash(piece)
                    .map(|hash| Some(DiskEvent::Hashed { piece, hash })),
                Job::Digest(piece) => self
                    .digests(piece)
                    .map(|digests| Some(DiskEvent::Digests { piece, digests })),
            };
            match done {
                Ok(None) => {}
                Ok(Some(event)) => report(event),
                Err(error) => return report(DiskEvent::Failed(error)),
            }
        }
    }

    fn write(&mut self, piece: u32, begin: u32, data: &[u8]) -> Result<(), StorageError> {
        let start = self.files.layout().piece_start(piece);
        self.files.write_at(start + u64::from(begin), data)?;
        let (hasher, hashed) = self.hashers.entry(piece).or_default();
        if begin < *hashed {
            // The piece is fetched anew: what was hashed is no longer what is on disk.
            (*hasher, *hashed) = (Sha1::new(), 0);
        }
        if *hashed == begin {
            hasher.update(data);
            *hashed += data.len() as u32;
        }
        Ok(())
    }

    fn hash(&mut self, piece: u32) -> Result<[u8; 20], StorageError> {
        let Some((mut hasher, hashed)) = self.hashers.remove(&piece) else {
            return hash_piece(&self.files, piece);
        };
        let layout = self.files.layout();
        let start = layout.piece_start(piece) + u64::from(hashed);
        let left = layout.piece_size(piece).saturating_sub(hashed);
        hash_range(&self.files, &mut hasher, start, u64::from(left))?;
        Ok(hasher.finalize().into())
    }

    fn digests(&self, piece: u32) -> Result<Vec<[u8; 20]>, StorageError> {
        let layout = self.files.layout();
        let size = layout.piece_size(piece);
        let mut digests = Vec::new();
        for begin in (0..size).step_by(BLOCK as usize) {
            let mut hasher = Sha1::new();
            let start = layout.piece_start(piece) + u64::from(begin);
            let length = BLOCK.min(size - begin);
            hash_range(&self.files, &mut hasher, start, u64::from(length))?;
            digests.push(hasher.finalize().into());
        }
        Ok(digests)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::mpsc::channel;

    use proptest::prelude::*;

    use super::*;
    use crate::storage::Layout;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn pieces_hash_right_in_whatever_order_blocks_come(
            order in Just((0..7u32).collect::<Vec<_>>()).prop_shuffle(),
            length in 6 * BLOCK + 1..=7 * BLOCK,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let layout = Layout::new(7 * BLOCK, [
                (PathBuf::from("a"), 20_000, false),
                (PathBuf::from("b"), u64::from(length) - 20_000, false),
            ]);
            let files = Arc::new(Files::writable(dir.path().to_owned(), layout).unwrap());
            let (events, reported) = channel();
            let disk = Disk::start(Arc::clone(&files), move |event| events.send(event).unwrap()).unwrap();
            let content: Vec<u8> = (0..length).map(|i| (i / 7) as u8).collect();
            for block in order {
                let begin = block * BLOCK;
                let end = (begin + BLOCK).min(length);
                let data = Bytes::copy_from_slice(&content[begin as usize..end as usize]);
                disk.write(0, begin, data, ());
            }
            disk.hash(0);
            disk.digest(0);
            disk.finish();
            let expected: [u8; 20] = Sha1::digest(&content).into();
            let Ok(DiskEvent::Hashed { piece: 0, hash }) = reported.recv() else { panic!("not hashed") };
            prop_assert_eq!(hash, expected);
            let Ok(DiskEvent::Digests { digests, .. }) = reported.recv() else { panic!("no digests") };
            let expected: Vec<[u8; 20]> = content.chunks(BLOCK as usize).map(|b| Sha1::digest(b).into()).collect();
            prop_assert_eq!(digests, expected);
            let mut back = vec![0; length as usize];
            files.read_at(0, &mut back).unwrap();
            prop_assert_eq!(back, content);
        }
    }

    #[test]
    fn a_piece_written_anew_is_hashed_anew() {
        let dir = tempfile::tempdir().unwrap();
        let length = 3 * BLOCK;
        let layout = Layout::new(length, [(PathBuf::from("a"), u64::from(length), false)]);
        let files = Arc::new(Files::writable(dir.path().to_owned(), layout).unwrap());
        let (events, reported) = channel();
        let disk = Disk::start(files, move |event| events.send(event).unwrap()).unwrap();
        let block = |byte| Bytes::from(vec![byte; BLOCK as usize]);
        for (number, byte) in [(0, 9), (1, 9), (1, 2), (2, 3), (0, 1)] {
            disk.write(0, number * BLOCK, block(byte), ());
        }
        disk.hash(0);
        disk.finish();
        let expected: [u8; 20] = Sha1::digest([block(1), block(2), block(3)].concat()).into();
        let Ok(DiskEvent::Hashed { hash, .. }) = reported.recv() else {
            panic!("not hashed")
        };
        assert_eq!(hash, expected);
    }
}
