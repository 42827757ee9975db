//! Socket functions that rustix does not have: options, control messages, and addresses in the
//! kernel's representation.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use std::{io, ptr};

use rustix::net::{SocketAddrAny, sockopt};

/// The result of a system call that returns a negative number when it fails.
///
/// # Errors
/// The system's error, when `result` is negative.
pub fn checked(result: impl TryInto<usize>) -> io::Result<usize> {
    result.try_into().map_err(|_| io::Error::last_os_error())
}

/// Reads an option with getsockopt(2). Bytes that the kernel does not fill in are zero: older
/// kernels have fewer fields in some structures.
///
/// # Errors
/// When the kernel does not have the option for this socket.
pub fn option<const N: usize>(socket: impl AsFd, level: i32, name: i32) -> io::Result<[u8; N]> {
    let mut value = [0; N];
    let mut length = N as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `value`, which outlives the call.
    checked(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    Ok(value)
}

/// Sets an option that is an integer or a flag with setsockopt(2).
///
/// # Errors
/// When the kernel does not have the option for this socket, or refuses the value.
pub fn set_option(socket: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the kernel reads the int during the call only, at its true size.
    checked(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// The largest IP packet that fits the route of a connected socket to `remote`, in bytes.
///
/// # Errors
/// When the socket is not connected.
pub fn route_mtu(socket: impl AsFd, remote: IpAddr) -> io::Result<u32> {
    let (level, name) = match remote {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    option(socket, level, name).map(u32::from_ne_bytes)
}

/// Lets a UDP socket bound to `own` send packets that are larger than the device takes, as fragments,
/// and others on the way fragment them too (IPv4).
///
/// Reports of smaller MTUs on the way, which anybody can forge, have no effect
/// (`IP_PMTUDISC_OMIT`).
///
/// # Errors
/// When `socket` is of the other IP version.
pub fn allow_fragments(socket: impl AsFd, own: IpAddr) -> io::Result<()> {
    match own {
        IpAddr::V4(_) => {
            let (name, omit) = (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT);
            set_option(socket, libc::IPPROTO_IP, name, omit)
        }
        IpAddr::V6(_) => {
            let (name, omit) = (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT);
            set_option(&socket, libc::IPPROTO_IPV6, name, omit)?;
            set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 0)
        }
    }
}

/// Gives the packets of a socket a mark, which needs CAP_NET_ADMIN.
///
/// # Errors
/// `EPERM` without that right.
pub fn set_mark(socket: impl AsFd, mark: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, mark as i32)
}

/// Bytes that were written to a TCP or MPTCP socket and are not acknowledged, whether or not they
/// were sent (`SIOCOUTQ` of tcp(7)).
///
/// # Errors
/// When `socket` is no such socket, or listens.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes an int.
    checked(unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Requests a receive buffer of `bytes`, with CAP_NET_ADMIN beyond the system's limit
/// (`net.core.rmem_max`), else up to that limit.
///
/// # Errors
/// When `socket` is not a socket.
pub fn set_receive_buffer(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes))?;
    Ok(())
}

/// Requests a send buffer of `bytes`, like [`set_receive_buffer`] (the limit is
/// `net.core.wmem_max`).
///
/// # Errors
/// When `socket` is not a socket.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    sockopt::set_socket_send_buffer_size_force(&socket, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, bytes))?;
    Ok(())
}

/// The smoothed round-trip time of a TCP connection (`tcpi_rtt` of `TCP_INFO`).
///
/// # Errors
/// When `socket` is not a TCP socket.
pub fn tcp_rtt(socket: impl AsFd) -> io::Result<Duration> {
    const SIZE: usize = size_of::<libc::tcp_info>();
    const RTT: usize = std::mem::offset_of!(libc::tcp_info, tcpi_rtt);
    let info: [u8; SIZE] = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    let mut rtt = [0; 4];
    rtt.copy_from_slice(&info[RTT..RTT + 4]);
    Ok(Duration::from_micros(u32::from_ne_bytes(rtt).into()))
}

/// The payload of the first control message with the given level and type; `None` if there is no
/// such control message, or it is shorter than a `T`.
///
/// # Safety
/// recvmsg(2) or recvmmsg(2) must have filled in `message`, its control buffer must still exist,
/// and every bit pattern must be a valid `T`.
pub unsafe fn control_message<T: Copy>(message: &libc::msghdr, level: i32, kind: i32) -> Option<T> {
    // SAFETY: the macros of cmsg(3) stay inside the control buffer, which the kernel has filled in;
    // the length of the payload is checked before it is read.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let found = &*header;
            if (found.cmsg_level, found.cmsg_type) == (level, kind) {
                let needed = libc::CMSG_LEN(size_of::<T>() as u32) as usize;
                let enough = found.cmsg_len as usize >= needed;
                return enough.then(|| ptr::read_unaligned(libc::CMSG_DATA(header).cast()));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

/// The address that the kernel has written into `raw`; `None` if it is not an IP address.
pub fn address(raw: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: sockaddr_storage is large and aligned enough for every socket address (POSIX), and
    // all of it is there.
    let any = unsafe {
        SocketAddrAny::read(
            (&raw const *raw).cast(),
            size_of_val(raw) as libc::socklen_t,
        )
    };
    any.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn options_are_read_back() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let read = || option(&socket, libc::IPPROTO_IP, libc::IP_TOS).map(u8::from_ne_bytes);
        set_option(&socket, libc::IPPROTO_IP, libc::IP_TOS, 0x20).unwrap();
        assert_eq!(read().unwrap(), 0x20);
        let error = set_option(&socket, libc::SOL_SOCKET, -1, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT));
        assert!(option::<4>(&socket, libc::SOL_SOCKET, -1).is_err());
    }

    #[test]
    fn addresses_are_converted_from_the_kernels_form() {
        for text in ["10.0.1.254:30042", "[fd00::1]:50000", "[fe80::1%3]:1"] {
            let expected: SocketAddr = text.parse().unwrap();
            let any = SocketAddrAny::from(expected);
            // SAFETY: all zeros is a valid sockaddr_storage, and an address fits into it.
            let raw = unsafe {
                let mut raw: libc::sockaddr_storage = std::mem::zeroed();
                let to = (&raw mut raw).cast::<u8>();
                ptr::copy_nonoverlapping(any.as_ptr().cast(), to, any.addr_len() as usize);
                raw
            };
            assert_eq!(address(&raw), Some(expected));
        }
    }

    #[test]
    fn buffers_grow() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = sockopt::socket_recv_buffer_size(&socket).unwrap();
        set_receive_buffer(&socket, before / 4).unwrap();
        set_send_buffer(&socket, before / 4).unwrap();
        let small = sockopt::socket_recv_buffer_size(&socket).unwrap();
        assert!(small < before, "{small} {before}");
        set_receive_buffer(&socket, 8 << 20).unwrap();
        assert!(sockopt::socket_recv_buffer_size(&socket).unwrap() >= before);
    }

    #[test]
    fn a_tcp_connection_has_a_round_trip_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        here.write_all(b"x").unwrap();
        there.read_exact(&mut [0]).unwrap();
        assert!(tcp_rtt(&here).unwrap() > Duration::ZERO);
        assert!(tcp_rtt(UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }
}
