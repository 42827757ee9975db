//! What the system measures on a TCP connection.

use std::os::fd::AsRawFd;
use std::time::Duration;

use tokio::net::TcpStream;

/// Smoothed round-trip time; zero once the connection is closed.
pub(super) fn rtt(stream: &TcpStream) -> Duration {
    // rustix knows no TCP_INFO (tcp(7)).
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` has room for `length` bytes, and the descriptor is open while `stream` is.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Duration::ZERO;
    }
    // SAFETY: it is made of integers, so all zeros is a value, as is whatever the kernel wrote.
    let info = unsafe { info.assume_init() };
    Duration::from_micros(info.tcpi_rtt.into())
}
