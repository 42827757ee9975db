//! Which thread reads the TUN device.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Whose turn it is to read the TUN device. At first and while little comes it is that of the `shim-in`
/// that has the device at [`Rest`](super::rest::Rest): one thread then wakes for what goes either way. While
/// much comes it is that of `shim-out`, so that both directions have a thread of their own.
pub(super) struct Turn {
    to_outbound: OwnedFd,
    to_rest: OwnedFd,
}

impl Turn {
    /// # Errors
    /// As the system says.
    pub(super) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self {
            to_outbound: eventfd(0, flags)?,
            to_rest: eventfd(0, flags)?,
        })
    }

    /// Passes the turn to `shim-out`. The caller no longer reads the device.
    pub(super) fn pass_to_outbound(&self) {
        pass(&self.to_outbound);
    }

    /// Passes the turn back. The caller no longer reads the device.
    pub(super) fn pass_to_rest(&self) {
        pass(&self.to_rest);
    }

    /// Readable once it is the turn of `shim-out`.
    pub(super) fn outbound(&self) -> BorrowedFd<'_> {
        self.to_outbound.as_fd()
    }

    /// Readable once it is the turn of `shim-in` again.
    pub(super) fn rest(&self) -> BorrowedFd<'_> {
        self.to_rest.as_fd()
    }

    /// Takes the turn of `shim-out`; `false` if it is not its turn.
    pub(super) fn take_outbound(&self) -> bool {
        take(&self.to_outbound)
    }

    /// Takes the turn of `shim-in`; `false` if it is not its turn.
    pub(super) fn take_rest(&self) -> bool {
        take(&self.to_rest)
    }
}

fn pass(to: &OwnedFd) {
    // It fails only when it was written to very often.
    let _ = rustix::io::write(to, &1u64.to_ne_bytes());
}

fn take(from: &OwnedFd) -> bool {
    rustix::io::read(from, &mut [0; 8]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_taken_once() {
        let turn = Turn::new().unwrap();
        assert!(!turn.take_outbound() && !turn.take_rest());
        turn.pass_to_outbound();
        assert!(!turn.take_rest());
        assert!(turn.take_outbound() && !turn.take_outbound());
        turn.pass_to_rest();
        assert!(turn.take_rest() && !turn.take_rest());
    }
}
