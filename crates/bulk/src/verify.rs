//! Verifies and writes ranges that have arrived, on threads of their own.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use tokio::sync::mpsc::UnboundedSender;

use crate::bitmap::Bitmap;
use crate::content::tree::{self, ChainingValue};
use crate::content::{Landing, LandingError, Skipped};
use crate::data::{Command, Commands, SessionKey};
use crate::guard::guarded;
use crate::queues::{Arrived, Job, Queues};

/// Threads that verify and write: hashing and the page cache take about as long as the network.
const THREADS: usize = 2;

/// What a verifier reports to its session.
#[derive(Debug)]
pub(crate) enum VerifyEvent {
    /// A range was verified and written.
    Written(u64, ChainingValue),
    /// A range that was there is kept.
    Kept,
    /// A range of zeros is done that was not sent.
    Zeros(u64, ChainingValue),
    /// Entries are skipped.
    Skipped(Vec<Skipped>),
    /// A range does not match its hash: it is to be sent again.
    Mismatch(u64),
    /// The content cannot be written.
    Failed(LandingError),
    /// A thread panicked.
    Panicked,
}

/// Threads that verify and write the content of one session. Dropping it ends the threads.
pub(crate) struct Verifier {
    shared: Arc<Shared>,
    jobs: Vec<Sender<Job>>,
}

struct Shared {
    landing: Arc<Landing>,
    total: u64,
    session: SessionKey,
    data: Commands,
    events: UnboundedSender<VerifyEvent>,
    ranges: Mutex<Ranges>,
    /// Of each thread.
    zeros: [Mutex<Zeros>; THREADS],
}

/// Ranges of zeros that a thread is to write. A source names any number of them in few bytes.
#[derive(Default)]
struct Zeros {
    /// Without those of other threads: every one of [`THREADS`] is counted.
    ranges: Bitmap,
    /// Whether the thread has a job for them in its queue.
    is_queued: bool,
}

#[derive(Default)]
struct Ranges {
    /// Chaining values that the source has named, of ranges that have not arrived.
    expected: HashMap<u64, ChainingValue>,
    /// Ranges that arrived before their values.
    waiting: HashMap<u64, (Vec<u8>, ChainingValue)>,
}

