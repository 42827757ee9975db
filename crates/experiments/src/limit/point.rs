//! A point of the figures of `size` and `rate`, and what was measured of it.

use std::fmt;

use super::names::{IpVersion, LimitTool, Way};

/// The limit of 004, chapter 6, in bit/s.
pub const LIMIT: u64 = 500_000;
/// A point of a figure.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub tool: LimitTool,
    pub direction: Way,
    pub ip: IpVersion,
    /// Bytes of payload of a datagram.
    pub datagram: usize,
    /// In bit/s of payload.
    pub offered: u64,
}

/// The samples of a point.
#[derive(Debug, Clone)]
pub struct PointRun {
    /// Payload of whole datagrams received in each sample, in kbit/s.
    pub samples: Vec<f64>,
    /// Frames that the limit let pass in the same time, in kbit/s.
    pub frames: f64,
    /// Packets that the queue dropped, fragments counted each.
    pub drops: u32,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, direction, ip) = (self.tool, self.direction, self.ip);
        let (bytes, kbit) = (self.datagram, self.offered / 1000);
        write!(
            f,
            "{tool}: {direction}, IPv{ip}, {bytes} bytes, {kbit} kbit/s offered"
        )
    }
}

impl PointRun {
    /// Samples without any datagram.
    pub fn zeros(&self) -> usize {
        self.samples.iter().filter(|one| **one == 0.0).count()
    }
}
