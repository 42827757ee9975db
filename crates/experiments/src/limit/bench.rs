//! What is measured of limits.

use std::time::Duration;

use super::names::{IpVersion, LimitTool, Part};

/// What is measured.
#[derive(Debug, Clone)]
pub struct LimitBench {
    /// The parts.
    pub parts: Vec<Part>,
    /// The tools.
    pub tools: Vec<LimitTool>,
    /// The versions of IP of `size`, `rate` and `accuracy`.
    pub ip: Vec<IpVersion>,
    /// The limits of `accuracy`, in bit/s.
    pub limits: Vec<u64>,
    /// Samples of each point of `size` and `rate`.
    pub samples: u16,
    /// The length of a sample.
    pub sample: Duration,
    /// The length of a window of `accuracy` and of a run of `links`.
    pub time: Duration,
    /// Runs of `accuracy` and `links`, in turn.
    pub repeat: u16,
    /// Measures every n-th point of `size` and `rate` only, the last one always.
    pub every: usize,
    /// Numbers of links of `links`, ascending.
    pub links: Vec<usize>,
}

#[cfg(test)]
impl LimitBench {
    /// One limit and two numbers of links, with all tools.
    pub fn small() -> Self {
        use crate::shape::Choice;
        Self {
            parts: Part::ALL.to_vec(),
            tools: LimitTool::ALL.to_vec(),
            ip: vec![IpVersion::V4],
            limits: vec![500_000],
            samples: 2,
            sample: Duration::from_secs(1),
            time: Duration::from_secs(1),
            repeat: 2,
            every: 9,
            links: vec![10, 4000],
        }
    }
}
