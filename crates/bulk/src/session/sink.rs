//! The sink's part of a session: what is there already, what arrives, and what is verified.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use hawser_store::StoreError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Outcome;
use super::ranges::{Named, Ranges};
use super::skips::{self, Skips};
use crate::content::tree::ChainingValue;
use crate::content::{
    Existing, Landing, LandingError, LandingOptions, Manifest, ManifestBuilder, Skipped,
};
use crate::data::{Command, Commands, DataEvent, SessionKey};
use crate::error::TransferError;
use crate::guard::guarded;
use crate::memory::Listed;
use crate::protocol::{Choices, SessionMessage};
use crate::report::{FailedFile, Progress};
use crate::verify::{Verifier, VerifyEvent};

/// Longest wait for files that another transfer writes to.
const IN_USE: Duration = Duration::from_secs(5);

/// Most bytes of content: a sink has a byte of memory for each range from the beginning.
const MAX_CONTENT: u64 = 64 << 40;
/// What failed, if it panics.
const WRITES: &str = "the thread that writes files";

/// Where the content of a session goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Below a folder, under a name; an empty name is the folder itself.
    Folder {
        /// The folder that nothing leaves.
        root: PathBuf,
        /// Where in it.
        name: PathBuf,
    },
    /// Nowhere: everything is verified and dropped.
    Discard,
}

impl Destination {
    /// The same destination with `name` below it.
    pub(crate) fn with_name(self, below: &str) -> Self {
        match self {
            Self::Folder { root, name } => Self::Folder {
                root,
                name: name.join(below),
            },
            Self::Discard => Self::Discard,
        }
    }
}

/// How content of `sender` is written, as the client chooses, with the attributes that this host
/// takes.
pub(crate) fn landing_options(choices: Choices, take: Choices, sender: String) -> LandingOptions {
    let existing = match () {
        () if choices.contains(Choices::NO_OVERWRITE) => Existing::Keep,
        () if choices.contains(Choices::UPDATE) => Existing::KeepNewer,
        () => Existing::Replace,
    };
    LandingOptions {
        sender,
        existing,
        take,
        strict: choices.contains(Choices::STRICT),
        ..LandingOptions::default()
    }
}

/// What the blocking work of a sink has found.
pub(super) enum Prepared {
    /// The files can be written; these ranges are there.
    Landing(Arc<Landing>, BTreeMap<u64, ChainingValue>),
    /// The files are complete, but for those that were skipped meanwhile.
    Completed(Vec<Skipped>),
    Failed(LandingError),
    /// The thread panicked.
    Panicked,
}

/// The sink's part of a session.
pub(super) struct SinkPart {
    session: SessionKey,
    data: Commands,
    destination: Destination,
    options: LandingOptions,
    builder: Option<ManifestBuilder>,
    /// What the manifest has of the memory for manifests.
    listed: Listed,
    /// Once all of it has arrived.
    manifest: Option<Arc<Manifest>>,
    skips: Skips,
    /// Entries that the source skips, until the landing is prepared.
    skipped_before: Vec<usize>,
    prepared: UnboundedSender<Prepared>,
    landing: Option<Arc<Landing>>,
    verifier: Option<Verifier>,
    ranges: Ranges,
    completing: bool,
    root: Option<ChainingValue>,
}

impl SinkPart {
    pub(super) fn new(
        session: SessionKey,
        data: Commands,
        (destination, options): (Destination, LandingOptions),
        (credit, promised): (u64, Arc<AtomicU64>),
        listed: Listed,
        events: UnboundedSender<DataEvent>,
    ) -> (Self, UnboundedReceiver<Prepared>) {
        // One message for each of the two works: preparing, and completing.
        let (prepared, receiver) = unbounded_channel();
        data.give(Command::Receive {
            session,
            credit,
            promised,
            events,
        });
        let part = Self {
            session,
            data,
            destination,
            options,
            builder: Some(ManifestBuilder::default()),
            listed,
            manifest: None,
            skips: Skips::default(),
            skipped_before: Vec::new(),
            prepared,
            landing: None,
            verifier: None,
            ranges: Ranges::default(),
            completing: false,
            root: None,
        };
        (part, receiver)
    }

