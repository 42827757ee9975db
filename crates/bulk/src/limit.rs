//! Limits of the rate at which content is sent and received.

mod allowance;
mod bucket;
mod receiving;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::iter::successors;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

pub(crate) use self::allowance::Allowance;
use self::bucket::Bucket;
pub(crate) use self::receiving::Receiving;

/// A limit of the rate of transfers, in bits of content per second. What is sent again after a loss
/// counts again; headers do not count.
///
/// Clones are the same limit: the transfers that are given them keep to it together, in any thread.
/// Those that send take turns, a batch of half a millisecond each. Those that receive divide the rate
/// equally, and ask their sources to send no faster. Sending and receiving count apart.
#[derive(Clone)]
pub struct Limit(Arc<Shared>);

struct Shared {
    rate: u64,
    outer: Option<Limit>,
    bucket: Mutex<Bucket>,
    /// The sessions that receive, each informed when others begin or end to.
    receiving: Mutex<BTreeMap<Holder, Arc<Notify>>>,
}

/// A session, as limits know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Holder(u64);

impl Holder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Limit {
    /// A limit of `rate` bit/s, of 1 at least. What keeps to it keeps to `outer` too.
    #[must_use]
    pub fn new(rate: u64, outer: Option<Self>) -> Self {
        let rate = rate.max(1);
        Self(Arc::new(Shared {
            rate,
            outer,
            bucket: Mutex::new(Bucket::new(rate)),
            receiving: Mutex::default(),
        }))
    }

    /// Bits of content per second.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.0.rate
    }

    /// Whether what keeps to this one keeps to `other` too.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.chain().any(|limit| limit.is(other))
    }

    /// This limit, and those around it.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |limit| limit.0.outer.as_ref())
    }

    /// Whether `other` is a clone of this one.
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket> {
        let bucket = &self.0.bucket;
        bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receiving(&self) -> MutexGuard<'_, BTreeMap<Holder, Arc<Notify>>> {
        let receiving = &self.0.receiving;
        receiving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limit")
            .field("rate", &self.0.rate)
            .field("outer", &self.0.outer)
            .finish_non_exhaustive()
    }
}
