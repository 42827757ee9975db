//! Waiting for descriptors, with timeouts below a millisecond.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use super::checked;

/// What to wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// Descriptors to wait for, in the order they were added.
#[derive(Default)]
pub(crate) struct Poller {
    entries: Vec<libc::pollfd>,
}

impl Poller {
    /// Keeps the first `length` descriptors only.
    pub fn truncate(&mut self, length: usize) {
        self.entries.truncate(length);
    }

    /// Adds `descriptor`, which must stay open while it is waited for: a closed one is reported as
    /// ready.
    pub fn add(&mut self, descriptor: RawFd, interest: Interest) {
        self.entries.push(libc::pollfd {
            fd: descriptor,
            events: match interest {
                Interest::Read => libc::POLLIN,
                Interest::Write => libc::POLLOUT,
            },
            revents: 0,
        });
    }

    /// Waits until a descriptor is ready, no longer than `timeout` if there is one. Returns how many
    /// are ready; 0 after a signal.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map(|time| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), |time| time as _);
        // SAFETY: the pointers are to memory that outlives the call, with its true length; no
        // signal mask is given.
        let ready = checked(unsafe {
            libc::ppoll(
                self.entries.as_mut_ptr(),
                self.entries.len() as libc::nfds_t,
                timeout,
                std::ptr::null(),
            )
        });
        match ready {
            Ok(ready) => Ok(ready as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.entries.iter_mut().for_each(|entry| entry.revents = 0);
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether descriptor number `index` was ready, or has failed.
    pub fn is_ready(&self, index: usize) -> bool {
        self.entries
            .get(index)
            .is_some_and(|entry| entry.revents != 0)
    }
}

/// Sets the timer slack of this thread to the least, so that its waits end when they are due and not
/// up to 50 µs later.
pub(crate) fn set_timer_slack() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) })?;
    Ok(())
}
