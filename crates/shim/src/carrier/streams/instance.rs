//! Which streams a side has: those of the process that opens them, since it began.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{SetOnce, mpsc};

use super::shared::{SharedStreams, Stream};
use crate::protocol::Status;
use hawser_streams::Side;

/// The streams of one process of the side that opens them.
pub(crate) struct Instance {
    /// Tells them from those of other processes.
    pub number: u64,
    pub streams: SharedStreams,
    /// Whether the other side has answered that it has them.
    answered: AtomicBool,
    ended: SetOnce<()>,
}

impl Instance {
    /// Streams on one side, without a path. Those that the peer opens go to `opened`. Must be called
    /// inside a tokio runtime.
    pub(crate) fn new(side: Side, number: u64, opened: mpsc::UnboundedSender<Stream>) -> Self {
        Self {
            number,
            streams: SharedStreams::new(side, opened),
            answered: AtomicBool::new(false),
            ended: SetOnce::new(),
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    pub(super) fn set_answered(&self) {
        self.answered.store(true, Ordering::Release);
    }

    /// Ends all streams, and the use of all paths for them.
    pub(crate) fn end(&self) {
        let _ = self.ended.set(());
        self.streams.end(Status::Unreachable);
    }

    /// The same once the other side has gone: what has arrived as a whole is read to its end.
    pub(crate) fn leave(&self) {
        let _ = self.ended.set(());
        self.streams.leave();
    }

    pub(super) async fn ended(&self) {
        self.ended.wait().await;
    }
}
