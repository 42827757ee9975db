//! Records whether packets sent over a connection are acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// When the latest acknowledged packet was sent. Cloning shares it: the congestion controller,
/// which sees all acknowledgements, writes it; a check of a doubtful path reads it.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    epoch: Instant,
    /// Microseconds from `epoch` to its sending; only packets of more than `larger` bytes count.
    latest: AtomicU64,
    larger: AtomicU64,
}

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Inner {
            epoch: Instant::now(),
            latest: AtomicU64::new(0),
            larger: AtomicU64::new(0),
        }))
    }
}

impl Progress {
    fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.0.epoch);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// Records that a packet of `bytes`, sent at `sent`, is acknowledged.
    #[inline]
    pub(crate) fn on_ack(&self, sent: Instant, bytes: u64) {
        if bytes > self.0.larger.load(Ordering::Relaxed) {
            self.0
                .latest
                .fetch_max(self.micros(sent), Ordering::Relaxed);
        }
    }

    /// Ignores later acknowledgements of packets of at most `bytes`.
    pub(crate) fn count_larger_than(&self, bytes: u64) {
        self.0.larger.store(bytes, Ordering::Relaxed);
    }

    /// Whether a packet sent after `time` has been acknowledged.
    pub(crate) fn is_after(&self, time: Instant) -> bool {
        self.0.latest.load(Ordering::Relaxed) > self.micros(time)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_packets_sent_later_count() {
        let (progress, t0) = (Progress::default(), Instant::now());
        let at = |ms| t0 + Duration::from_millis(ms);
        assert!(!progress.is_after(t0));
        progress.on_ack(at(10), 50);
        assert!(progress.is_after(at(9)));
        assert!(!progress.is_after(at(10)));
        progress.on_ack(at(5), 50);
        assert!(progress.is_after(at(9)), "acknowledged out of order");
        progress.count_larger_than(1200);
        progress.on_ack(at(20), 1200);
        assert!(!progress.is_after(at(10)), "too small to count");
        progress.on_ack(at(21), 1201);
        assert!(progress.is_after(at(20)));
    }
}