    pub(super) fn progress(&self) -> Progress {
        self.ranges.progress()
    }

    /// Whether no more content is to arrive.
    pub(super) fn is_complete(&self) -> bool {
        self.completing
    }

    /// Handles a message of the source; messages to the source go to `out`.
    pub(super) fn on_message(
        &mut self,
        message: SessionMessage,
        out: &mut Vec<SessionMessage>,
    ) -> Result<Outcome, TransferError> {
        match message {
            SessionMessage::Entry(bytes) => {
                let builder = self.builder.as_mut();
                let builder = builder.ok_or(TransferError::Protocol("its manifest had ended"))?;
                builder.push(&bytes)?;
                self.listed.grow_to(builder.memory())?;
            }
            SessionMessage::ManifestEnd {
                entries,
                content,
                hash,
            } => {
                let builder = self.builder.take();
                let builder = builder.ok_or(TransferError::Protocol("its manifest had ended"))?;
                let manifest = builder.finish(entries, content, hash)?;
                if content > MAX_CONTENT {
                    return Err(TransferError::TooLarge(content));
                }
                let manifest = Arc::new(manifest);
                self.ranges
                    .announce(manifest.entries().len() as u64, content);
                self.manifest = Some(Arc::clone(&manifest));
                let (destination, options) = (self.destination.clone(), self.options.clone());
                self.work(move |prepared| {
                    let mut there = BTreeMap::new();
                    let landing = match destination {
                        Destination::Discard => Ok(Landing::discard(manifest)),
                        Destination::Folder { root, name } => {
                            let options = LandingOptions {
                                path: name,
                                ..options
                            };
                            prepare(&manifest, &root, &options)
                        }
                    };
                    let landing = landing.and_then(|landing| {
                        landing.existing(|range, value| {
                            there.insert(range, value);
                            true
                        })?;
                        Ok(landing)
                    });
                    let _ = prepared.send(match landing {
                        Ok(landing) => Prepared::Landing(Arc::new(landing), there),
                        Err(error) => Prepared::Failed(error),
                    });
                });
            }
            SessionMessage::Hash { range, value } => return self.expect(range, value),
            SessionMessage::Zeros { first, count } => self.zeros(first, count)?,
            SessionMessage::Skip {
                entry,
                reason,
                text,
            } => {
                let manifest = self.manifest.as_ref();
                let manifest = manifest.ok_or(TransferError::Protocol(
                    "it skips an entry before its manifest has ended",
                ))?;
                let skipped = skips::named(manifest, (entry, reason, text))?;
                match &self.landing {
                    Some(landing) => landing.skip(skipped.entry),
                    None => self.skipped_before.push(skipped.entry),
                }
                self.skips.add(manifest, skipped, true);
            }
            SessionMessage::Done(root) => {
                return match self.root {
                    Some(ours) if ours == root => {
                        // One with files missing is continued where it is.
                        if let Some(landing) = &self.landing
                            && self.skips.is_complete()
                        {
                            landing.settle();
                        }
                        Ok(Outcome::Done(root))
                    }
                    _ => Err(TransferError::Mismatch),
                };
            }
            SessionMessage::Fail { code, text } => return Err(TransferError::Peer { code, text }),
            _ => {
                return Err(TransferError::Protocol(
                    "it sent a message that only a sink sends",
                ));
            }
        }
        let _ = out;
        Ok(Outcome::Running)
    }

    /// Names entries that are skipped here.
    fn skip(&mut self, skipped: Vec<Skipped>, out: &mut Vec<SessionMessage>) {
        let Some(manifest) = self.manifest.clone() else {
            return;
        };
        for skipped in skipped {
            let entry = skipped.entry as u64;
            out.push(SessionMessage::skip(entry, skipped.reason, &skipped.text));
            self.skips.add(&manifest, skipped, false);
        }
    }

    /// The files that failed, and how many stayed as they were here.
    pub(super) fn take_failed(&mut self) -> (Vec<FailedFile>, u64) {
        self.skips.take()
    }

