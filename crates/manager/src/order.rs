//! What the path manager wants done.

use std::fmt;
use std::time::Duration;

use hawser_path::{Fingerprint, Reason};

/// One subflow: one try to connect over one path, and the connection that comes of it. Each is
/// dialed once; a path that is dialed again has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowId(pub(crate) u64);

impl fmt::Display for SubflowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Something to be done with one subflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The subflow.
    pub subflow: SubflowId,
    /// The path it takes.
    pub path: Fingerprint,
    /// What is to be done.
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

    /// To end a subflow at once.
    pub(crate) fn close(subflow: SubflowId, path: Fingerprint, cause: Cause) -> Self {
        Self::new(subflow, path, Action::Close { drain: false }, cause)
    }
}

/// What is to be done with a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Connect, and report whether that worked.
    Dial,
    /// Request nothing more over it, but keep it connected.
    Hold,
    /// Use it again after [`Action::Hold`].
    Resume,
    /// End it, be it connected or still being dialed. The manager has forgotten it already.
    Close {
        /// Whether to wait for what was requested over it; nothing more is to be requested.
        drain: bool,
    },
}

/// Why an order was given. Printed as a short line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// By what was decided about the path.
    Decided(Reason),
    /// It failed before, and its pause is over.
    Retried {
        /// How often it failed in a row.
        failures: u32,
    },
    /// The path has a subflow that delivers nothing: another is tried beside it.
    Stalled,
    /// Another subflow over the same path has taken its place.
    Replaced,
    /// The subflow that it was to replace delivers again.
    Recovered,
    /// The path is not offered any more.
    NotOffered,
    /// Nothing came over it for this long.
    Silent(Duration),
    /// None of the paths assigned to the remote is connected, or none can be assigned.
    NoneConnected,
    /// Nothing is wanted of the remote any more.
    Ended,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decided(reason) => reason.fmt(f),
            Self::Retried { failures: 1 } => f.write_str("tried again after a failure"),
            Self::Retried { failures } => write!(f, "tried again after {failures} failures"),
            Self::Stalled => f.write_str("beside a connection over which nothing comes"),
            Self::Replaced => f.write_str("replaced by a new connection"),
            Self::Recovered => f.write_str("the connection it was to replace delivers again"),
            Self::NotOffered => f.write_str("the path is not offered any more"),
            Self::Silent(time) => write!(f, "nothing came over it for {} s", time.as_secs()),
            Self::NoneConnected => f.write_str("no assigned path is connected"),
            Self::Ended => f.write_str("nothing is wanted of the remote any more"),
        }
    }
}
