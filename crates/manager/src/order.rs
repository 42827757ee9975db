//! Orders of the path manager.

use std::time::Duration;

use hawser_path::{Fingerprint, Reason};
use thiserror::Error;

/// One subflow: one attempt to connect over a path, and the resulting connection. Each is dialed
/// once; when a path is dialed again, that is a new subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowId(pub(crate) u64);

/// An order about one subflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The subflow.
    pub subflow: SubflowId,
    /// Its path.
    pub path: Fingerprint,
    /// What to do.
    pub action: Action,
    /// Why.
    pub cause: Cause,
}

impl Order {
    pub(crate) fn new(subflow: SubflowId, path: Fingerprint, action: Action, cause: Cause) -> Self {
        Self {
            subflow,
            path,
            action,
            cause,
        }
    }

    /// An order to close a subflow at once.
    pub(crate) fn close(subflow: SubflowId, path: Fingerprint, cause: Cause) -> Self {
        Self::new(subflow, path, Action::Close { drain: false }, cause)
    }
}

/// What to do with a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Connect, and report whether that worked.
    Dial,
    /// Request nothing more over it, but keep it connected.
    Hold,
    /// Use it again after [`Action::Hold`].
    Resume,
    /// Close it, whether connected or still being dialed. The manager no longer tracks it.
    Close {
        /// Whether to wait for what was requested over it; nothing more may be requested.
        drain: bool,
    },
}

/// Why an order was given. Printed as a short line for people.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Cause {
    /// The decision about the path.
    #[error("{0}")]
    Decided(Reason),
    /// The path failed before, and its pause is over.
    #[error("tried again after {}", times(*.failures))]
    Retried {
        /// Number of failures in a row.
        failures: u32,
    },
    /// The path has a subflow that delivers nothing: another is tried beside it.
    #[error("current connection stalled")]
    Stalled,
    /// The remote answers over the subflow that this one would have replaced: it is only late.
    #[error("the remote answers over the current connection, only late")]
    Late,
    /// Another subflow over the same path has taken its place.
    #[error("replaced by a new connection")]
    Replaced,
    /// The subflow that this one would have replaced delivers again.
    #[error("the connection it was to replace delivers again")]
    Recovered,
    /// There was no answer in a time that is long for the path: another dial, whose packets follow
    /// each other sooner, takes its place.
    #[error("no answer so far: dialed again")]
    Unanswered,
    /// The path is not offered any more.
    #[error("the path is not offered any more")]
    NotOffered,
    /// Nothing was received over it for this long.
    #[error("nothing came over it for {} s", .0.as_secs())]
    Silent(Duration),
    /// None of the paths assigned to the remote is connected, or none can be assigned.
    #[error("no assigned path is connected")]
    NoneConnected,
    /// The transfer wants nothing more of the remote.
    #[error("transfer finished")]
    Ended,
}

fn times(failures: u32) -> String {
    match failures {
        1 => "a failure".to_owned(),
        _ => format!("{failures} failures"),
    }
}
