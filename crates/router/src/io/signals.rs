//! SIGTERM and SIGINT as something to poll.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::checked;

/// Blocks SIGTERM and SIGINT in this thread while it exists; the descriptor becomes ready when one
/// arrives.
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
            checked(libc::sigaddset(&mut blocked, libc::SIGTERM))?;
            checked(libc::sigaddset(&mut blocked, libc::SIGINT))?;
            let descriptor = checked(libc::signalfd(
                -1,
                &blocked,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            ))?;
            // Fresh from the kernel, so nothing else owns it.
            let descriptor = OwnedFd::from_raw_fd(descriptor);
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
        // A signal that has ended the wait must not be delivered once unblocked.
        let mut taken = [0u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the kernel writes at most the buffer's length into it.
        while unsafe { libc::read(self.descriptor(), taken.as_mut_ptr().cast(), taken.len()) > 0 } {
        }
        // SAFETY: `before` is the mask that pthread_sigmask returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
