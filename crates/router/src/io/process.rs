//! Waiting for signals to the router's process.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use hawser_kernel::socket::checked;

/// The signals that a router takes.
const TAKEN: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The signals to this process that a router takes: SIGTERM and SIGINT end it, SIGHUP has it read
/// its files again.
///
/// They are blocked in the thread that made this, and in all threads that it starts from then on,
/// until this is dropped. A thread that was started before is not protected: the system delivers a
/// signal to any thread that does not block it, and ends the process. So a program makes this before
/// it starts threads. What arrives before the router runs is not lost.
pub struct Signals {
    descriptor: OwnedFd,
    before: libc::sigset_t,
    /// The blocked signals are those of one thread.
    _stays: PhantomData<*const ()>,
}

/// What signals ask for that have arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub end: bool,
    pub reload: bool,
}

impl Signals {
    /// Blocks the signals in this thread.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn block() -> io::Result<Self> {
        // SAFETY: sigset_t is plain data that sigemptyset initialises; the pointers are to live
        // locals.
        unsafe {
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            checked(libc::sigemptyset(&mut blocked))?;
            for signal in TAKEN {
                checked(libc::sigaddset(&mut blocked, signal))?;
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let descriptor = checked(libc::signalfd(-1, &blocked, flags))?;
            // The kernel has just opened it, so nothing else owns it.
            let descriptor = OwnedFd::from_raw_fd(descriptor as RawFd);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before) {
                0 => Ok(Self {
                    descriptor,
                    before,
                    _stays: PhantomData,
                }),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// Becomes readable when a signal arrives.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Takes the signals that have arrived. One that arrives several times before it is taken counts
    /// once.
    pub(crate) fn take(&self) -> Asked {
        let mut asked = Asked::default();
        // SAFETY: signalfd_siginfo is plain data.
        let mut taken: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of_val(&taken);
        // SAFETY: the kernel writes at most `size` bytes, whole structures only.
        while unsafe { libc::read(self.descriptor(), (&raw mut taken).cast(), size) > 0 } {
            match taken.ssi_signo as libc::c_int {
                libc::SIGHUP => asked.reload = true,
                _ => asked.end = true,
            }
        }
        asked
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A signal that has been handled must not be delivered when it is unblocked.
        self.take();
        // SAFETY: `before` is the mask that pthread_sigmask returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
