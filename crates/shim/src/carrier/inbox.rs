//! What arrives from lanes and their connections.

use tokio::sync::mpsc;

use crate::plane::lane::LaneKey;
use crate::protocol::Message;

/// Both ends of a channel to a session. What bounds it is said where it is used.
pub(super) type Channel<T> = (mpsc::UnboundedSender<T>, mpsc::UnboundedReceiver<T>);

/// Both ends of the channel for messages that arrive over the connections of sessions: while it is full,
/// nothing more is read from them.
pub(super) type Inbox = (
    mpsc::Sender<(LaneKey, Message)>,
    mpsc::Receiver<(LaneKey, Message)>,
);

/// Messages in an [`Inbox`], of at most 64 KiB each.
pub(super) const INBOX: usize = 64;
