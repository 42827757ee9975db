//! The report of `hawser ping`, with the field names of `scion ping --format json`.

use std::time::Duration;

use hawser_endhost::ping::Reply;
use hawser_path::show::Used;
use serde::Serialize;

use crate::cli::HostAddr;
use crate::format;
use crate::out::outln;

/// What `hawser ping` prints for programs.
#[derive(Serialize)]
pub struct Report {
    path: Used,
    /// Bytes of data in each request.
    payload_size: usize,
    /// Bytes of each request's SCION packet.
    scion_packet_size: usize,
    replies: Vec<Answer>,
    statistics: Statistics,
}

/// A reply.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    scion_packet_size: usize,
    source: String,
    scmp_seq: u32,
    /// In milliseconds.
    round_trip_time: f64,
    state: State,
}

/// When a reply came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Success,
    AfterTimeout,
    OutOfOrder,
}

impl State {
    /// The remark after a reply, in the report for people.
    pub fn remark(self) -> &'static str {
        match self {
            Self::Success => "",
            Self::AfterTimeout => " state=After timeout",
            Self::OutOfOrder => " state=Out of Order",
        }
    }
}

/// Times are in milliseconds, to the microsecond; 0 where nothing came back.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Statistics {
    sent: u32,
    received: usize,
    /// In percent, rounded up.
    packet_loss: usize,
    time: f64,
    min_rtt: f64,
    avg_rtt: f64,
    max_rtt: f64,
    mdev_rtt: f64,
}

impl Answer {
    pub fn new(reply: &Reply, from: HostAddr, number: u32, state: State) -> Self {
        Self {
            scion_packet_size: reply.size,
            source: from.to_string(),
            scmp_seq: number,
            round_trip_time: format::rounded_millis(reply.rtt),
            state,
        }
    }
}

impl Report {
    pub fn new(
        path: Used,
        payload_size: usize,
        scion_packet_size: usize,
        sent: u32,
        replies: Vec<Answer>,
        time: Duration,
    ) -> Self {
        let rtts: Vec<f64> = replies.iter().map(|r| r.round_trip_time).collect();
        Self {
            path,
            payload_size,
            scion_packet_size,
            replies,
            statistics: Statistics::new(sent, &rtts, time),
        }
    }

    /// Whether anything came back.
    pub fn answered(&self) -> bool {
        self.statistics.received > 0
    }

    /// Prints the end of the report for people.
    pub fn summary(&self, target: HostAddr) {
        let Statistics {
            sent,
            received,
            packet_loss,
            time,
            min_rtt,
            avg_rtt,
            max_rtt,
            mdev_rtt,
        } = self.statistics;
        outln!("\n--- {target} statistics ---");
        outln!(
            "{sent} packets transmitted, {received} received, {packet_loss}% packet loss, time {time:.3}ms"
        );
        if received != 0 {
            outln!(
                "rtt min/avg/max/mdev = {min_rtt:.3}/{avg_rtt:.3}/{max_rtt:.3}/{mdev_rtt:.3} ms"
            );
        }
    }
}

impl Statistics {
    fn new(sent: u32, rtts: &[f64], time: Duration) -> Self {
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
    fn statistics_count_what_was_lost() {
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
