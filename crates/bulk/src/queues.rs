//! Ranges that have arrived, on their way to the threads that verify them.

use std::sync::mpsc::Sender;

use crate::content::tree::ChainingValue;

/// A range of which every byte has arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub range: u64,
    pub bytes: Vec<u8>,
    /// Its chaining value, if it was computed before.
    pub value: Option<ChainingValue>,
}

impl Arrived {
    /// Range number `range`, with all its bytes.
    pub(crate) fn new(range: u64, bytes: Vec<u8>) -> Self {
        Self {
            range,
            bytes,
            value: None,
        }
    }
}

/// What a thread does.
#[derive(Debug)]
pub(crate) enum Job {
    Verify(Arrived),
    /// Keeps a range that was there, and is as at the source.
    Keep(u64),
    /// Writes the ranges of zeros of this thread, which are not sent because their files are skipped.
    Zeros,
}

/// The queues of a session's verifier threads.
#[derive(Debug, Clone)]
pub(crate) struct Queues(pub Vec<Sender<Job>>);

impl Queues {
    /// Has a range verified and written.
    pub(crate) fn give(&self, arrived: Arrived) {
        self.job(arrived.range, Job::Verify(arrived));
    }

    /// Gives a job to the thread of its range.
    pub(crate) fn job(&self, range: u64, job: Job) {
        self.send(range as usize % self.0.len().max(1), job);
    }

    /// Gives a job to a thread.
    pub(crate) fn send(&self, thread: usize, job: Job) {
        if let Some(queue) = self.0.get(thread) {
            // A thread that has ended has reported the reason.
            let _ = queue.send(job);
        }
    }
}
