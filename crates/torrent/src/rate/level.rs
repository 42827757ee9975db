//! One level of a limit: a rate that connections keep to together, each in its turn.

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::time::{self, sleep_until};

use super::bucket::Bucket;
use super::turns::{Ticket, Turns};

/// The time, which tests of tokio may set.
fn now() -> Instant {
    time::Instant::now().into_std()
}

/// Stands for no limit in [`Level::rate`].
const UNLIMITED: u64 = u64::MAX;

/// A rate, and those that wait to send or receive at it. `K` names those that take turns.
///
/// The lock is held for single calls, never at an await.
#[derive(Debug)]
pub(super) struct Level<K> {
    /// Bytes per second; read without the lock, so that no limit costs nothing.
    rate: AtomicU64,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    bucket: Bucket,
    turns: Turns<K>,
    /// Those that wait, each to be woken when its turn may have come.
    wakers: HashMap<Ticket, Arc<Notify>>,
}

/// The turn of one that waits: in the queue until it spends it, or gives it up.
#[derive(Debug)]
pub(super) struct Turn<K: Ord + Copy> {
    level: Arc<Level<K>>,
    key: K,
    ticket: Ticket,
    /// What has passed in it.
    bytes: u64,
}

impl<K: Ord + Copy> Level<K> {
    /// A level with this rate in bytes per second; `None` for no limit. 0 counts as 1.
    pub fn new(rate: Option<u64>) -> Self {
        let rate = rate.map(|rate| rate.max(1));
        Self {
            rate: AtomicU64::new(rate.unwrap_or(UNLIMITED)),
            state: Mutex::new(State {
                bucket: Bucket::new(rate),
                turns: Turns::default(),
                wakers: HashMap::new(),
            }),
        }
    }

    /// Its rate in bytes per second; `None` without a limit.
    pub fn rate(&self) -> Option<u64> {
        let rate = self.rate.load(Ordering::Relaxed);
        (rate != UNLIMITED).then_some(rate)
    }

    /// Sets its rate, also for those that wait. 0 counts as 1.
    pub fn set_rate(&self, rate: Option<u64>) {
        let rate = rate.map(|rate| rate.max(1));
        let mut state = self.lock();
        self.rate
            .store(rate.unwrap_or(UNLIMITED), Ordering::Relaxed);
        state.bucket.set_rate(rate, now());
        state.wake();
    }

    /// Waits for a turn: until those before have had theirs, and what passed allows more. Those that always wait
    /// get bytes in inverse proportion to their prices.
    pub async fn turn(self: &Arc<Self>, key: K, price: u64) -> Turn<K> {
        let waker = Arc::new(Notify::new());
        let turn = {
            let mut state = self.lock();
            let ticket = state.turns.enter(key, price);
            state.wakers.insert(ticket, Arc::clone(&waker));
            Turn {
                level: Arc::clone(self),
                key,
                ticket,
                bytes: 0,
            }
        };
        loop {
            let due = {
                let mut state = self.lock();
                let moment = now();
                match state.turns.head() == Some(turn.ticket) {
                    true => match state.bucket.due(moment) {
                        due if due <= moment => {
                            state.turns.give();
                            return turn;
                        }
                        due => Some(due),
                    },
                    false => None,
                }
            };
            let due = async {
                match due {
                    Some(due) => sleep_until(due.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = waker.notified() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Copy> State<K> {
    /// Wakes the one that has its turn now.
    fn wake(&self) {
        let head = self.turns.head();
        if let Some(waker) = head.and_then(|head| self.wakers.get(&head)) {
            waker.notify_one();
        }
    }
}

impl<K: Ord + Copy> Turn<K> {
    /// `bytes` pass. The turn is over.
    pub fn spend(mut self, bytes: u64) {
        self.bytes = bytes;
        self.level.lock().bucket.spend(bytes, now());
    }
}

impl<K: Ord + Copy> Drop for Turn<K> {
    fn drop(&mut self) {
        let mut state = self.level.lock();
        state.turns.leave(self.key, self.ticket, self.bytes);
        state.wakers.remove(&self.ticket);
        state.wake();
    }
}
