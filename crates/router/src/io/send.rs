//! Sending many datagrams in one call.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use hawser_kernel::socket_address::to_raw;

use super::checked;

/// Room for one control message of two bytes.
#[repr(C, align(8))]
struct Control([u8; 32]);

/// Sends the bytes of `parts`, cut into datagrams of `segment` bytes if given, to `to`, or to the
/// address the socket is connected to. Does not block.
pub(crate) fn send(
    socket: &UdpSocket,
    parts: &[IoSlice<'_>],
    segment: Option<u16>,
    to: Option<SocketAddr>,
) -> io::Result<()> {
    // SAFETY: plain data, for which all zeros is a value.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    let mut control = Control([0; 32]);
    let mut name = to.as_ref().map(to_raw);
    if let Some((name, length)) = &mut name {
        head.msg_name = (&raw mut *name).cast();
        head.msg_namelen = *length;
    }
    // IoSlice is guaranteed to have the layout of iovec, and sendmsg does not write to what it
    // points to.
    head.msg_iov = parts.as_ptr().cast_mut().cast();
    head.msg_iovlen = parts.len() as _;
    if let Some(segment) = segment {
        head.msg_control = control.0.as_mut_ptr().cast();
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
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &head, libc::MSG_DONTWAIT) };
    checked(if sent < 0 { -1 } else { 0 })?;
    Ok(())
}
