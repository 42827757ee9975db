//! What is known of the path of a lane, shared by the threads that send and receive.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::MIN_PAYLOAD;

/// What is known of the path of a lane.
pub(super) struct Measured {
    /// Bytes of the largest datagram that it takes.
    datagram: AtomicUsize,
    /// Whether datagrams get through.
    up: AtomicBool,
    /// The round-trip time in microseconds; 0 until it is measured.
    rtt: AtomicU64,
}

impl Measured {
    /// Nothing but that it takes the smallest datagrams.
    pub(super) fn new() -> Self {
        Self {
            datagram: AtomicUsize::new(MIN_PAYLOAD.into()),
            up: AtomicBool::new(false),
            rtt: AtomicU64::new(0),
        }
    }

    /// Bytes of the largest datagram that it takes.
    #[inline]
    pub(super) fn datagram(&self) -> usize {
        self.datagram.load(Ordering::Relaxed)
    }

    pub(super) fn set_datagram(&self, bytes: usize) {
        let bytes = bytes.max(MIN_PAYLOAD.into());
        self.datagram.store(bytes, Ordering::Relaxed);
    }

    /// The round-trip time, if it was measured.
    pub(super) fn rtt(&self) -> Option<Duration> {
        let micros = self.rtt.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    pub(super) fn set_rtt(&self, rtt: Duration) {
        let micros = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX);
        self.rtt.store(micros, Ordering::Relaxed);
    }

    /// Whether datagrams get through.
    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// Records that datagrams get through. Returns whether that was not known.
    #[inline]
    pub(super) fn set_up(&self) -> bool {
        !self.up.swap(true, Ordering::AcqRel)
    }
}
