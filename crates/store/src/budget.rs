//! Bounds on what all jobs of a process together use of its disks: bytes that wait to be written,
//! and reads under way.
//!
//! Each job has an equal share, so that a job whose disk is slow or hangs leaves the others theirs.
//! A job that holds nothing may always take once, so each of any number of jobs makes progress.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Turn, Notify};

/// Most bytes that may wait for the disk: 25 ms at 10 Gbit/s.
const BYTES: usize = 32 << 20;

/// Most reads that may be under way: more would only queue in the disk.
const READS: usize = 8;

/// The budget of several jobs. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget {
    bytes: Arc<Pool>,
    reads: Arc<Pool>,
}

impl Budget {
    /// The budget shared by all jobs of this process: 32 MiB, 8 reads.
    pub fn of_process() -> Self {
        static SHARED: LazyLock<Budget> = LazyLock::new(|| Budget::new(BYTES, READS));
        SHARED.clone()
    }

    /// A separate budget of `bytes` bytes that may wait to be written and `reads` reads at once.
    pub fn new(bytes: usize, reads: usize) -> Self {
        Self {
            bytes: Arc::new(Pool::new(bytes)),
            reads: Arc::new(Pool::new(reads)),
        }
    }

    /// Opens an account for one more job. Its share of the bytes, and of the reads, counts from its
    /// first use of each until it is dropped.
    pub fn join(&self) -> Account {
        Account {
            bytes: Share::of(&self.bytes),
            reads: Share::of(&self.reads),
        }
    }
}

/// The access of one job to the budget.
#[derive(Debug)]
pub struct Account {
    bytes: Share,
    reads: Share,
}

impl Account {
    /// Waits until `bytes` more bytes may wait to be written. Waiting calls are served in order.
    pub async fn reserve(&self, bytes: usize) -> Reservation {
        self.bytes.take(bytes).await
    }

    /// Reserves `bytes` without waiting; `None` if there is no room now.
    #[cfg(test)]
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        self.bytes.try_take(bytes)
    }

    /// Waits until one more read may be under way. Waiting calls are served in order.
    pub async fn read(&self) -> Reservation {
        self.reads.take(1).await
    }
}

/// An amount taken from a [`Budget`] until this and its clones are dropped.
#[derive(Debug, Clone)]
pub struct Reservation(
    /// Held for its drop.
    #[expect(dead_code)]
    Arc<Taken>,
);

#[derive(Debug)]
struct Taken {
    pool: Arc<Pool>,
    job: u64,
    amount: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.used -= self.amount;
        // The job may have ended before its data was written.
        if let Some(used) = state.jobs.get_mut(&self.job) {
            *used -= self.amount;
        }
        drop(state);
        self.pool.freed.notify_waiters();
    }
}

/// One of the two shared resources.
#[derive(Debug)]
struct Pool {
    total: usize,
    state: Mutex<BudgetState>,
    /// Notified when an amount is released or a job leaves.
    freed: Notify,
}

#[derive(Debug, Default)]
struct BudgetState {
    used: usize,
    /// The amount that each job uses.
    jobs: HashMap<u64, usize>,
    next_job: u64,
}

impl Pool {
    fn new(total: usize) -> Self {
        Self {
            total,
            state: Mutex::default(),
            freed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share of one job.
#[derive(Debug)]
struct Share {
    pool: Arc<Pool>,
    job: u64,
    /// Held while waiting, so that a large request is not overtaken by small ones for ever.
    turn: Turn<()>,
}

impl Share {
    fn of(pool: &Arc<Pool>) -> Self {
        let mut state = pool.lock();
        state.next_job += 1;
        Self {
            pool: Arc::clone(pool),
            job: state.next_job,
            turn: Turn::new(()),
        }
    }

    async fn take(&self, amount: usize) -> Reservation {
        let _turn = self.turn.lock().await;
        loop {
            // Created before trying, so that no release in between is missed.
            let freed = self.pool.freed.notified();
            if let Some(reservation) = self.try_take(amount) {
                return reservation;
            }
            freed.await;
        }
    }

    fn try_take(&self, amount: usize) -> Option<Reservation> {
        let mut state = self.pool.lock();
        let own = *state.jobs.entry(self.job).or_default();
        let share = self.pool.total / state.jobs.len();
        let fits = own + amount <= share && state.used + amount <= self.pool.total;
        if !fits && own > 0 {
            return None;
        }
        state.used += amount;
        state.jobs.insert(self.job, own + amount);
        drop(state);
        Some(Reservation(Arc::new(Taken {
            pool: Arc::clone(&self.pool),
            job: self.job,
            amount,
        })))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.lock().jobs.remove(&self.job);
        self.pool.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
