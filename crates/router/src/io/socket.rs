//! UDP sockets as the router needs them.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use super::checked;

/// Size of the buffer in either direction: 50 ms at 1 Gbit/s, which is also what a link's queue takes
/// from the send side before it drops.
const BUFFER: libc::c_int = 8 << 20;

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
    set(&socket, libc::SOL_UDP, libc::UDP_GRO, 1)?;
    for (force, plain) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        // Only with CAP_NET_ADMIN may a socket exceed the system's limit; without it the system
        // gives as much as it allows.
        if set(&socket, libc::SOL_SOCKET, force, BUFFER).is_err() {
            set(&socket, libc::SOL_SOCKET, plain, BUFFER)?;
        }
    }
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

fn set(
    socket: &UdpSocket,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel reads `value` during the call only, at its
    // true length.
    checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// The largest payload that the network takes in one piece from `socket` to the address it is
/// connected to: the path MTU less the headers of IP and UDP.
pub(crate) fn largest_payload(socket: &UdpSocket) -> io::Result<usize> {
    let (level, option, headers) = match socket.local_addr()? {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU, 20 + 8),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 40 + 8),
    };
    let mut mtu: libc::c_int = 0;
    let mut length = size_of_val(&mtu) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `mtu`.
    checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut mtu).cast(),
            &mut length,
        )
    })?;
    Ok(usize::try_from(mtu).unwrap_or(0).saturating_sub(headers))
}

/// How many datagrams the kernel has dropped at `socket`, for want of room or a wrong checksum.
pub(crate) fn dropped(socket: &UdpSocket) -> io::Result<u64> {
    // linux/sock_diag.h: SK_MEMINFO_DROPS is the ninth of the values.
    const DROPS: usize = 8;
    let mut info = [0u32; 16];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`.
    checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    })?;
    Ok(u64::from(info[DROPS]))
}
