//! Why a dial failed.

use crate::control::ControlError;
use crate::error::TransferError;
use crate::protocol::{ErrorCode, Message};

/// Why a dial failed.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The path, or the connection over it, failed: another path may work.
    Path(String),
    /// No path will do better.
    Fatal(TransferError),
}

impl From<ControlError> for DialError {
    fn from(error: ControlError) -> Self {
        Self::Path(error.to_string())
    }
}

impl DialError {
    /// What another answer than the expected one means.
    pub(super) fn refusal(answer: Message) -> Self {
        match answer {
            Message::Refuse {
                code: ErrorCode::TOO_MANY,
                text,
            } => Self::Path(text),
            Message::Refuse { code, text } => Self::Fatal(TransferError::Peer { code, text }),
            _ => Self::Fatal(TransferError::Protocol("it answers with another message")),
        }
    }
}
