//! The error queue of a UDP socket (`IP_RECVERR` of ip(7)): ICMP errors about packets that it sent.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use crate::socket::{address, checked, control_message, set_option};

/// Room in bytes for a `sock_extended_err` and the address that follows it.
const CONTROL: usize = 256;

/// Makes the kernel queue ICMP errors about packets that `socket` sent.
///
/// # Errors
/// When the kernel has no such queue for the socket.
pub fn enable(socket: &UdpSocket) -> io::Result<()> {
    let (level, option) = match socket.local_addr()? {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    set_option(socket, level, option, 1)
}

/// Takes the next error off the queue: the destination of the packet, and the ICMP error. `None`
/// for a local error, which the call that sent the packet has already returned.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when the queue is empty.
pub fn next(socket: impl AsFd) -> io::Result<Option<(SocketAddr, io::Error)>> {
    let mut control = [0u64; CONTROL / 8];
    // SAFETY: all zeros is a valid sockaddr_storage.
    let mut to: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: all zeros is a valid msghdr. No buffer is given for the packet itself, so the kernel
    // discards it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut to).cast();
    message.msg_namelen = size_of_val(&to) as libc::socklen_t;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: every pointer of the message is to memory of the length beside it, which outlives the
    // call.
    let mut receive =
        || checked(unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) });
    while let Err(error) = receive() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let find = |level, kind| {
        // SAFETY: recvmsg has filled the message in; a sock_extended_err is integers only.
        unsafe { control_message::<libc::sock_extended_err>(&message, level, kind) }
    };
    let error = find(libc::IPPROTO_IP, libc::IP_RECVERR)
        .or_else(|| find(libc::IPPROTO_IPV6, libc::IPV6_RECVERR));
    let icmp = |origin| [libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6].contains(&origin);
    Ok(error
        .filter(|error| icmp(error.ee_origin))
        .and_then(|error| {
            let error = io::Error::from_raw_os_error(i32::try_from(error.ee_errno).ok()?);
            Some((address(&to)?, error))
        }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(any: &str) {
        let Ok(socket) = UdpSocket::bind(any) else {
            eprintln!("skipped: no address for {any}");
            return;
        };
        enable(&socket).unwrap();
        assert_eq!(next(&socket).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // The port was just closed, so no program listens there.
        let closed = UdpSocket::bind(any).unwrap().local_addr().unwrap();
        socket.send_to(b"x", closed).unwrap();
        let (to, error) = next(&socket).unwrap().unwrap();
        assert_eq!(to, closed);
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(next(&socket).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_refused_packet_is_reported_with_its_destination() {
        refused("127.0.0.1:0");
        refused("[::1]:0");
    }
}
