//! Doubts about a lane (SCMP errors and outages), their check by the lane's user, and how lanes
//! end.

use std::pin::Pin;
use std::time::Instant;

use hawser_address::ScionAddr;
use hawser_packet::ScmpError;
use thiserror::Error;

use crate::outage::Outage;

/// Why a lane has ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaneEnd {
    /// A router reported an outage on the path (SCMP), and no packet got through afterwards.
    #[error("the path is down at {0}")]
    PathDown(Outage),
    /// A router or host on the path reported that packets do not get through (SCMP), and none did
    /// afterwards.
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

/// A report that a lane's path is down, for the lane's user to check.
#[derive(Debug)]
pub struct Doubt {
    /// How the lane ends if the report is true.
    pub end: LaneEnd,
    /// The outage to report to the host if the report is true; `None` when the host reported it.
    pub(super) outage: Option<Outage>,
    /// For "packet too big": the largest payload that gets through according to the report, in
    /// bytes.
    pub max_payload: Option<usize>,
}

/// Whether a doubt is true, according to traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A packet sent after this time was acknowledged.
    Alive(Instant),
    /// No packet sent since was acknowledged.
    Dead,
    /// Traffic does not decide.
    Unknown,
}

/// A probe in progress.
pub type Probing<'a> = Pin<Box<dyn Future<Output = Evidence> + Send + 'a>>;

/// The user of a lane, which knows whether its packets are acknowledged.
///
/// Even an error with a genuine quote is not authenticated, and when it arrives the path may work
/// again. A lane without a user ends at the first error that counts, but for "parameter problem",
/// which damaged copies of its packets cause; a lane with a user ends only
/// if nothing sent afterwards is acknowledged. TCP treats ICMP errors the same way (RFC 5927,
/// section 5.2).
pub trait LaneUser: Send + Sync {
    /// Determines whether `doubt` is true by sending over the lane. Meanwhile other doubts about
    /// the lane are ignored.
    fn probe<'a>(&'a self, doubt: &'a Doubt) -> Probing<'a>;

    /// Called when the lane has ended, possibly twice.
    fn on_end(&self, end: &LaneEnd);
}
