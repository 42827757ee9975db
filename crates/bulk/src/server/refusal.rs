//! Why a connection is refused.

use crate::protocol::ErrorCode;

/// Why a connection is refused: the code and text of the answer.
pub(super) struct Refusal(pub ErrorCode, pub String);
