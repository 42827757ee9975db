//! How the thread of an endpoint waits, and how other threads end its wait.
//!
//! The thread announces that it parks, then looks for something to do, then waits. Another thread
//! makes its change, under a lock that the look takes too, and then unparks. If the look came before
//! the change, so did the announcement, and unparking ends the wait; otherwise the look saw the
//! change. A look before the announcement would lose changes made between the two.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Lets one thread wait for file descriptors and for other threads.
#[derive(Debug)]
pub(super) struct Parker {
    /// Can be read once the wait is to end.
    unparked: OwnedFd,
    /// Whether the thread has announced that it waits.
    parked: AtomicBool,
}

impl Parker {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self {
            unparked: eventfd(0, flags)?,
            parked: AtomicBool::new(false),
        })
    }

    /// Waits, unless `look` finds something to do and returns `None`. `wait` gets what `look`
    /// returns, and must end when the file descriptor can be read.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(super) fn park<T>(
        &self,
        look: impl FnOnce() -> Option<T>,
        wait: impl FnOnce(T, BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.parked.store(true, Ordering::SeqCst);
        let waited = match look() {
            Some(found) => wait(found, self.unparked.as_fd()),
            None => Ok(()),
        };
        if !self.parked.swap(false, Ordering::SeqCst) {
            // Another thread has unparked this one, or is about to: then the next wait ends at once.
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.unparked, &mut count);
        }
        waited
    }

    /// Lets the thread look again. Called after the change that it is to see.
    pub(super) fn unpark(&self) {
        if self.parked.swap(false, Ordering::SeqCst) {
            // It fails only when it was written to very often and not read.
            let _ = rustix::io::write(&self.unparked, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    /// The moments at which another thread may make its change and unpark.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Moment {
        BeforeParking,
        BeforeTheLook,
        AfterTheLook,
        BeforeTheWait,
    }

    /// Whether a thread that parks would miss a change made at `moment`.
    fn is_missed(moment: Moment) -> bool {
        let (parker, change) = (Parker::new().unwrap(), Cell::new(false));
        let reach = |now: Moment| {
            if now == moment {
                change.set(true);
                parker.unpark();
            }
        };
        let missed = Cell::new(false);
        reach(Moment::BeforeParking);
        let look = || {
            reach(Moment::BeforeTheLook);
            let seen = change.get();
            reach(Moment::AfterTheLook);
            (!seen).then_some(())
        };
        let wait = |(), unparked: BorrowedFd<'_>| {
            reach(Moment::BeforeTheWait);
            let mut fds = [PollFd::from_borrowed_fd(unparked, PollFlags::IN)];
            let ready = poll(&mut fds, Some(&Timespec::default()))?;
            missed.set(ready == 0);
            Ok(())
        };
        parker.park(look, wait).unwrap();
        missed.get()
    }

    #[test]
    fn no_change_is_missed() {
        for moment in [
            Moment::BeforeParking,
            Moment::BeforeTheLook,
            Moment::AfterTheLook,
            Moment::BeforeTheWait,
        ] {
            assert!(!is_missed(moment), "{moment:?}");
        }
    }

    #[test]
    fn a_wait_that_ended_leaves_nothing_behind() {
        let parker = Parker::new().unwrap();
        let ready = |unparked: BorrowedFd<'_>| {
            let mut fds = [PollFd::from_borrowed_fd(unparked, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())).unwrap()
        };
        let look = || {
            parker.unpark();
            parker.unpark();
            Some(())
        };
        let wait = |(), unparked: BorrowedFd<'_>| {
            assert_eq!(ready(unparked), 1);
            Ok(())
        };
        parker.park(look, wait).unwrap();
        parker.unpark();
        assert_eq!(ready(parker.unparked.as_fd()), 0);
    }
}
