//! Waiting for signals to the router's process.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use hawser_kernel::socket::checked;

/// Blocks SIGTERM and SIGINT in this thread until it is dropped; the descriptor becomes readable
/// when one arrives.
pub(crate) struct Signals {
    descriptor: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    pub fn block() -> io::Result<Self> {
        // SAFETY: sigset_t is plain data that sigemptyset initialises; the pointers are to live
        // locals.
        unsafe {
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            checked(libc::sigemptyset(&mut blocked))?;
            for signal in [libc::SIGTERM, libc::SIGINT] {
                checked(libc::sigaddset(&mut blocked, signal))?;
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let descriptor = checked(libc::signalfd(-1, &blocked, flags))?;
            // The kernel has just opened it, so nothing else owns it.
            let descriptor = OwnedFd::from_raw_fd(descriptor as RawFd);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before) {
                0 => Ok(Self { descriptor, before }),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A signal that has been handled must not be delivered when it is unblocked.
        let mut taken = [0u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the kernel writes at most the buffer's length into it.
        while unsafe { libc::read(self.descriptor(), taken.as_mut_ptr().cast(), taken.len()) > 0 } {
        }
        // SAFETY: `before` is the mask that pthread_sigmask returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
