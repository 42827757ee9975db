//! The source's part of a session: which ranges are read and sent, and whether the sink has them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Outcome;
use super::skips::{self, Skips};
use crate::content::tree::{self, ChainingValue};
use crate::content::{Entry, Source};
use crate::data::{Command, Commands, SessionKey};
use crate::error::TransferError;
use crate::gate::Gate;
use crate::limit::Limit;
use crate::protocol::SessionMessage;
use crate::reader::{Reader, ReaderEvent, SinkSkips};
use crate::report::{FailedFile, Progress, TransferEvent};

/// What the sink has named that is compared with what is read here.
#[derive(Default)]
struct Named {
    /// Chaining values of what it had before the transfer, by range.
    values: HashMap<u64, ChainingValue>,
    /// Its root, if that came before everything was read here.
    root: Option<ChainingValue>,
}

/// The source's part of a session.
pub(super) struct SourcePart {
    content: Arc<Source>,
    session: SessionKey,
    data: Commands,
    events: UnboundedSender<TransferEvent>,
    reader: Option<Reader>,
    gate: Arc<Gate>,
    /// Chaining values by range, once read.
    values: Vec<Option<ChainingValue>>,
    named: Named,
    confirmed: Vec<bool>,
    /// All skipped entries; those that the sink skips; how many of this side's were announced.
    skips: Skips,
    sink_skips: Arc<SinkSkips>,
    announced: usize,
    /// Files that have not all attributes at the sink that were sent.
    stripped: u64,
    progress: Progress,
}

impl SourcePart {
    /// The source of `content` in `session`. Content is sent once the sink is ready; `gate` bounds the
    /// memory of what is not confirmed.
    pub(super) fn new(
        content: Arc<Source>,
        session: SessionKey,
        data: Commands,
        gate: Arc<Gate>,
        events: UnboundedSender<TransferEvent>,
    ) -> Self {
        let total = content.manifest().length();
        let count = tree::count(total) as usize;
        data.give(Command::Offer(session, Arc::clone(&content)));
        Self {
            session,
            data,
            events,
            reader: None,
            gate,
            values: vec![None; count],
            named: Named::default(),
            confirmed: vec![false; count],
            skips: Skips::default(),
            sink_skips: Arc::default(),
            announced: 0,
            stripped: 0,
            progress: Progress {
                total,
                files: content.manifest().entries().len() as u64,
                ..Progress::default()
            },
            content,
        }
    }

    /// Names the files that could not be read since the last call.
    pub(super) fn announce(&mut self, out: &mut Vec<SessionMessage>) {
        for skipped in self.content.skipped_since(self.announced) {
            self.announced += 1;
            let entry = skipped.entry as u64;
            out.push(SessionMessage::skip(entry, skipped.reason, &skipped.text));
            self.skips.add(self.content.manifest(), skipped, true);
        }
    }

    /// The files that failed, and how many stayed as they were at the sink.
    pub(super) fn take_failed(&mut self) -> (Vec<FailedFile>, u64) {
        let (mut failed, kept) = self.skips.take();
        let unlisted = self.content.unlisted().iter();
        failed.extend(unlisted.map(|(path, reason)| FailedFile {
            path: path.clone(),
            reason: reason.clone(),
            at_source: true,
            again: None,
        }));
        (failed, kept)
    }

    /// Files that have not all attributes at the sink that were sent.
    pub(super) const fn stripped(&self) -> u64 {
        self.stripped
    }

    /// Handles the answer whether a range could be left out whose files are skipped.
    pub(super) fn on_unwanted(&self, range: u64, left_out: bool) {
        match &self.reader {
            Some(reader) if left_out => reader.zeros(range),
            Some(reader) => reader.send_skipped(range),
            None => {}
        }
    }

