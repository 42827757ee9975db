//! A session's part in its transfer, source or sink, with the threads that work for it.

use tokio::sync::mpsc::UnboundedReceiver;

use super::Outcome;
use super::listing::{self, List, Listed, Needs};
use super::sink::{Prepared, SinkPart};
use super::source::{SourcePart, manifest};
use crate::error::TransferError;
use crate::limit::{Limit, Receiving};
use crate::protocol::SessionMessage;
use crate::reader::ReaderEvent;
use crate::report::{FailedFile, Progress};
use crate::verify::VerifyEvent;

/// A session's part in its transfer.
pub(super) enum Part {
    /// The source, before it knows what it sends.
    Listing {
        listed: UnboundedReceiver<Listed>,
        needs: Needs,
    },
    Source {
        part: Box<SourcePart>,
        /// What the reader reports, once it runs.
        read: Option<UnboundedReceiver<ReaderEvent>>,
    },
    Sink {
        part: Box<SinkPart>,
        prepared: UnboundedReceiver<Prepared>,
        /// What the verifier reports, once it runs.
        verified: Option<UnboundedReceiver<VerifyEvent>>,
        limit: Option<Limit>,
        /// The share of `limit`, while content arrives.
        receiving: Option<Receiving>,
    },
}

/// Something that happened in a part.
pub(super) enum PartEvent {
    Listed(Listed),
    Read(ReaderEvent),
    Prepared(Prepared),
    Verified(VerifyEvent),
    /// The source may send at another rate, in bit/s.
    Share(u64),
}

impl Part {
    pub(super) fn listing(list: List, needs: Needs) -> Self {
        let listed = listing::start(list);
        Self::Listing { listed, needs }
    }

    pub(super) fn source(part: SourcePart) -> Self {
        Self::Source {
            part: Box::new(part),
            read: None,
        }
    }

    pub(super) fn sink(
        part: SinkPart,
        prepared: UnboundedReceiver<Prepared>,
        limit: Option<Limit>,
    ) -> Self {
        Self::Sink {
            part: Box::new(part),
            prepared,
            verified: None,
            limit,
            receiving: None,
        }
    }

    /// Waits for the next event.
    pub(super) async fn next(&mut self) -> PartEvent {
        // Threads report how they end, so that no receiver ends before the session.
        async fn from<T>(receiver: &mut Option<UnboundedReceiver<T>>) -> T {
            match receiver.as_mut() {
                Some(receiver) => match receiver.recv().await {
                    Some(event) => event,
                    None => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        }
        async fn share(receiving: &mut Option<Receiving>) -> u64 {
            match receiving {
                Some(receiving) => receiving.changed().await,
                None => std::future::pending().await,
            }
        }
        match self {
            Self::Listing { listed, .. } => {
                // The thread reports how it ends.
                PartEvent::Listed(listed.recv().await.unwrap_or(Listed::Panicked))
            }
            Self::Source { read, .. } => PartEvent::Read(from(read).await),
            Self::Sink {
                prepared,
                verified,
                receiving,
                ..
            } => tokio::select! {
                Some(event) = prepared.recv() => PartEvent::Prepared(event),
                event = from(verified) => PartEvent::Verified(event),
                share = share(receiving) => PartEvent::Share(share),
            },
        }
    }

    /// Handles an event; messages to the other side go to `out`.
    pub(super) fn on_event(
        &mut self,
        event: PartEvent,
        out: &mut Vec<SessionMessage>,
    ) -> Result<Outcome, TransferError> {
        let mut outcome = Outcome::Running;
        match (self, event) {
            (listing @ Self::Listing { .. }, PartEvent::Listed(listed)) => {
                let content = listed.content()?;
                out.extend(manifest(&content));
                if let Self::Listing { needs, .. } = listing {
                    let mut part = needs.clone().content(content);
                    part.announce(out);
                    *listing = Self::source(part);
                }
            }
            (Self::Source { part, read }, PartEvent::Read(event)) => {
                outcome = part.on_read(event, out)?;
                // What else was read meanwhile goes into the same packets.
                while let Some(event) = read.as_mut().and_then(|read| read.try_recv().ok()) {
                    if outcome == Outcome::Running {
                        outcome = part.on_read(event, out)?;
                    }
                }
            }
            (
                Self::Sink {
                    part,
                    verified,
                    limit,
                    receiving,
                    ..
                },
                event,
            ) => {
                match event {
                    PartEvent::Prepared(event) => {
                        if let (Some(limit), Prepared::Landing(..)) = (&*limit, &event) {
                            // Before `Ready`, so that nothing is sent faster.
                            let receiving = receiving.insert(Receiving::begin(limit.clone()));
                            out.push(SessionMessage::Rate(receiving.share()));
                        }
                        outcome = part.on_prepared(event, verified, out)?;
                    }
                    PartEvent::Verified(event) => {
                        outcome = part.on_verified(event, out)?;
                        while let Some(event) =
                            verified.as_mut().and_then(|one| one.try_recv().ok())
                        {
                            outcome = part.on_verified(event, out)?;
                        }
                    }
                    PartEvent::Share(rate) => out.push(SessionMessage::Rate(rate)),
                    PartEvent::Read(_) | PartEvent::Listed(_) => {}
                }
                if part.is_complete() {
                    *receiving = None;
                }
            }
            _ => {}
        }
        Ok(outcome)
    }

    /// Handles a message of the other side; messages to it go to `out`.
    pub(super) fn on_message(
        &mut self,
        message: SessionMessage,
        out: &mut Vec<SessionMessage>,
    ) -> Result<Outcome, TransferError> {
        match self {
            Self::Listing { .. } => match message {
                SessionMessage::Fail { code, text } => Err(TransferError::Peer { code, text }),
                _ => Err(TransferError::Protocol(
                    "it answers before any files were named",
                )),
            },
            Self::Source { part, read } => part.on_message(message, out, read),
            Self::Sink { part, .. } => part.on_message(message, out),
        }
    }

    /// Whether this host takes content.
    pub(super) fn is_sink(&self) -> bool {
        matches!(self, Self::Sink { .. })
    }

    /// Whether all content has arrived, as far as this host can tell.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Listing { .. } | Self::Source { .. } => false,
            Self::Sink { part, .. } => part.is_complete(),
        }
    }

    /// Handles the answer whether a range could be left out whose files are skipped.
    pub(super) fn on_unwanted(&self, range: u64, left_out: bool) {
        if let Self::Source { part, .. } = self {
            part.on_unwanted(range, left_out);
        }
    }

    /// The files that failed, and how many stayed as they were at the sink.
    pub(super) fn take_failed(&mut self) -> (Vec<FailedFile>, u64) {
        match self {
            Self::Listing { .. } => (Vec::new(), 0),
            Self::Source { part, .. } => part.take_failed(),
            Self::Sink { part, .. } => part.take_failed(),
        }
    }

    /// Files that have not all attributes at the sink that were sent.
    pub(super) fn stripped(&self) -> u64 {
        match self {
            Self::Listing { .. } => 0,
            Self::Source { part, .. } => part.stripped(),
            Self::Sink { part, .. } => part.stripped(),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        match self {
            Self::Listing { .. } => Progress::default(),
            Self::Source { part, .. } => part.progress(),
            Self::Sink { part, .. } => part.progress(),
        }
    }
}
