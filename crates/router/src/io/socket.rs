//! The router's UDP sockets, and sending many datagrams in one call.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use hawser_kernel::socket::{checked, option, set_option, set_receive_buffer, set_send_buffer};
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, bind, socket_with, sockopt,
};

use super::distribute::distribute;

/// Size in bytes of a socket's receive and of its send buffer: more than 50 ms at 1 Gbit/s. The
/// packets in the queue of a link's rate limit count against the send buffer.
const BUFFER: usize = 8 << 20;
/// Most messages of one call of [`send_many`].
pub(crate) const MAX_MESSAGES: usize = 16;

/// Opens `count` non-blocking sockets at `local`, which merge received datagrams and have large
/// buffers. Each packet arrives at one of them, as [`flow::thread`](crate::flow::thread) says.
///
/// The sockets are not connected: the kernel would deliver all packets to the first connected one.
pub(crate) fn open(local: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    // The first one is bound exclusively: another program must not have the address.
    let first = UdpSocket::bind(local)?;
    let local = first.local_addr()?;
    let mut sockets = vec![first];
    if count > 1 {
        sockopt::set_socket_reuseport(&sockets[0], true)?;
        for _ in 1..count {
            sockets.push(bind_another(local)?);
        }
        distribute(&sockets[0], count)?;
    }
    for socket in &sockets {
        socket.set_nonblocking(true)?;
        set_merging(socket, true)?;
        set_receive_buffer(socket, BUFFER)?;
        set_send_buffer(socket, BUFFER)?;
    }
    Ok(sockets)
}

/// Binds one more socket to an address of this process.
fn bind_another(local: SocketAddr) -> io::Result<UdpSocket> {
    let family = match local {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &local)?;
    Ok(socket.into())
}

/// Sets whether the kernel merges datagrams that arrive at `socket` (GRO).
pub(crate) fn set_merging(socket: &UdpSocket, on: bool) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, on.into())
}

/// What one call of the system sends to one address.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    /// The bytes, in order.
    pub parts: &'a [IoSlice<'a>],
    /// Length of the datagrams that the bytes are cut into, if they are more than one.
    pub segment: Option<u16>,
    pub to: SocketAddr,
}

/// Room for one control message of two bytes.
type Control = [u64; 4];

/// Sends `message`. Does not block.
pub(crate) fn send(socket: &UdpSocket, message: Message<'_>) -> io::Result<()> {
    let (mut control, name) = (Control::default(), SocketAddrAny::from(message.to));
    let head = head(message, &name, &mut control);
    // The sendmsg of the C library is a cancellation point, which costs a process with several
    // threads a tenth of a small send.
    // SAFETY: the arguments have the types of sendmsg(2), and every pointer in `head` is to memory
    // that outlives the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_sendmsg,
            socket.as_raw_fd(),
            &raw const head,
            libc::MSG_DONTWAIT,
        )
    })?;
    Ok(())
}

/// Sends `messages` in order with one call, [`MAX_MESSAGES`] at most. Does not block. Returns how many were
/// sent: fewer where the next one fails.
///
/// # Errors
/// When the first one fails.
pub(crate) fn send_many(socket: &UdpSocket, messages: &[Message<'_>]) -> io::Result<usize> {
    let mut controls = [Control::default(); MAX_MESSAGES];
    let mut names = [const { MaybeUninit::<SocketAddrAny>::uninit() }; MAX_MESSAGES];
    let mut heads = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_MESSAGES];
    let count = messages.len().min(MAX_MESSAGES);
    for (index, message) in messages[..count].iter().enumerate() {
        let name = names[index].write(SocketAddrAny::from(message.to));
        heads[index].write(libc::mmsghdr {
            msg_hdr: head(*message, name, &mut controls[index]),
            msg_len: 0,
        });
    }
    // SAFETY: the arguments have the types of sendmmsg(2), the first `count` of `heads` are initialised,
    // and every pointer in them is to memory that outlives the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_sendmmsg,
            socket.as_raw_fd(),
            heads.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    })
}

