//! Threads that take packets in beside the one that receives them.
//!
//! All packets of a connection are taken in by one thread, in the order in which they arrived.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;
use std::{io, mem, thread};

use noq_proto::ConnectionHandle;

use super::connection::Connection;
use super::{Driver, Received, lock};

/// Most batches that wait for a thread. The one that receives waits for more room, and the socket's
/// buffer drops what it does not hold.
const MAX_WAITING_BATCHES: usize = 64;

/// Packets for one connection, in order.
struct Batch {
    connection: Arc<Connection>,
    packets: Vec<Received>,
}

#[derive(Default)]
struct Queue {
    batches: Vec<Batch>,
    /// No batch is added, or the thread has ended.
    closed: bool,
}

/// What the receiving thread and one worker share.
#[derive(Default)]
struct Worker {
    queue: Mutex<Queue>,
    /// Notified when a batch is added or taken, and at the end.
    changed: Condvar,
}

/// The threads. They end when this is dropped, once all they were given is done.
#[derive(Default)]
pub(crate) struct Workers(Vec<Arc<Worker>>);

impl Workers {
    /// Starts `count` threads for the connections of `driver`.
    pub(crate) fn start(count: usize, driver: &Arc<Driver>) -> io::Result<Self> {
        // If a thread cannot be started, dropping this ends those before it.
        let mut workers = Self::default();
        let runtime = tokio::runtime::Handle::current();
        for number in 1..=count {
            let runtime = runtime.clone();
            let of_thread = WorkerThread::new(Arc::clone(driver));
            workers.0.push(Arc::clone(&of_thread.worker));
            thread::Builder::new()
                .name(format!("quic-{number}"))
                .spawn(move || {
                    let _runtime = runtime.enter();
                    of_thread.run();
                })?;
        }
        Ok(workers)
    }

    /// Dispatches `packets` to the owning worker; inline on the receiver.
    pub(super) fn receive(
        &self,
        handle: ConnectionHandle,
        connection: Arc<Connection>,
        packets: impl Iterator<Item = Received>,
    ) {
        match (handle.0 % (self.0.len() + 1)).checked_sub(1) {
            None => connection.receive(packets, Instant::now()),
            Some(worker) => self.0[worker].add(Batch {
                connection,
                packets: packets.collect(),
            }),
        }
    }
}

/// What a thread owns. The endpoint does not outlive a thread that panics.
pub(crate) struct WorkerThread {
    worker: Arc<Worker>,
    driver: Arc<Driver>,
}

impl WorkerThread {
    pub(crate) fn new(driver: Arc<Driver>) -> Self {
        Self {
            worker: Arc::default(),
            driver,
        }
    }

    fn run(&self) {
        self.worker.run();
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        if thread::panicking() {
            self.worker.close();
            self.driver.abandon("a thread of the endpoint panicked");
        }
    }
}

impl Worker {
    fn close(&self) {
        lock(&self.queue).closed = true;
        self.changed.notify_all();
    }

    fn add(&self, batch: Batch) {
        let queue = lock(&self.queue);
        let full = |queue: &mut Queue| queue.batches.len() >= MAX_WAITING_BATCHES && !queue.closed;
        let queue = self.changed.wait_while(queue, full);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        if queue.closed {
            // The thread has ended, and the connections with it.
            return;
        }
        queue.batches.push(batch);
        self.changed.notify_one();
    }

    fn run(&self) {
        loop {
            let queue = lock(&self.queue);
            let idle = |queue: &mut Queue| queue.batches.is_empty() && !queue.closed;
            let queue = self.changed.wait_while(queue, idle);
            let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
            let batches = mem::take(&mut queue.batches);
            drop(queue);
            if batches.is_empty() {
                return;
            }
            self.changed.notify_one();
            for Batch {
                connection,
                packets,
            } in batches
            {
                connection.receive(packets.into_iter(), Instant::now());
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &self.0 {
            worker.close();
        }
    }
}
