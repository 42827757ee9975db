//! The listing of what a server shares, before a session sends it. Nothing else waits for it.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::source::SourcePart;
use crate::content::{ScanError, Source};
use crate::data::{Commands, SessionKey};
use crate::error::TransferError;
use crate::gate::Gate;
use crate::guard::guarded;
use crate::report::TransferEvent;

/// Lists what a session sends. It may take long, and blocks.
pub(crate) type List = Box<dyn FnOnce() -> Result<Source, ScanError> + Send>;

/// What came of listing.
pub(super) enum Listed {
    Content(Arc<Source>),
    Failed(ScanError),
    /// The thread panicked.
    Panicked,
}

/// What the source's part of a session needs beside the content.
#[derive(Clone)]
pub(super) struct Needs {
    pub session: SessionKey,
    pub data: Commands,
    pub gate: Arc<Gate>,
    pub events: UnboundedSender<TransferEvent>,
}

impl Needs {
    /// The source of `content`.
    pub(super) fn content(self, content: Arc<Source>) -> SourcePart {
        SourcePart::new(content, self.session, self.data, self.gate, self.events)
    }
}

/// Has `list` run on a thread of its own, to its end even if the session ends before. What comes of it
/// goes to the receiver, as one message.
pub(super) fn start(list: List) -> UnboundedReceiver<Listed> {
    let (listed, receiver) = unbounded_channel();
    tokio::task::spawn_blocking(move || {
        let report = || drop(listed.send(Listed::Panicked));
        let work = || {
            // The session may have ended.
            let _ = listed.send(match list() {
                Ok(content) => Listed::Content(Arc::new(content)),
                Err(error) => Listed::Failed(error),
            });
        };
        guarded(work, report);
    });
    receiver
}

impl Listed {
    /// The content.
    pub(super) fn content(self) -> Result<Arc<Source>, TransferError> {
        match self {
            Self::Content(content) => Ok(content),
            Self::Failed(error) => Err(error.into()),
            Self::Panicked => Err(TransferError::Panicked("the thread that lists files")),
        }
    }
}
