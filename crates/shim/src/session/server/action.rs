//! What the sessions that other hosts open want done.

use hawser_endhost::ScionAddr;
use hawser_seal::Cipher;

use super::id::SessionId;
use crate::address::Slot;
use crate::protocol::{Message, RefusalCode};
use crate::session::lane_key::LaneKey;

/// Why a connection or a session is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub code: RefusalCode,
    /// For people.
    pub text: String,
}

impl Refusal {
    pub(crate) fn new(code: RefusalCode, text: &str) -> Self {
        let text = text.to_owned();
        Self { code, text }
    }

    /// As the other host receives it.
    pub(crate) fn message(&self) -> Message {
        Message::Refuse {
            code: self.code,
            text: self.text.clone(),
        }
    }
}

/// What the sessions want done, at once and in this order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ServerAction {
    /// Make the lane of a connection, whose datagrams are sealed so, and send this answer before all else.
    /// It is the first one of this session, or one more.
    Accept {
        lane: LaneKey,
        session: SessionId,
        cipher: Cipher,
        answer: Message,
    },
    /// Refuse a connection.
    Refuse { lane: LaneKey, refusal: Refusal },
    /// Send a message over the connection of a lane.
    Send { lane: LaneKey, message: Message },
    /// Close a lane that has failed, for this reason, and report the slots that it had.
    Close {
        lane: LaneKey,
        session: SessionId,
        reason: String,
    },
    /// Send nothing of streams over a lane.
    SuspendPath(LaneKey),
    /// Send streams over a lane again.
    ResumePath(LaneKey),
    /// Tell the holder which slots of the session with `peer` are live.
    Publish {
        session: SessionId,
        peer: ScionAddr,
        live: Vec<Slot>,
    },
    /// A session is over: end its streams and close its lanes; with a `refusal`, which goes over every
    /// lane, at once, though there is still something to be delivered here.
    End {
        session: SessionId,
        peer: ScionAddr,
        reason: String,
        refusal: Option<Refusal>,
    },
}
