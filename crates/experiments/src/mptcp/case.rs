//! What is compared, and what one run shows.

use std::fmt;

use super::carrier::MptcpCarrier;
use super::headers::HeaderRow;

/// A carrier over a number of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MptcpCase {
    /// The carrier.
    pub carrier: MptcpCarrier,
    /// The number of paths.
    pub paths: u8,
}

impl fmt::Display for MptcpCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.paths {
            1 => write!(f, "{} over 1 path", self.carrier),
            paths => write!(f, "{} over {paths} paths", self.carrier),
        }
    }
}

/// What one run shows; rates in Mbit/s.
#[derive(Debug, Clone)]
pub struct MptcpRun {
    /// From the first byte to the last, start included.
    pub goodput: f64,
    /// Frames on the limited links in the same time.
    pub throughput: f64,
    /// What headers leave of the limits.
    pub ceiling: f64,
    pub(super) headers: HeaderRow,
    /// How long connections took until the first byte of an answer, in milliseconds.
    pub(super) set_up: Vec<(Connection, f64)>,
}

/// Which connection to a host it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    /// The first one since the shim is up.
    First,
    /// One of those that follow.
    Later,
}

impl Connection {
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Later => "later",
        }
    }
}
