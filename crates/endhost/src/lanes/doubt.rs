//! Doubts about a lane (SCMP errors and outages), the check of them by its user, and how lanes end.

use std::pin::Pin;
use std::time::Instant;

use hawser_packet::{ScionAddr, ScmpError};
use thiserror::Error;

use crate::outage::Outage;

/// Why a lane has ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaneEnd {
    /// A router reported something on the path down (SCMP), and nothing got through from then on.
    #[error("the path is down at {0}")]
    PathDown(Outage),
    /// A router or host on the path reported that packets do not get through (SCMP), and none did
    /// from then on.
    #[error("{0}")]
    Unreachable(ScmpError),
    /// Packets cannot leave this host.
    #[error("cannot send to {remote}: {message}")]
    Socket {
        /// The lane's remote.
        remote: ScionAddr,
        /// The system's error.
        message: String,
    },
}

/// A report that a lane's path is down, which its user is to check.
#[derive(Debug)]
pub struct Doubt {
    /// How the lane ends if it is true.
    pub end: LaneEnd,
    /// The outage to report to the host if it is true; `None` when the host reported it.
    pub(super) outage: Option<Outage>,
    /// For "packet too big": the largest payload that gets through according to it, in
    /// bytes.
    pub max_payload: Option<usize>,
}

/// Whether a doubt is true, as traffic shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A packet sent after this time is acknowledged.
    Alive(Instant),
    /// Nothing sent since is acknowledged.
    Dead,
    /// Traffic does not show it.
    Unknown,
}

/// A probe under way.
pub type Probing<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// The user of a lane: only it knows whether what it sends is acknowledged.
///
/// Even an error with a true quote is not authenticated, and when it arrives the path may work
/// again. A lane without a user ends at the first error that counts; with one it ends only if
/// nothing sent from then on is acknowledged. TCP treats ICMP errors the same way (RFC 5927,
/// section 5.2).
pub trait LaneUser: Send + Sync {
    /// Finds out whether `doubt` is true by sending over the lane. While it runs, other doubts
    /// about the lane are passed over.
    fn probe<'a>(&'a self, doubt: &'a Doubt) -> Probing<'a>;

    /// Takes in that the lane has ended. It may be called twice.
    fn on_end(&self, end: &LaneEnd);
}
