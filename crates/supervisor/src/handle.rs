//! Processes that are signalled and waited for without a race.

use std::io;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process that can be signalled and waited for without a race (`pidfd_open(2)`). Its file
/// descriptor is readable when the process has ended.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    /// A handle to the process with the number `pid` now, also if it is a child that has ended and
    /// was not reaped; `None` if there is none.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn open(pid: i32) -> io::Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(pid) else {
            return Ok(None);
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Ok(Some(Self(fd))),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal; does nothing if the process has ended.
    ///
    /// # Errors
    /// When this process may not signal it.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.0, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the process has ended; returns `false` if it has not ended by the deadline.
    ///
    /// # Errors
    /// When the kernel has too little memory.
    pub fn wait_until(&self, deadline: Instant) -> io::Result<bool> {
        poll_until(self.as_fd(), Some(deadline))
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `fd` is readable; returns `false` if it is not by the deadline, if there is one.
pub(crate) fn poll_until(fd: BorrowedFd<'_>, deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.map(Timespec::try_from).transpose();
        let timeout = timeout.map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
