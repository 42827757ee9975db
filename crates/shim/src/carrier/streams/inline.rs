//! Futures that are polled by the threads that wake them, while little comes.
//!
//! What arrives for a stream passes two futures, one of its path and one of its connection, and what a
//! program sends one of the path. As tasks of tokio each would wake a thread; so the thread of the QUIC
//! endpoint that has the packet, and the one that has read the program's bytes, do the whole. While much
//! comes ([`Load`]), such a future is polled as a task of tokio, so that several threads share the work.
//!
//! One thread polls such a future at a time: another one that wakes it meanwhile leaves that to this one.
//! A future must not block, and what it waits for must wake it without a lock that it takes: the state of
//! the streams wakes its users once it is unlocked, and so does a QUIC connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Bytes in one poll that show that much comes.
const MUCH: usize = 16 << 10;
/// Polls in a row with less after which little comes.
const CALM: u32 = 16;

/// How much a future moves; cloning shares it. At first it is little.
#[derive(Clone, Default)]
pub(super) struct Load(Arc<Counts>);

/// Changed by the thread that polls only.
#[derive(Default)]
struct Counts {
    /// Bytes in the present poll.
    moved: AtomicUsize,
    /// Polls until little comes.
    left: AtomicU32,
}

impl Load {
    /// Records that the future has moved bytes.
    pub(super) fn note(&self, bytes: usize) {
        self.0.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records the end of a poll.
    fn on_polled(&self) {
        let left = match self.0.moved.swap(0, Ordering::Relaxed) >= MUCH {
            true => CALM,
            false => (self.0.left.load(Ordering::Relaxed)).saturating_sub(1),
        };
        self.0.left.store(left, Ordering::Relaxed);
    }

    fn is_much(&self) -> bool {
        self.0.left.load(Ordering::Relaxed) > 0
    }
}

/// A future that runs. Dropping this drops the future; no thread polls it any more then.
pub(super) struct Inline<T> {
    task: Arc<Task>,
    output: oneshot::Receiver<T>,
}

struct Task {
    /// `None` once it is over. Locked while it is polled.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    /// Whether it was woken since it was last polled.
    is_woken: AtomicBool,
    load: Load,
    runtime: Handle,
}

/// Runs a future that records what it moves in `load`. It is polled for the first time before this returns.
/// Must be called inside a tokio runtime.
pub(super) fn run<T: Send + 'static>(
    load: Load,
    future: impl Future<Output = T> + Send + 'static,
) -> Inline<T> {
    let (sender, output) = oneshot::channel();
    let future = async move {
        // Nothing waits any more if it was dropped.
        let _ = sender.send(future.await);
    };
    // The budget of the task whose thread polls it is not its own.
    let future = tokio::task::unconstrained(future);
    let task = Arc::new(Task {
        future: Mutex::new(Some(Box::pin(future))),
        is_woken: AtomicBool::new(true),
        load,
        runtime: Handle::current(),
    });
    task.poll();
    Inline { task, output }
}

impl Task {
    /// Polls the future until it was not woken since, unless another thread does.
    fn poll(self: &Arc<Self>) {
        // A thread that finds it locked has set this before, and the one that polls looks at it afterwards.
        while self.is_woken.load(Ordering::SeqCst) {
            let mut future = match self.future.try_lock() {
                Ok(future) => future,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            while self.is_woken.swap(false, Ordering::SeqCst) {
                let Some(pinned) = &mut *future else {
                    return;
                };
                let waker = Waker::from(Arc::clone(self));
                let mut context = Context::from_waker(&waker);
                // A panic must not end what woke it: the user of this future finds no output.
                let polled = catch_unwind(AssertUnwindSafe(|| pinned.as_mut().poll(&mut context)));
                self.load.on_polled();
                if !matches!(polled, Ok(Poll::Pending)) {
                    *future = None;
                    return;
                }
            }
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // What has set it before polls the future by and by.
        if self.is_woken.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.load.is_much() {
            let task = Arc::clone(self);
            self.runtime.spawn(async move { task.poll() });
        } else {
            self.poll();
        }
    }
}

impl<T> Future for Inline<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let output = Pin::new(&mut self.output).poll(context);
        // The panic was reported where it happened.
        output.map(|output| output.unwrap_or_else(|_| panic!("a future of a stream panicked")))
    }
}

impl<T> Drop for Inline<T> {
    fn drop(&mut self) {
        let future = (self.task.future.lock())
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // What it has may wake it again.
        drop(future);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::sync::{Notify, mpsc};

    use super::*;

    #[tokio::test]
    async fn the_thread_that_wakes_a_future_polls_it() {
        let (sender, mut values) = mpsc::unbounded_channel();
        let future = run(Load::default(), async move {
            let _ = values.recv().await;
            thread::current().id()
        });
        let id = thread::spawn(move || {
            sender.send(()).unwrap();
            thread::current().id()
        });
        assert_eq!(future.await, id.join().unwrap());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_wake_up_is_lost_and_none_is_polled_twice_at_a_time() {
        const SENDERS: usize = 4;
        const VALUES: usize = 5000;
        let (sender, mut values) = mpsc::unbounded_channel();
        let polling = Arc::new(AtomicUsize::new(0));
        let at_once = Arc::clone(&polling);
        let load = Load::default();
        let noted = load.clone();
        let future = run(load, async move {
            let mut sum = 0;
            while let Some(value) = values.recv().await {
                // Little and much, in turn.
                noted.note(MUCH * (value / 100 % 2));
                assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0);
                sum += value;
                assert_eq!(at_once.fetch_sub(1, Ordering::SeqCst), 1);
            }
            sum
        });
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let sender = sender.clone();
                thread::spawn(move || (0..VALUES).for_each(|value| sender.send(value).unwrap()))
            })
            .collect();
        drop(sender);
        assert_eq!(future.await, SENDERS * VALUES * (VALUES - 1) / 2);
        for one in senders {
            one.join().unwrap();
        }
        assert_eq!(polling.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_task_polls_a_future_that_moves_much() {
        let (sender, mut values) = mpsc::unbounded_channel();
        let load = Load::default();
        // In the first poll.
        load.note(MUCH);
        let future = run(load.clone(), async move {
            let _ = values.recv().await;
            thread::current().id()
        });
        // The runtime has this thread only.
        let other = thread::spawn(move || sender.send(()).unwrap());
        assert_eq!(future.await, thread::current().id());
        other.join().unwrap();
        load.note(1);
        load.note(MUCH - 1);
        load.on_polled();
        for _ in 0..CALM {
            assert!(load.is_much());
            load.note(MUCH - 1);
            load.on_polled();
        }
        assert!(!load.is_much());
    }

    #[tokio::test]
    async fn a_future_that_is_dropped_is_polled_no_more() {
        let notify = Arc::new(Notify::new());
        let (kept, waits) = (Arc::new(()), Arc::clone(&notify));
        let held = Arc::clone(&kept);
        let future = run(Load::default(), async move {
            waits.notified().await;
            drop(held);
        });
        assert_eq!(Arc::strong_count(&kept), 2);
        drop(future);
        assert_eq!(Arc::strong_count(&kept), 1);
        notify.notify_one();
    }

    #[tokio::test]
    async fn a_panic_is_found_where_the_future_is_awaited() {
        let notify = Arc::new(Notify::new());
        let waits = Arc::clone(&notify);
        let future = run(Load::default(), async move {
            waits.notified().await;
            panic!("as wanted");
        });
        // Does not end this.
        notify.notify_one();
        assert!(tokio::spawn(future).await.unwrap_err().is_panic());
    }
}
