//! The threads that write and verify, so that no async task waits for a disk.
//!
//! Bytes are written at their position as soon as they arrive, in one system call for all that
//! wait and follow each other. They are hashed at once, while they are in the processor's cache, if
//! they follow the bytes of their range already hashed; bytes that arrive out of order are read
//! back from the page cache once the gap before them is closed. So no range is held in memory.

use std::collections::HashMap;
use std::io;
use std::iter::Peekable;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use digest::Digest;

use crate::budget::Reservation;
use crate::error::StoreError;
use crate::files::Files;
use crate::range::{Hash, Ranges};

/// Most threads: more do not write faster.
const MAX_THREADS: usize = 4;

/// Most jobs taken from the queue at once: enough to write a connection's blocks in one call.
const MAX_BATCH: usize = 64;

/// Most bytes written in one call before they are hashed: few enough to stay in the cache.
const MAX_RUN: usize = 256 << 10;

/// A report of a disk thread; `H` is the hash of a range.
#[derive(Debug)]
pub enum DiskEvent<H> {
    /// A range was hashed.
    Checked {
        /// The range.
        range: u32,
        /// Whether it has the expected hash.
        is_right: bool,
    },
    /// A range was hashed block by block.
    Digests {
        /// The range.
        range: u32,
        /// The hashes of its blocks, in order; none if they cannot be read.
        digests: Vec<H>,
    },
    /// A disk operation failed, or the thread panicked: it does no more work.
    Failed(StoreError),
}

/// A job on a range.
enum Job {
    /// Writes data at this position of the range. The reservation is released afterwards.
    Write(u64, Bytes, Reservation),
    Check,
    /// Hashes each block of this length, in as many first bytes of the range.
    Digest(u64, u64),
}

/// The disk threads of a download. Dropping it ends them after the jobs already queued.
#[derive(Debug)]
pub struct Disk {
    queues: Vec<Sender<(u32, Job)>>,
    threads: Vec<JoinHandle<()>>,
}

impl Disk {
    /// Starts threads that pass their results to `report`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start<R: Ranges>(
        files: &Arc<Files>,
        ranges: &Arc<R>,
        report: impl Fn(DiskEvent<Hash<R>>) + Clone + Send + 'static,
    ) -> Result<Self, StoreError> {
        let count = std::thread::available_parallelism().map_or(1, NonZero::get);
        let mut disk = Self {
            queues: Vec::new(),
            threads: Vec::new(),
        };
        for number in 0..count.min(MAX_THREADS) {
            let (sender, jobs) = channel();
            let report = report.clone();
            let worker = Worker {
                files: Arc::clone(files),
                ranges: Arc::clone(ranges),
                hashers: HashMap::new(),
                buffer: Vec::new(),
            };
            let thread = std::thread::Builder::new()
                .name(format!("disk-{number}"))
                .spawn(move || {
                    let files = Arc::clone(&worker.files);
                    let work = AssertUnwindSafe(|| worker.run(&jobs, &report));
                    if panic::catch_unwind(work).is_err() {
                        let error = io::Error::other("a disk thread panicked");
                        report(DiskEvent::Failed(StoreError::io(
                            "write to",
                            files.root(),
                            error,
                        )));
                    }
                })
                .map_err(|e| StoreError::io("start a thread to write to", files.root(), e))?;
            disk.queues.push(sender);
            disk.threads.push(thread);
        }
        Ok(disk)
    }

    /// Writes data at position `begin` of a range. The jobs of one range are done in the order
    /// queued.
    pub fn write(&self, range: u32, begin: u64, data: Bytes, reservation: Reservation) {
        self.give(range, Job::Write(begin, data, reservation));
    }

    /// Hashes a range and compares it with its expected hash.
    pub fn check(&self, range: u32) {
        self.give(range, Job::Check);
    }

    /// Hashes each block of `block` bytes of the first `bytes` of a range; the last one may be shorter.
    pub fn digest(&self, range: u32, block: u64, bytes: u64) {
        self.give(range, Job::Digest(block, bytes));
    }

    /// Waits until all queued jobs are done.
    pub fn finish(self) {
        drop(self.queues);
        for thread in self.threads {
            // The panic hook has reported a panic of the thread; verified ranges stay verified.
            let _ = thread.join();
        }
    }

    /// All jobs of a range go to one thread, so that they stay in order.
    fn give(&self, range: u32, job: Job) {
        if let Some(queue) = self.queues.get(range as usize % self.queues.len().max(1)) {
            // A thread that has ended has reported the reason.
            let _ = queue.send((range, job));
        }
    }
}

struct Worker<R: Ranges> {
    files: Arc<Files>,
    ranges: Arc<R>,
    /// The hasher of each range under way, and the number of bytes it has hashed.
    hashers: HashMap<u32, (R::Hasher, u64)>,
    /// For what is read back.
    buffer: Vec<u8>,
}

