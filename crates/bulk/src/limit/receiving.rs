//! A session's share in what may be received.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{Holder, Limit};

/// A session's share in what may be received, while it receives content.
pub(crate) struct Receiving {
    limit: Limit,
    holder: Holder,
    /// Notified when the number of sessions changes.
    changes: Arc<Notify>,
    /// The last share that was returned.
    share: u64,
}

impl Receiving {
    /// The session receives content from now on: the shares of the others shrink.
    pub(crate) fn begin(limit: Limit) -> Self {
        let (holder, changes) = (Holder::new(), Arc::new(Notify::new()));
        for limit in limit.chain() {
            let mut receiving = limit.receiving();
            inform(receiving.values());
            receiving.insert(holder, Arc::clone(&changes));
        }
        Self {
            limit,
            holder,
            changes,
            share: 0,
        }
    }

    /// The rate that the source may send at, in bit/s.
    pub(crate) fn share(&mut self) -> u64 {
        let shares = self.limit.chain().map(|limit| {
            let sessions = limit.receiving().len().max(1) as u64;
            (limit.rate() / sessions).max(1)
        });
        self.share = shares.min().unwrap_or(u64::MAX);
        self.share
    }

    /// Waits until the share is another one, and returns it.
    pub(crate) async fn changed(&mut self) -> u64 {
        loop {
            let before = self.share;
            self.changes.notified().await;
            if self.share() != before {
                return self.share;
            }
        }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        for limit in self.limit.chain() {
            let mut receiving = limit.receiving();
            receiving.remove(&self.holder);
            inform(receiving.values());
        }
    }
}

fn inform<'a>(others: impl Iterator<Item = &'a Arc<Notify>>) {
    // It is kept until a session looks, however many there are.
    others.for_each(|other| other.notify_one());
}
