//! Reads ranges of the content before they are sent, and hashes them while they are in the cache.

use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::{io, thread};

use tokio::sync::mpsc::UnboundedSender;

use crate::content::tree::{self, ChainingValue};
use crate::content::{Source, SourceError};
use crate::data::{Command, Commands, SessionKey};
use crate::gate::{Gate, Loaded};
use crate::guard::guarded;

/// What a reader reports to its session.
#[derive(Debug)]
pub(crate) enum ReaderEvent {
    /// The chaining value of a range.
    Hashed(u64, ChainingValue),
    /// The chaining value of a range that is not sent: it is zeros.
    Zeros(u64, ChainingValue),
    /// The content cannot be read.
    Failed(SourceError),
    /// The thread panicked.
    Panicked,
}

enum Job {
    /// Reads a range, hashes it and has it sent. If all its files are skipped, it is not to be sent.
    Send(u64),
    /// The same, although all its files are skipped.
    SendSkipped(u64),
    /// Hashes the zeros that a range is because its files are skipped.
    Zeros(u64),
    /// Reads a range and hashes it: the sink has it already.
    Hash(u64),
}

/// A thread that reads the content of one session. Dropping it ends the thread.
pub(crate) struct Reader {
    jobs: Sender<Job>,
    gate: Arc<Gate>,
}

impl Reader {
    /// Starts a thread that reads `content` of `total` bytes for `session`.
    pub(crate) fn start(
        (content, sink_skips): (Arc<Source>, Arc<SinkSkips>),
        total: u64,
        session: SessionKey,
        gate: Arc<Gate>,
        data: Commands,
        events: UnboundedSender<ReaderEvent>,
    ) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let worker = Worker {
            content,
            sink_skips,
            total,
            session,
            gate: Arc::clone(&gate),
            data,
            events,
        };
        let work = move || {
            let events = worker.events.clone();
            // The session may have ended.
            let report = || drop(events.send(ReaderEvent::Panicked));
            guarded(|| worker.run(&queue), report);
        };
        (thread::Builder::new().name("reader".into())).spawn(work)?;
        Ok(Self { jobs, gate })
    }

    /// Has a range read and sent.
    pub(crate) fn send(&self, range: u64) {
        // A thread that has ended has reported the reason.
        let _ = self.jobs.send(Job::Send(range));
    }

    /// Has a range read and sent although all its files are skipped.
    pub(crate) fn send_skipped(&self, range: u64) {
        let _ = self.jobs.send(Job::SendSkipped(range));
    }

    /// Has the zeros hashed that a range is because all its files are skipped.
    pub(crate) fn zeros(&self, range: u64) {
        let _ = self.jobs.send(Job::Zeros(range));
    }

    /// Has a range hashed, once nothing is to be sent.
    pub(crate) fn hash(&self, range: u64) {
        let _ = self.jobs.send(Job::Hash(range));
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.gate.close();
    }
}

/// The entries that the sink of one session skips.
#[derive(Debug, Default)]
pub(crate) struct SinkSkips(RwLock<HashSet<usize>>);

impl SinkSkips {
    pub(crate) fn add(&self, entry: usize) {
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(entry);
    }

    pub(crate) fn contains(&self, entry: usize) -> bool {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        entries.contains(&entry)
    }
}

struct Worker {
    content: Arc<Source>,
    sink_skips: Arc<SinkSkips>,
    total: u64,
    session: SessionKey,
    gate: Arc<Gate>,
    data: Commands,
    events: UnboundedSender<ReaderEvent>,
}

impl Worker {
    fn run(&self, jobs: &Receiver<Job>) {
        let (mut to_send, mut to_hash) = (VecDeque::new(), VecDeque::new());
        loop {
            // Ranges to send come first: those that the sink has are only hashed meanwhile.
            let idle = to_send.is_empty() && to_hash.is_empty();
            let next = match idle {
                true => jobs.recv().map_err(|_| TryRecvError::Disconnected),
                false => jobs.try_recv(),
            };
            match next {
                Ok(Job::Send(range)) => {
                    to_send.push_back((range, false));
                    continue;
                }
                Ok(Job::SendSkipped(range)) => {
                    to_send.push_back((range, true));
                    continue;
                }
                Ok(Job::Zeros(range)) => {
                    if !self.zeros(range) {
                        return;
                    }
                    continue;
                }
                Ok(Job::Hash(range)) => {
                    to_hash.push_back(range);
                    continue;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
            let done = match (to_send.pop_front(), to_hash.front()) {
                (Some((range, false)), _) if self.is_skipped(range) => {
                    self.data.give(Command::Unwant(self.session, range));
                    Ok(true)
                }
                (Some((range, _)), _) => self.send(range),
                (None, Some(_)) => self.hash(to_hash.pop_front().unwrap_or_default()),
                (None, None) => Ok(true),
            };
            match done {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let _ = self.events.send(ReaderEvent::Failed(error));
                    return;
                }
            }
        }
    }

    /// Reads and hashes a range; `None` once the session has ended.
    fn read(&self, range: u64) -> Result<Option<Vec<u8>>, SourceError> {
        let bytes = tree::range(range, self.total);
        let mut buffer = vec![0; (bytes.end - bytes.start) as usize];
        self.content.read_at(bytes.start, &mut buffer)?;
        let value = match self.content.value(range) {
            Some(value) => value,
            None => {
                let value = tree::chaining_value(range, &buffer, self.total);
                self.content.set_value(range, Some(value));
                value
            }
        };
        let sent = self.events.send(ReaderEvent::Hashed(range, value));
        Ok(sent.is_ok().then_some(buffer))
    }

    /// Whether all files of a range are skipped.
    fn is_skipped(&self, range: u64) -> bool {
        let positions = tree::range(range, self.total);
        self.content
            .is_skipped(positions, |entry| self.sink_skips.contains(entry))
    }

    /// Hashes the zeros of a range; `false` once the session has ended.
    fn zeros(&self, range: u64) -> bool {
        let value = tree::zeros_value(range, self.total);
        self.events.send(ReaderEvent::Zeros(range, value)).is_ok()
    }

    fn send(&self, range: u64) -> Result<bool, SourceError> {
        if !self.gate.enter(range) {
            return Ok(false);
        }
        let Some(bytes) = self.read(range)? else {
            return Ok(false);
        };
        let bytes = Arc::new(bytes);
        self.data
            .give(Command::Loaded(self.session, Loaded { range, bytes }));
        Ok(true)
    }

    fn hash(&self, range: u64) -> Result<bool, SourceError> {
        if let Some(value) = self.content.value(range) {
            let sent = self.events.send(ReaderEvent::Hashed(range, value));
            return Ok(sent.is_ok());
        }
        Ok(self.read(range)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::data::Waiting;

    #[test]
    fn a_panic_of_the_thread_is_reported() {
        let content = Arc::new(Source::zeros(10).unwrap());
        let (events, mut reported) = unbounded_channel();
        // The content ends before what is to be read does.
        let total = 20;
        let (data, _commands) = Waiting::commands();
        let gate = Arc::new(Gate::new(4));
        let content = (content, Arc::default());
        let reader = Reader::start(content, total, SessionKey(1), gate, data, events).unwrap();
        reader.send(0);
        let event = reported.blocking_recv();
        assert!(matches!(event, Some(ReaderEvent::Panicked)), "{event:?}");
    }
}