/// The header of `message`, whose address is `name`. It points to all three.
fn head(message: Message<'_>, name: &SocketAddrAny, control: &mut Control) -> libc::msghdr {
    // SAFETY: plain data, for which all zeros is a value.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_name = name.as_ptr().cast_mut().cast();
    head.msg_namelen = name.addr_len();
    // IoSlice is guaranteed to have the layout of iovec, and the system does not write to the memory that
    // name and parts point to when it sends.
    head.msg_iov = message.parts.as_ptr().cast_mut().cast();
    head.msg_iovlen = message.parts.len() as _;
    if let Some(segment) = message.segment {
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
    head
}

/// Whether `error` means that the system has no route to the destination.
pub(crate) fn has_no_route(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(
        error.kind(),
        NetworkUnreachable | HostUnreachable | NetworkDown
    )
}

/// The local IP address from which the system sends to `remote`. `local` is the sender's address; it
/// may be unspecified.
pub(crate) fn probe(local: IpAddr, remote: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((local, 0))?;
    socket.connect(remote)?;
    Ok(socket.local_addr()?.ip())
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flow;

    #[test]
    fn the_kernel_and_the_router_agree_on_the_thread_of_a_packet() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        for count in [1, 2, 3] {
            let sockets = open(local, count).unwrap();
            let to = sockets[0].local_addr().unwrap();
            let sender = UdpSocket::bind(local).unwrap();
            let mut random = fastrand::Rng::with_seed(1);
            for socket in &sockets {
                socket.set_nonblocking(false).unwrap();
                socket
                    .set_read_timeout(Some(Duration::from_secs(10)))
                    .unwrap();
            }
            for length in (0..60).chain([36; 40]) {
                let mut packet = vec![0; length];
                random.fill(&mut packet);
                if random.bool() && length > 4 {
                    packet[4] = 203;
                }
                sender.send_to(&packet, to).unwrap();
                let mut got = [0; 100];
                // It arrives there, or the call fails after the timeout.
                let thread = flow::thread(&packet, count);
                let received = sockets[thread].recv(&mut got).unwrap();
                assert_eq!(got[..received], packet);
            }
        }
    }

    #[test]
    fn messages_are_sent_up_to_the_one_that_fails() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let sender = UdpSocket::bind(local).unwrap();
        let receivers = [(); 2].map(|()| UdpSocket::bind(local).unwrap());
        let (packets, too_long) = ([7; 25], vec![0; 1 << 17]);
        let cut = [IoSlice::new(&packets[..20]), IoSlice::new(&packets[20..])];
        let (whole, too_long) = ([IoSlice::new(&packets)], [IoSlice::new(&too_long)]);
        let message = |parts, segment, to: usize| Message {
            parts,
            segment,
            to: receivers[to].local_addr().unwrap(),
        };
        let messages = [
            message(&cut, Some(10), 0),
            message(&whole, None, 1),
            message(&too_long, None, 0),
            message(&whole, None, 0),
        ];
        assert_eq!(send_many(&sender, &messages).unwrap(), 2);
        assert!(send_many(&sender, &messages[2..]).is_err());
        assert_eq!(send_many(&sender, &messages[3..]).unwrap(), 1);
        for (receiver, lengths) in receivers.iter().zip([&[10, 10, 5, 25][..], &[25]]) {
            let lengths_received = lengths
                .iter()
                .map(|_| receiver.recv(&mut [0; 100]).unwrap());
            assert_eq!(lengths_received.collect::<Vec<_>>(), lengths);
        }
    }

    #[test]
    fn an_address_in_use_is_refused() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = other.local_addr().unwrap();
        assert!(open(local, 2).is_err());
        drop(other);
        let sockets = open(local, 2).unwrap();
        assert!(open(local, 2).is_err());
        drop(sockets);
    }
}