    /// Whether all files of a range are skipped.
    fn is_skipped(&self, range: u64) -> bool {
        let positions = tree::range(range, self.progress.total);
        self.content
            .is_skipped(positions, |entry| self.sink_skips.contains(entry))
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    /// Sends no more than `rate` bit/s from now on, as the sink wants; 0 for no limit.
    fn set_sink_limit(&self, rate: u64) {
        let rate = (rate > 0).then_some(rate);
        let limit = rate.map(|rate| Limit::new(rate, None));
        self.data.give(Command::SinkLimit(self.session, limit));
        // The caller may have dropped its end: then nothing is reported.
        let _ = self.events.send(TransferEvent::Limited(rate));
    }

    /// Handles a message of the sink; messages to the sink go to `out`.
    pub(super) fn on_message(
        &mut self,
        message: SessionMessage,
        out: &mut Vec<SessionMessage>,
        reader_events: &mut Option<UnboundedReceiver<ReaderEvent>>,
    ) -> Result<Outcome, TransferError> {
        match message {
            SessionMessage::Have { .. } | SessionMessage::Ready if self.reader.is_some() => {
                return Err(TransferError::Protocol(
                    "it names ranges that it has after all of them were named",
                ));
            }
            SessionMessage::Have { first, values } => {
                for (range, value) in (first..).zip(values) {
                    self.index(range)?;
                    self.named.values.insert(range, value);
                }
            }
            SessionMessage::Ready => {
                // Bounded by the ranges of the content, of each of which the hash is kept anyway.
                let (sender, receiver) = unbounded_channel();
                let reader = self.start_reader(sender);
                let reader = reader.map_err(TransferError::Thread)?;
                for range in 0..self.values.len() as u64 {
                    match self.named.values.contains_key(&range) {
                        true => reader.hash(range),
                        false if self.is_skipped(range) => reader.zeros(range),
                        false => self.send(&reader, range),
                    }
                }
                for range in self.named.values.keys().copied().collect::<Vec<_>>() {
                    self.confirm(range, true);
                }
                self.reader = Some(reader);
                *reader_events = Some(receiver);
            }
            SessionMessage::Confirm { first, count } => {
                let end = first.checked_add(count).filter(|end| {
                    usize::try_from(*end).is_ok_and(|end| end <= self.confirmed.len())
                });
                let end = end.ok_or(TransferError::Protocol(
                    "it confirms ranges that do not exist",
                ))?;
                for range in first..end {
                    if self.values[range as usize].is_none() {
                        return Err(TransferError::Protocol(
                            "it confirms a range whose hash was not sent",
                        ));
                    }
                    self.confirm(range, false);
                    self.gate.freed(range);
                }
                self.data.give(Command::Confirmed(self.session, first, end));
            }
            SessionMessage::Skip {
                entry,
                reason,
                text,
            } => {
                let manifest = Arc::clone(self.content.manifest());
                let skipped = skips::named(&manifest, (entry, reason, text))?;
                self.sink_skips.add(skipped.entry);
                self.skips.add(&manifest, skipped, false);
            }
            SessionMessage::Stripped(count) => self.stripped = count,
            SessionMessage::Rate(rate) => self.set_sink_limit(rate),
            SessionMessage::Again(range) => {
                let index = self.index(range)?;
                // An answer to a hash, and the last one for this range: what is read again takes the
                // place that it has in memory.
                if self.confirmed[index] || self.values[index].take().is_none() {
                    return Err(TransferError::Protocol(
                        "it wants a range again that it has, or whose hash was not sent",
                    ));
                }
                // What is there may not be what was hashed.
                self.content.set_value(range, None);
                if let Some(reader) = &self.reader {
                    self.send(reader, range);
                }
            }
            SessionMessage::Done(root) => {
                self.named.root = Some(root);
                return self.finish(out);
            }
            SessionMessage::Fail { code, text } => return Err(TransferError::Peer { code, text }),
            _ => {
                return Err(TransferError::Protocol(
                    "it sent a message that only a source sends",
                ));
            }
        }
        Ok(Outcome::Running)
    }

    /// Has a range read, and sent.
    fn send(&self, reader: &Reader, range: u64) {
        // In this order: the reader may find that it is not to be sent after all.
        self.data
            .give(Command::Want(self.session, range..range + 1));
        reader.send(range);
    }

    fn start_reader(&self, events: UnboundedSender<ReaderEvent>) -> io::Result<Reader> {
        Reader::start(
            (Arc::clone(&self.content), Arc::clone(&self.sink_skips)),
            self.progress.total,
            self.session,
            Arc::clone(&self.gate),
            self.data.clone(),
            events,
        )
    }

    /// Handles an event of the reader.
    pub(super) fn on_read(
        &mut self,
        event: ReaderEvent,
        out: &mut Vec<SessionMessage>,
    ) -> Result<Outcome, TransferError> {
        match event {
            ReaderEvent::Failed(error) => Err(error.into()),
            ReaderEvent::Panicked => Err(TransferError::Panicked("the thread that reads files")),
            ReaderEvent::Zeros(range, value) => {
                let index = self.index(range)?;
                self.values[index] = Some(value);
                // The sink does not confirm it: it takes no memory.
                self.confirmed[index] = true;
                self.progress.skipped += length(range, self.progress.total);
                self.announce(out);
                match out.last_mut() {
                    Some(SessionMessage::Zeros { first, count }) if *first + *count == range => {
                        *count += 1;
                    }
                    _ => out.push(SessionMessage::Zeros {
                        first: range,
                        count: 1,
                    }),
                }
                self.finish(out)
            }
            ReaderEvent::Hashed(range, value) => {
                let index = self.index(range)?;
                self.values[index] = Some(value);
                // Before the hash, so that no file is completed that could not be read.
                self.announce(out);
                out.push(SessionMessage::Hash { range, value });
                if let Some(there) = self.named.values.remove(&range)
                    && there != value
                {
                    self.confirmed[index] = false;
                    self.progress.verified -= length(range, self.progress.total);
                    self.progress.existing -= length(range, self.progress.total);
                    if let Some(reader) = &self.reader {
                        self.send(reader, range);
                    }
                }
                self.finish(out)
            }
        }
    }

    fn index(&self, range: u64) -> Result<usize, TransferError> {
        let index = usize::try_from(range).ok();
        index
            .filter(|index| *index < self.values.len())
            .ok_or(TransferError::Protocol(
                "it names a range that does not exist",
            ))
    }

    /// Records that the sink has a range; whether that is new.
    fn confirm(&mut self, range: u64, existing: bool) -> bool {
        let Some(confirmed) = self.confirmed.get_mut(range as usize) else {
            return false;
        };
        if std::mem::replace(confirmed, true) {
            return false;
        }
        let length = length(range, self.progress.total);
        self.progress.verified += length;
        if existing {
            self.progress.existing += length;
        }
        true
    }

    /// Ends the session once the sink has everything and everything was read here.
    fn finish(&mut self, out: &mut Vec<SessionMessage>) -> Result<Outcome, TransferError> {
        let Some(theirs) = self.named.root else {
            return Ok(Outcome::Running);
        };
        let values: Option<Vec<_>> = self.values.iter().copied().collect();
        let Some(values) = values else {
            return Ok(Outcome::Running);
        };
        let ours = tree::root(&values, self.progress.total);
        out.push(SessionMessage::Done(ours));
        match ours == theirs {
            true => Ok(Outcome::Done(ours)),
            false => Err(TransferError::Mismatch),
        }
    }
}

/// The messages that name all files of `content`: the first messages of its source.
pub(crate) fn manifest(content: &Source) -> impl Iterator<Item = SessionMessage> {
    let manifest = content.manifest();
    let encode = |entry: &Entry| {
        let mut fields = Vec::new();
        entry.encode(&mut fields);
        SessionMessage::Entry(fields.into())
    };
    let end = SessionMessage::ManifestEnd {
        entries: manifest.entries().len() as u64,
        content: manifest.length(),
        hash: manifest.hash(),
    };
    manifest.entries().iter().map(encode).chain([end])
}

/// Bytes of a range.
pub(super) fn length(range: u64, total: u64) -> u64 {
    let bytes = tree::range(range, total);
    bytes.end - bytes.start
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Receiver;

    use super::*;
    use crate::data::Waiting;

    const SESSION: SessionKey = SessionKey(1);

    /// A source of three ranges of zeros, and what its sink has named so far.
    struct Fixture {
        part: SourcePart,
        read: Option<UnboundedReceiver<ReaderEvent>>,
        out: Vec<SessionMessage>,
        _commands: Receiver<Command>,
        _events: UnboundedReceiver<TransferEvent>,
    }

    impl Fixture {
        fn new() -> Self {
            let content = Arc::new(Source::zeros(3 * tree::RANGE).unwrap());
            let (data, commands) = Waiting::commands();
            let (events, received) = unbounded_channel();
            let gate = Arc::new(Gate::new(9));
            Self {
                part: SourcePart::new(content, SESSION, data, gate, events),
                read: None,
                out: Vec::new(),
                _commands: commands,
                _events: received,
            }
        }

        fn take(&mut self, message: SessionMessage) -> Result<Outcome, TransferError> {
            self.part.on_message(message, &mut self.out, &mut self.read)
        }

        /// Waits until the next range is read, and returns it with its value.
        fn hashed(&mut self) -> (u64, ChainingValue) {
            let event = self.read.as_mut().unwrap().blocking_recv().unwrap();
            let ReaderEvent::Hashed(range, value) = event else {
                panic!("{event:?}");
            };
            self.part.on_read(event, &mut self.out).unwrap();
            (range, value)
        }
    }

    fn breaks(result: Result<Outcome, TransferError>) -> bool {
        matches!(result, Err(TransferError::Protocol(_)))
    }

    #[test]
    fn what_a_sink_has_is_named_before_it_is_ready() {
        let mut fixture = Fixture::new();
        fixture.take(SessionMessage::Ready).unwrap();
        let values = vec![[7; 32]];
        let late = SessionMessage::Have { first: 0, values };
        assert!(breaks(fixture.take(late)));
        // Another value is read: nothing that the sink had is taken back.
        while fixture.hashed().0 < 2 {}
        assert_eq!(fixture.part.progress().verified, 0);
    }

    #[test]
    fn a_range_is_sent_again_as_often_as_its_hash_was() {
        let mut fixture = Fixture::new();
        fixture.take(SessionMessage::Ready).unwrap();
        while fixture.hashed().0 < 2 {}
        // Far more often than ranges are read ahead.
        for _ in 0..100 {
            fixture.take(SessionMessage::Again(1)).unwrap();
            assert!(breaks(fixture.take(SessionMessage::Again(1))));
            assert_eq!(fixture.hashed().0, 1);
        }
        assert_eq!(fixture.part.gate.held(), 3);
        let (first, count) = (1, 1);
        fixture
            .take(SessionMessage::Confirm { first, count })
            .unwrap();
        assert_eq!(fixture.part.gate.held(), 2);
        assert!(breaks(fixture.take(SessionMessage::Again(1))));
    }

    #[test]
    fn only_what_was_hashed_is_confirmed() {
        let mut fixture = Fixture::new();
        let (first, count) = (0, 3);
        let confirm = SessionMessage::Confirm { first, count };
        assert!(breaks(fixture.take(confirm)));
        assert_eq!(fixture.part.progress().verified, 0);
    }
}
