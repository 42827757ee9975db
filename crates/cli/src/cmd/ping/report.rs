//! The report of `hawser ping`, with the field names of `scion ping --format json`.

use std::time::Duration;

use hawser_path::show::Used;
use serde::Serialize;

use crate::cmd::address::HostAddr;
use crate::format;
use crate::out::outln;

/// The report that `hawser ping` prints for programs.
#[derive(Serialize)]
pub struct Report {
    pub path: Used,
    /// Bytes of data in each request.
    pub payload_size: usize,
    /// Bytes of each request's SCION packet.
    pub scion_packet_size: usize,
    pub replies: Vec<Answer>,
    pub statistics: Statistics,
}

/// A reply.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    pub scion_packet_size: usize,
    pub source: String,
    pub scmp_seq: u32,
    /// The round-trip time, in milliseconds.
    pub round_trip_time: f64,
    pub state: ReplyState,
}

/// When a reply arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyState {
    Success,
    AfterTimeout,
    OutOfOrder,
}

impl ReplyState {
    /// The remark after a reply, in the report for people.
    pub fn remark(self) -> &'static str {
        match self {
            Self::Success => "",
            Self::AfterTimeout => " state=After timeout",
            Self::OutOfOrder => " state=Out of Order",
        }
    }
}

/// Statistics of all requests. Times are in milliseconds, to the microsecond; 0 without a reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    sent: u32,
    received: usize,
    /// Packet loss in percent, rounded up.
    packet_loss: usize,
    time: f64,
    min_rtt: f64,
    avg_rtt: f64,
    max_rtt: f64,
    mdev_rtt: f64,
}

impl Statistics {
    /// Prints the end of the report for people.
    pub fn print(&self, target: HostAddr) {
        outln!("\n--- {target} statistics ---");
        outln!(
            "{} packets transmitted, {} received, {}% packet loss, time {:.3}ms",
            self.sent,
            self.received,
            self.packet_loss,
            self.time
        );
        if self.received != 0 {
            outln!(
                "rtt min/avg/max/mdev = {:.3}/{:.3}/{:.3}/{:.3} ms",
                self.min_rtt,
                self.avg_rtt,
                self.max_rtt,
                self.mdev_rtt
            );
        }
    }

    /// Statistics of `sent` requests and the times of the replies, in milliseconds.
    pub fn new(sent: u32, rtts: &[f64], time: Duration) -> Self {
        let micro = |ms: f64| (ms * 1e3).round() / 1e3;
        let (received, count) = (rtts.len(), rtts.len().max(1) as f64);
        let avg = rtts.iter().sum::<f64>() / count;
        let variance = rtts.iter().map(|rtt| (rtt - avg).powi(2)).sum::<f64>() / count;
        let least = rtts.iter().copied().min_by(f64::total_cmp);
        let most = rtts.iter().copied().max_by(f64::total_cmp);
        let arrived = (received * 100).checked_div(sent as usize);
        Self {
            sent,
            received,
            packet_loss: arrived.map_or(0, |arrived| 100usize.saturating_sub(arrived)),
            time: format::rounded_millis(time),
            min_rtt: least.unwrap_or_default(),
            avg_rtt: micro(avg),
            max_rtt: most.unwrap_or_default(),
            mdev_rtt: micro(variance.sqrt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_count_lost_packets() {
        let statistics = Statistics::new(3, &[10.0, 30.0], Duration::from_millis(2500));
        let expected = Statistics {
            sent: 3,
            received: 2,
            packet_loss: 34,
            time: 2500.0,
            min_rtt: 10.0,
            avg_rtt: 20.0,
            max_rtt: 30.0,
            mdev_rtt: 10.0,
        };
        assert_eq!(statistics, expected);
        let nothing = Statistics::new(2, &[], Duration::ZERO);
        assert_eq!((nothing.packet_loss, nothing.max_rtt), (100, 0.0));
        assert_eq!(Statistics::new(0, &[], Duration::ZERO).packet_loss, 0);
    }
}
