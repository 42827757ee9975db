//! The mark of this shim's own packets, which are not captured.

use std::io;
use std::os::fd::AsFd;

use hawser_kernel::socket;

/// The mark (`SO_MARK`) of the holder's own connections, which are not captured: "hwsr".
pub(crate) const MARK: u32 = 0x6877_7372;

/// Has what `socket` sends not be captured.
///
/// # Errors
/// As the system says. Without the right to mark packets nothing is captured either.
pub(crate) fn mark(socket: impl AsFd) -> io::Result<()> {
    match socket::set_mark(socket, MARK) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}
