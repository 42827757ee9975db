//! The messages of a session: numbered, sent over whichever connection is fastest, and again over another
//! one where it ends before they are seen.

use tokio::sync::mpsc;

use super::subflows::Subflows;
use crate::control::Received;
use crate::data::SubflowKey;
use crate::error::TransferError;
use crate::protocol::{Inbox, Outbox, SessionMessage};

/// Messages that wait to be handled. The connections read no more while there are as many, so that
/// their flow control stops the peer.
const MAX_RECEIVED: usize = 64;

/// The messages of a session.
pub(super) struct Messages {
    outbox: Outbox,
    inbox: Inbox,
    /// What arrives over all connections.
    received: (mpsc::Sender<Received>, mpsc::Receiver<Received>),
}

impl Messages {
    pub(super) fn new() -> Self {
        Self {
            outbox: Outbox::default(),
            inbox: Inbox::default(),
            received: mpsc::channel(MAX_RECEIVED),
        }
    }

    /// Where connections put what arrives.
    pub(super) fn sender(&self) -> mpsc::Sender<Received> {
        self.received.0.clone()
    }

    /// What arrives next, over any connection. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Received> {
        self.received.1.recv().await
    }

    /// Queues messages, to be sent by [`Self::flush`].
    pub(super) fn push(&mut self, messages: impl IntoIterator<Item = SessionMessage>) {
        messages
            .into_iter()
            .for_each(|message| self.outbox.push(message));
    }

    /// Records that messages up to a number were sent over a connection before it joined.
    pub(super) fn sent(&mut self, subflow: SubflowKey, messages: u64) {
        self.outbox.sent(subflow, messages);
    }

    /// Sends what waits over the fastest connection, if there is one.
    pub(super) fn flush(&mut self, subflows: &Subflows) {
        let Some((key, control)) = subflows.fastest() else {
            return;
        };
        while let Some(message) = self.outbox.pop(key) {
            control.send(&message);
        }
        if let Some(seen) = self.inbox.seen() {
            control.send(&seen);
        }
    }

    /// The peer has seen messages up to `number`.
    pub(super) fn on_seen(&mut self, number: u64) -> Result<(), TransferError> {
        let seen = self.outbox.on_seen(number);
        seen.map_err(|_| TransferError::Protocol("it has seen what was not sent"))
    }

    /// Takes a message that arrived.
    pub(super) fn take(
        &mut self,
        number: u64,
        message: SessionMessage,
    ) -> Result<(), TransferError> {
        let taken = self.inbox.push(number, message);
        taken.map_err(|_| TransferError::Protocol("its messages are too far ahead"))
    }

    /// The next message in order.
    pub(super) fn pop(&mut self) -> Option<SessionMessage> {
        self.inbox.pop()
    }

    /// Has what the control stream of a subflow has not delivered sent over another one.
    pub(super) fn reroute(&mut self, subflow: SubflowKey) {
        self.outbox.on_end(subflow);
        self.inbox.report_again();
    }
}
