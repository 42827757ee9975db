//! UDP sockets as the router needs them.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use hawser_kernel::socket::{option, set_option, set_receive_buffer, set_send_buffer};

/// Size of the buffer in either direction: 50 ms at 1 Gbit/s, which is also what a link's queue takes
/// from the send side before it drops.
const BUFFER: usize = 8 << 20;

/// A non-blocking socket at `local`, connected to `remote` if there is one, that merges received
/// datagrams and has large buffers.
///
/// Returned with it is `remote` if there is no route to it now, as while the link is down: the
/// socket must be connected to it later. Until then it is connected to itself, so that it receives
/// from no others.
pub(crate) fn open(
    local: SocketAddr,
    remote: Option<SocketAddr>,
) -> io::Result<(UdpSocket, Option<SocketAddr>)> {
    let socket = UdpSocket::bind(local)?;
    let mut pending = None;
    if let Some(remote) = remote {
        match socket.connect(remote) {
            Err(error) if has_no_route(&error) => {
                socket.connect(local)?;
                pending = Some(remote);
            }
            connected => connected?,
        }
    }
    socket.set_nonblocking(true)?;
    set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1)?;
    set_receive_buffer(&socket, BUFFER)?;
    set_send_buffer(&socket, BUFFER)?;
    Ok((socket, pending))
}

/// Whether the system has no route to where a packet should go.
pub(crate) fn has_no_route(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(
        error.kind(),
        NetworkUnreachable | HostUnreachable | NetworkDown
    )
}

/// The largest payload that the network takes in one piece from `socket` to the address it is
/// connected to: the path MTU less the headers of IP and UDP.
pub(crate) fn largest_payload(socket: &UdpSocket) -> io::Result<usize> {
    let (level, name, headers) = match socket.local_addr()? {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU, 20 + 8),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 40 + 8),
    };
    let mtu = i32::from_ne_bytes(option(socket, level, name)?);
    Ok(usize::try_from(mtu).unwrap_or(0).saturating_sub(headers))
}

/// How many datagrams the kernel has dropped at `socket`, for want of room or a wrong checksum.
pub(crate) fn dropped(socket: &UdpSocket) -> io::Result<u64> {
    // linux/sock_diag.h: SK_MEMINFO_DROPS is the ninth of the values.
    const DROPS: usize = 8;
    let info: [u8; 64] = option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    let (values, _) = info.as_chunks();
    Ok(u64::from(u32::from_ne_bytes(values[DROPS])))
}