    /// Files of which attributes were sent that they do not have here.
    pub(super) fn stripped(&self) -> u64 {
        let landing = self.landing.as_ref();
        landing.map_or(0, |landing| landing.stripped())
    }

    /// Takes ranges as zeros that are not sent.
    fn zeros(&mut self, first: u64, count: u64) -> Result<(), TransferError> {
        let verifier = self.verifier.as_ref();
        let verifier = verifier.ok_or(TransferError::Protocol("it sent zeros too early"))?;
        verifier.zeros(self.ranges.zeros(first, count)?);
        Ok(())
    }

    /// Records the hash that a range must have.
    fn expect(&mut self, range: u64, value: ChainingValue) -> Result<Outcome, TransferError> {
        let verifier = self.verifier.as_ref();
        let verifier = verifier.ok_or(TransferError::Protocol("it named a hash too early"))?;
        match self.ranges.name(range, value)? {
            Named::Done => {}
            Named::Keep => verifier.keep(range),
            Named::Expect => verifier.expect(range, value),
        }
        Ok(Outcome::Running)
    }

    /// Handles what blocking work has found.
    pub(super) fn on_prepared(
        &mut self,
        prepared: Prepared,
        verify_events: &mut Option<UnboundedReceiver<VerifyEvent>>,
        out: &mut Vec<SessionMessage>,
    ) -> Result<Outcome, TransferError> {
        match prepared {
            Prepared::Failed(error) => Err(error.into()),
            Prepared::Panicked => Err(TransferError::Panicked(WRITES)),
            Prepared::Completed(skipped) => {
                self.skip(skipped, out);
                match self.stripped() {
                    0 => {}
                    count => out.push(SessionMessage::Stripped(count)),
                }
                let root = self.ranges.root().ok_or(TransferError::Mismatch)?;
                self.root = Some(root);
                out.push(SessionMessage::Done(root));
                Ok(Outcome::Running)
            }
            Prepared::Landing(landing, there) => {
                let total = self.progress().total;
                // Bounded by the ranges that have buffers ([`Gate`](crate::gate::Gate)), and by the entries.
                let (events, receiver) = unbounded_channel();
                let (session, data) = (self.session, self.data.clone());
                let verifier = Verifier::start(Arc::clone(&landing), total, session, data, events);
                let verifier = verifier.map_err(TransferError::Thread)?;
                self.data
                    .give(Command::Content(session, total, verifier.queues()));
                (self.landing, self.verifier) = (Some(Arc::clone(&landing)), Some(verifier));
                *verify_events = Some(receiver);
                for entry in self.skipped_before.drain(..) {
                    landing.skip(entry);
                }
                self.skip(landing.take_skipped(), out);
                have(&there, out);
                out.push(SessionMessage::Ready);
                self.ranges.begin(there);
                self.complete()
            }
        }
    }

    /// Handles an event of the verifier.
    pub(super) fn on_verified(
        &mut self,
        event: VerifyEvent,
        out: &mut Vec<SessionMessage>,
    ) -> Result<Outcome, TransferError> {
        match event {
            VerifyEvent::Failed(error) => Err(error.into()),
            VerifyEvent::Panicked => Err(TransferError::Panicked(WRITES)),
            VerifyEvent::Kept => {
                self.ranges.kept();
                self.complete()
            }
            VerifyEvent::Mismatch(range) => {
                out.push(SessionMessage::Again(range));
                Ok(Outcome::Running)
            }
            VerifyEvent::Skipped(skipped) => {
                self.skip(skipped, out);
                Ok(Outcome::Running)
            }
            VerifyEvent::Zeros(range, value) => {
                self.ranges.zero(range, value);
                self.complete()
            }
            VerifyEvent::Written(range, value) => {
                if !self.ranges.written(range, value) {
                    return Ok(Outcome::Running);
                }
                match out.last_mut() {
                    Some(SessionMessage::Confirm { first, count }) if *first + *count == range => {
                        *count += 1;
                    }
                    _ => out.push(SessionMessage::Confirm {
                        first: range,
                        count: 1,
                    }),
                }
                self.complete()
            }
        }
    }

