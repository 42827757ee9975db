//! What the system measures on a TCP connection.

use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::GetStruct;
use tokio::net::TcpStream;

/// The first fields of the kernel's `tcp_info`.
#[derive(Debug, Clone, Copy)]
struct TcpInfo;

nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info,
    GetStruct<libc::tcp_info>
);

/// Smoothed round-trip time; zero when the connection is no more.
pub(super) fn rtt(stream: &TcpStream) -> Duration {
    let info = getsockopt(stream, TcpInfo);
    info.map_or(Duration::ZERO, |info| {
        Duration::from_micros(info.tcpi_rtt.into())
    })
}
