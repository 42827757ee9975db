//! The router's UDP sockets, and sending many datagrams in one call.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use hawser_kernel::socket::{checked, option, set_option, set_receive_buffer, set_send_buffer};
use rustix::net::SocketAddrAny;

/// Size in bytes of a socket's receive and of its send buffer: more than 50 ms at 1 Gbit/s. The
/// packets in the queue of a link's rate limit count against the send buffer.
const BUFFER: usize = 8 << 20;

/// Opens a non-blocking socket at `local`, connected to `remote` if given, that merges received
/// datagrams and has large buffers.
///
/// Also returns `remote` if there is no route to it, as while the link is down: the caller must
/// connect the socket later. Until then it is connected to itself, so that it receives nothing from
/// other sources.
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

/// Sends the bytes of `parts`, cut into datagrams of `segment` bytes if given, to `to`, or if that
/// is `None` to the address that the socket is connected to. Does not block.
pub(crate) fn send(
    socket: &UdpSocket,
    parts: &[IoSlice<'_>],
    segment: Option<u16>,
    to: Option<SocketAddr>,
) -> io::Result<()> {
    // SAFETY: plain data, for which all zeros is a value.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    // Room for one control message of two bytes.
    let mut control = [0u64; 4];
    let name = to.map(SocketAddrAny::from);
    if let Some(name) = &name {
        head.msg_name = name.as_ptr().cast_mut().cast();
        head.msg_namelen = name.addr_len();
    }
    // IoSlice is guaranteed to have the layout of iovec, and sendmsg does not write to the memory
    // that name and parts point to.
    head.msg_iov = parts.as_ptr().cast_mut().cast();
    head.msg_iovlen = parts.len() as _;
    if let Some(segment) = segment {
        head.msg_control = control.as_mut_ptr().cast();
        // SAFETY: the buffer holds CMSG_SPACE(2) bytes and is aligned for a control message, so the
        // first one and its data lie within it.
        unsafe {
            head.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
            let message = libc::CMSG_FIRSTHDR(&head);
            (*message).cmsg_level = libc::SOL_UDP;
            (*message).cmsg_type = libc::UDP_SEGMENT;
            (*message).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(message)
                .cast::<u16>()
                .write_unaligned(segment);
        }
    }
    // SAFETY: every pointer in `head` is to memory that outlives the call.
    checked(unsafe { libc::sendmsg(socket.as_raw_fd(), &head, libc::MSG_DONTWAIT) })?;
    Ok(())
}

/// Whether `error` means that the system has no route to the destination.
pub(crate) fn has_no_route(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(
        error.kind(),
        NetworkUnreachable | HostUnreachable | NetworkDown
    )
}

/// The largest UDP payload in bytes that reaches the address that `socket` is connected to without
/// fragmentation: the path MTU minus the IP and UDP headers.
pub(crate) fn largest_payload(socket: &UdpSocket) -> io::Result<usize> {
    let (level, name, headers) = match socket.local_addr()? {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU, 20 + 8),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 40 + 8),
    };
    let mtu = i32::from_ne_bytes(option(socket, level, name)?);
    Ok(usize::try_from(mtu).unwrap_or(0).saturating_sub(headers))
}

/// The number of datagrams that the kernel has dropped at `socket` because its buffer was full or a
/// checksum was wrong.
pub(crate) fn dropped(socket: &UdpSocket) -> io::Result<u64> {
    // linux/sock_diag.h: SK_MEMINFO_DROPS is the ninth of the values.
    const DROPS: usize = 8;
    let info: [u8; 64] = option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    let (values, _) = info.as_chunks();
    Ok(u64::from(u32::from_ne_bytes(values[DROPS])))
}
