//! What the system measures on a TCP connection.

use std::time::Duration;

use hawser_kernel::socket::tcp_rtt;
use tokio::net::TcpStream;

/// Smoothed round-trip time; zero once the connection is closed.
pub(super) fn rtt(stream: &TcpStream) -> Duration {
    tcp_rtt(stream).unwrap_or_default()
}
