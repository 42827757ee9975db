//! How much each carrier of a session carries from one look to the next.

use std::time::Duration;

/// What the counters were at the last look, and when that was.
#[derive(Debug, Default)]
pub(super) struct Meter(Option<(u64, u64, Duration)>);

/// Bytes carried between two looks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub mptcp: u64,
    pub quic: u64,
    pub span: Duration,
}

impl Meter {
    /// Reads the counters of both carriers at `now`; `None` at the first look. A counter that has
    /// become smaller began anew.
    pub(super) fn read(&mut self, mptcp: u64, quic: u64, now: Duration) -> Option<Interval> {
        let (mptcp_before, quic_before, since) = self.0.replace((mptcp, quic, now))?;
        Some(Interval {
            mptcp: mptcp.saturating_sub(mptcp_before),
            quic: quic.saturating_sub(quic_before),
            span: now.saturating_sub(since),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interval_has_what_was_carried_in_it() {
        let mut meter = Meter::default();
        let mut read = |mptcp, quic, millis| {
            let interval = meter.read(mptcp, quic, Duration::from_millis(millis));
            interval.map(|one| (one.mptcp, one.quic, one.span.as_millis()))
        };
        assert_eq!(read(50, 7, 100), None);
        assert_eq!(read(90, 7, 1200), Some((40, 0, 1100)));
        assert_eq!(read(90, 17, 2200), Some((0, 10, 1000)));
        assert_eq!(read(0, 3, 3200), Some((0, 0, 1000)));
    }
}