/// Data to be written from one position of a range on.
struct Run {
    begin: u64,
    length: usize,
    parts: Vec<Bytes>,
    /// Held until the data is written.
    _reservations: Vec<Reservation>,
}

impl Run {
    /// The write at the front of `jobs`, with those of the same range that continue it.
    fn take(
        range: u32,
        (begin, data, reservation): (u64, Bytes, Reservation),
        jobs: &mut Peekable<impl Iterator<Item = (u32, Job)>>,
    ) -> Self {
        let mut run = Self {
            begin,
            length: data.len(),
            parts: vec![data],
            _reservations: vec![reservation],
        };
        while let Some((_, job)) = jobs.next_if(|(next, job)| *next == range && run.continues(job))
        {
            if let Job::Write(_, data, reservation) = job {
                run.length += data.len();
                run.parts.push(data);
                run._reservations.push(reservation);
            }
        }
        run
    }

    /// Whether `job` writes the bytes behind it.
    fn continues(&self, job: &Job) -> bool {
        matches!(job, Job::Write(begin, data, _)
            if *begin == self.begin + self.length as u64 && self.length + data.len() <= MAX_RUN)
    }
}

impl<R: Ranges> Worker<R> {
    fn run(mut self, jobs: &Receiver<(u32, Job)>, report: &impl Fn(DiskEvent<Hash<R>>)) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while let Ok(first) = jobs.recv() {
            batch.push(first);
            batch.extend(jobs.try_iter().take(MAX_BATCH - 1));
            // The jobs of one range stay in order.
            batch.sort_by_key(|(range, _)| *range);
            if let Err(error) = self.work(batch.drain(..).peekable(), report) {
                return report(DiskEvent::Failed(error));
            }
        }
    }

    fn work(
        &mut self,
        mut jobs: Peekable<impl Iterator<Item = (u32, Job)>>,
        report: &impl Fn(DiskEvent<Hash<R>>),
    ) -> Result<(), StoreError> {
        while let Some((range, job)) = jobs.next() {
            match job {
                Job::Write(begin, data, reservation) => {
                    let run = Run::take(range, (begin, data, reservation), &mut jobs);
                    self.write(range, &run)?;
                }
                Job::Check => report(self.check(range)?),
                Job::Digest(block, bytes) => report(self.digest(range, block, bytes)),
            }
        }
        Ok(())
    }

    fn write(&mut self, range: u32, run: &Run) -> Result<(), StoreError> {
        let start = self.ranges.range(range).start;
        self.files.write_run(start + run.begin, &run.parts)?;
        let fresh = || (self.ranges.hasher(range), 0);
        let (hasher, hashed) = self.hashers.entry(range).or_insert_with(fresh);
        if run.begin < *hashed {
            // The range is fetched again: the bytes hashed are no longer those on disk.
            (*hasher, *hashed) = fresh();
        }
        if *hashed == run.begin {
            run.parts.iter().for_each(|part| hasher.update(part));
            *hashed += run.length as u64;
        }
        Ok(())
    }

    fn check(&mut self, range: u32) -> Result<DiskEvent<Hash<R>>, StoreError> {
        let bytes = self.ranges.range(range);
        let hash = match self.hashers.remove(&range) {
            None => {
                let hasher = self.ranges.hasher(range);
                self.files.hash(hasher, bytes, &mut self.buffer)?
            }
            Some((mut hasher, hashed)) => {
                let rest = bytes.start + hashed..bytes.end;
                self.files.hash_into(&mut hasher, rest, &mut self.buffer)?;
                hasher.finalize()
            }
        };
        let is_right = self.ranges.expected(range) == Some(hash);
        if is_right {
            self.files.on_verified(range, &*self.ranges);
        }
        Ok(DiskEvent::Checked { range, is_right })
    }

    fn digest(&mut self, range: u32, block: u64, bytes: u64) -> DiskEvent<Hash<R>> {
        // What uses the digests does without them; what a range is worth is decided when it is checked.
        let digests = self.digests(range, block, bytes).unwrap_or_else(|error| {
            tracing::warn!(range, %error, "the blocks of a range cannot be hashed");
            Vec::new()
        });
        DiskEvent::Digests { range, digests }
    }

    fn digests(&mut self, range: u32, block: u64, bytes: u64) -> Result<Vec<Hash<R>>, StoreError> {
        let mut left = self.ranges.range(range);
        left.end = left.end.min(left.start.saturating_add(bytes));
        let mut digests = Vec::new();
        while !left.is_empty() {
            let end = left.end.min(left.start + block.max(1));
            let hasher = R::Hasher::new();
            digests.push(self.files.hash(hasher, left.start..end, &mut self.buffer)?);
            left.start = end;
        }
        Ok(digests)
    }
}

#[cfg(test)]
mod tests;