impl Verifier {
    /// Starts threads that write to `landing`.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn start(
        landing: Arc<Landing>,
        total: u64,
        session: SessionKey,
        data: Commands,
        events: UnboundedSender<VerifyEvent>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            landing,
            total,
            session,
            data,
            events,
            ranges: Mutex::default(),
            zeros: Default::default(),
        });
        let mut jobs = Vec::new();
        for number in 0..THREADS {
            let (sender, queue) = channel();
            let shared = Arc::clone(&shared);
            let name = format!("verify-{number}");
            let work = move || {
                // The session may have ended.
                let report = || drop(shared.events.send(VerifyEvent::Panicked));
                guarded(|| shared.run(number, &queue), report);
            };
            (thread::Builder::new().name(name)).spawn(work)?;
            jobs.push(sender);
        }
        Ok(Self { shared, jobs })
    }

    /// The queues of the threads.
    pub(crate) fn queues(&self) -> Queues {
        Queues(self.jobs.clone())
    }

    /// Records the chaining value that a range must have.
    pub(crate) fn expect(&self, range: u64, value: ChainingValue) {
        let mut ranges = self.shared.lock();
        ranges.expected.insert(range, value);
        let waiting = ranges.waiting.remove(&range);
        drop(ranges);
        if let Some((bytes, found)) = waiting {
            let value = Some(found);
            self.queues().give(Arrived {
                range,
                bytes,
                value,
            });
        }
    }

    /// Writes ranges of zeros that are not sent.
    pub(crate) fn zeros(&self, ranges: Range<u64>) {
        let threads = THREADS as u64;
        for thread in 0..THREADS {
            // The numbers of the thread's ranges among all of its own.
            let number = |range: u64| range.saturating_sub(thread as u64).div_ceil(threads);
            let own = number(ranges.start)..number(ranges.end);
            let mut zeros = self.shared.zeros(thread);
            zeros.ranges.insert(own.clone());
            if !own.is_empty() && !std::mem::replace(&mut zeros.is_queued, true) {
                self.queues().send(thread, Job::Zeros);
            }
        }
    }

    /// Keeps a range that was there: the source has named the same value.
    pub(crate) fn keep(&self, range: u64) {
        self.queues().job(range, Job::Keep(range));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn zeros(&self, thread: usize) -> MutexGuard<'_, Zeros> {
        (self.zeros[thread].lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what comes to the queue, and writes zeros while nothing does.
    fn run(&self, thread: usize, jobs: &Receiver<Job>) {
        let mut has_zeros = false;
        loop {
            let job = match has_zeros {
                true => jobs.try_recv(),
                false => jobs.recv().map_err(|_| TryRecvError::Disconnected),
            };
            match job {
                Ok(Job::Verify(arrived)) => self.verify(arrived),
                Ok(Job::Keep(range)) => {
                    let kept = self.landing.keep(range);
                    self.report(kept.map(|()| VerifyEvent::Kept));
                }
                Ok(Job::Zeros) => {
                    self.zeros(thread).is_queued = false;
                    has_zeros = true;
                }
                Err(TryRecvError::Empty) => {
                    let next = self.zeros(thread).ranges.pop_first();
                    match next {
                        Some(number) => self.write_zeros(number * THREADS as u64 + thread as u64),
                        None => has_zeros = false,
                    }
                }
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    fn write_zeros(&self, range: u64) {
        let value = tree::zeros_value(range, self.total);
        let zeros = tree::range(range, self.total);
        let zeros = vec![0; (zeros.end - zeros.start) as usize];
        let written = self.landing.write_range(range, &zeros);
        self.report(written.map(|()| VerifyEvent::Zeros(range, value)));
    }

    fn verify(&self, arrived: Arrived) {
        let Arrived {
            range,
            bytes,
            value,
        } = arrived;
        let computed = || tree::chaining_value(range, &bytes, self.total);
        let found = value.unwrap_or_else(computed);
        let mut ranges = self.lock();
        match ranges.expected.remove(&range) {
            None => {
                ranges.waiting.insert(range, (bytes, found));
            }
            Some(expected) => {
                drop(ranges);
                self.judge(range, bytes, found, expected);
            }
        }
    }

    /// Writes a range with the right hash, and drops one with another.
    fn judge(&self, range: u64, bytes: Vec<u8>, found: ChainingValue, expected: ChainingValue) {
        if found != expected {
            let _ = self.events.send(VerifyEvent::Mismatch(range));
            return self.data.give(Command::Again(self.session, range, bytes));
        }
        let written = self.landing.write_range(range, &bytes);
        let is_written = written.is_ok();
        self.report(written.map(|()| VerifyEvent::Written(range, found)));
        if is_written {
            let length = bytes.len() as u64;
            self.data
                .give(Command::Written(self.session, bytes, length));
        }
    }

    /// Reports what was done, after the entries that were skipped by it.
    fn report(&self, done: Result<VerifyEvent, LandingError>) {
        let skipped = self.landing.take_skipped();
        if !skipped.is_empty() {
            let _ = self.events.send(VerifyEvent::Skipped(skipped));
        }
        let _ = self.events.send(done.unwrap_or_else(VerifyEvent::Failed));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::content::Source;
    use crate::data::Waiting;

    #[test]
    fn zeros_cost_no_job_for_each_range() {
        let total = 100 * tree::RANGE + 1;
        let content = Source::zeros(total).unwrap();
        let landing = Arc::new(Landing::discard(Arc::clone(content.manifest())));
        let (events, mut reported) = unbounded_channel();
        let (data, _commands) = Waiting::commands();
        let mut verifier = Verifier::start(landing, total, SessionKey(1), data, events).unwrap();
        // The threads do not see what is queued from here on.
        let (senders, queues): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
        let queued = std::mem::replace(&mut verifier.jobs, senders);
        for first in (0..100).step_by(3) {
            verifier.zeros(first..first + 1);
        }
        for first in (0..100).step_by(3) {
            verifier.zeros(first + 1..(first + 3).min(101));
        }
        for (thread, (queue, sender)) in queues.into_iter().zip(&queued).enumerate() {
            let jobs: Vec<_> = queue.try_iter().collect();
            assert!(
                matches!(jobs[..], [Job::Zeros]),
                "{jobs:?} of thread {thread}"
            );
            sender.send(Job::Zeros).unwrap();
        }
        let mut done = std::collections::BTreeSet::new();
        while done.len() < 101 {
            let event = reported.blocking_recv();
            let Some(VerifyEvent::Zeros(range, value)) = event else {
                panic!("{event:?}");
            };
            assert_eq!(value, tree::zeros_value(range, total));
            assert!(range < 101 && done.insert(range), "range {range}");
        }
    }

    #[test]
    fn a_panic_of_one_of_the_threads_is_reported() {
        let content = Source::zeros(10).unwrap();
        let landing = Arc::new(Landing::discard(Arc::clone(content.manifest())));
        let (events, mut reported) = unbounded_channel();
        let (data, _commands) = Waiting::commands();
        let verifier = Verifier::start(landing, 10, SessionKey(1), data, events).unwrap();
        // There is no such range.
        let bytes = vec![0; 10];
        verifier.queues().give(Arrived::new(u64::MAX, bytes));
        let event = reported.blocking_recv();
        assert!(matches!(event, Some(VerifyEvent::Panicked)), "{event:?}");
    }
}