    /// Has blocking work done, which reports what it has found. It ends by itself, and reports to nobody
    /// if the session has ended.
    fn work(&self, work: impl FnOnce(&UnboundedSender<Prepared>) + Send + 'static) {
        let prepared = self.prepared.clone();
        tokio::task::spawn_blocking(move || {
            let report = || drop(prepared.send(Prepared::Panicked));
            guarded(|| work(&prepared), report);
        });
    }

    /// Completes the files once everything is verified, by the source's hashes too.
    fn complete(&mut self) -> Result<Outcome, TransferError> {
        if !self.ranges.is_complete() || self.completing {
            return Ok(Outcome::Running);
        }
        if let Some(landing) = self.landing.clone() {
            self.completing = true;
            self.work(move |prepared| {
                let _ = prepared.send(match landing.complete() {
                    Ok(()) => Prepared::Completed(landing.take_skipped()),
                    Err(error) => Prepared::Failed(error),
                });
            });
        }
        Ok(Outcome::Running)
    }
}

/// Prepares the files. Those of a transfer of the same host that has just ended are soon free.
fn prepare(
    manifest: &Arc<Manifest>,
    root: &Path,
    options: &LandingOptions,
) -> Result<Landing, LandingError> {
    let began = Instant::now();
    loop {
        let options = LandingOptions {
            wait_for_others: began.elapsed() < IN_USE,
            ..options.clone()
        };
        let waits = options.wait_for_others;
        match Landing::prepare(Arc::clone(manifest), root, options) {
            Err(LandingError::Store(StoreError::InUse { .. })) if waits => {
                std::thread::sleep(IN_USE / 50);
            }
            prepared => return prepared,
        }
    }
}

/// Names the ranges that are there.
fn have(there: &BTreeMap<u64, ChainingValue>, out: &mut Vec<SessionMessage>) {
    let mut run: Option<(u64, Vec<ChainingValue>)> = None;
    for (range, value) in there {
        match &mut run {
            Some((first, values)) if *first + values.len() as u64 == *range => values.push(*value),
            _ => {
                let before = run.replace((*range, vec![*value]));
                out.extend(
                    before
                        .iter()
                        .flat_map(|(first, all)| SessionMessage::have(*first, all)),
                );
            }
        }
    }
    out.extend(
        run.iter()
            .flat_map(|(first, all)| SessionMessage::have(*first, all)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Source, tree};
    use crate::data::Waiting;
    use crate::memory::Memory;

    #[test]
    fn a_hash_that_is_named_again_changes_nothing() {
        let content = Source::zeros(10).unwrap();
        let (data, _commands) = Waiting::commands();
        let (events, _reported) = unbounded_channel();
        let promised = (1 << 20, Arc::default());
        let goal = (Destination::Discard, LandingOptions::default());
        let (mut part, _prepared) = {
            let peer = "1-ff00:0:110,10.0.0.1:7".parse().unwrap();
            let listed = Memory::default().join().listed(peer);
            SinkPart::new(SessionKey(1), data, goal, promised, listed, events)
        };
        part.ranges.announce(0, 10);
        let landing = Arc::new(Landing::discard(Arc::clone(content.manifest())));
        let value = tree::chaining_value(0, &[0; 10], 10);
        let there = BTreeMap::from([(0, value)]);
        let (mut verified, mut out) = (None, Vec::new());
        let prepared = Prepared::Landing(landing, there);
        part.on_prepared(prepared, &mut verified, &mut out).unwrap();
        let mut hash = |value| {
            let message = SessionMessage::Hash { range: 0, value };
            part.on_message(message, &mut Vec::new())
        };
        for _ in 0..3 {
            assert_eq!(hash(value).unwrap(), Outcome::Running);
        }
        assert!(matches!(hash([7; 32]), Err(TransferError::Protocol(_))));
        let kept = verified.as_mut().unwrap().blocking_recv().unwrap();
        assert!(matches!(kept, VerifyEvent::Kept));
        assert!(!part.ranges.is_complete());
        assert!(verified.unwrap().try_recv().is_err());
    }
}
