//! Limits, and their counters.

use std::time::Duration;

/// A limit on what a link sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkLimit {
    /// Bit/s, from [`MIN_RATE`](Self::MIN_RATE) to [`MAX_RATE`](Self::MAX_RATE), rounded down to
    /// whole bytes.
    pub rate: u64,
    /// Longest wait of a packet before it is sent: the queue holds `rate × queue` bits, at least two
    /// frames and two milliseconds of the rate, at most 4 GiB. Packets that find it full are
    /// dropped.
    pub queue: Duration,
}

impl LinkLimit {
    /// Lowest rate that a link can be limited to: 8 kbit/s.
    pub const MIN_RATE: u64 = 8_000;
    /// Highest rate that a link can be limited to: 100 Gbit/s.
    pub const MAX_RATE: u64 = 100_000_000_000;
}

/// Counters of a limited link, since the limit was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes sent, as the limit counts them.
    pub bytes: u64,
    /// Packets sent, each segment of an offloaded packet counted.
    pub packets: u64,
    /// Packets dropped because the queue was full. Wraps at 2³².
    pub drops: u32,
    /// Times that the link had to wait for the limit. Wraps at 2³².
    pub overlimits: u32,
    /// Bytes waiting in the queue now.
    pub backlog: u32,
}
