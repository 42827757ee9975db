//! What the control streams of a session's subflows carry.

use crate::data::SubflowKey;
use crate::protocol::{DecodeError, Message};

/// The control stream of a connection, before its session uses it.
pub(crate) type Control = hawser_session::Control<Message>;
/// Why a control stream has ended.
pub(crate) type ControlError = hawser_session::ControlError<DecodeError>;

/// What arrives on the control stream of a subflow.
#[derive(Debug)]
pub(crate) struct Received {
    pub subflow: SubflowKey,
    /// A message, or why there are no more.
    pub message: Result<Message, ControlError>,
}
