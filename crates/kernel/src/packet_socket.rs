//! Packet sockets (packet(7)) that receive and send Ethernet frames with their offloads.
//!
//! Before each frame stands a `struct virtio_net_hdr` (`linux/virtio_net.h`), which says what the
//! network card is to do with it: checksums, and the segments into which it is cut.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};
use std::{io, mem};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::socket::{
    checked, control_message, option, set_option, set_receive_buffer, set_send_buffer,
};

/// Length of the header before each frame.
pub const HEADER: usize = 10;

/// Maximum number of frames that one call receives.
const SLOTS: usize = 32;
/// Space for one frame: the header, an Ethernet header and the largest IP packet. Not a power of
/// two, at which the headers of all frames would compete for the same lines of the CPU cache.
const SLOT: usize = 65536 + 1536;
/// Space for the control message of a timestamp.
type Control = [u64; 8];

/// The packet was received longer ago than this only if the system's time was changed.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A socket that receives all frames that arrive at a device.
#[derive(Debug)]
pub struct Receiver(OwnedFd);

/// Buffers for the frames of one call.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Length and age of each.
    received: Vec<(usize, Duration)>,
    time: Instant,
}

impl Receiver {
    /// Opens a socket at a device of the calling thread's network namespace, with a receive buffer of
    /// `buffer` bytes. It does not block.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` in that namespace, or when it has no such device.
    pub fn open(device: &str, buffer: usize) -> io::Result<Self> {
        // Without a protocol no frames arrive before all options are set.
        let socket = open()?;
        let index = netdevice::name_to_index(&socket, device)?;
        set_receive_buffer(&socket, buffer)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        let address = address(index, libc::ETH_P_ALL as u16);
        // SAFETY: the pointer is to a sockaddr_ll of that size, which outlives the call.
        checked(unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        })?;
        Ok(Self(socket))
    }

    /// Receives frames that have arrived into `frames`, in place of those there.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when a frame was dropped whose offload the header cannot
    /// express; the error of the system when the device is gone.
    pub fn receive(&self, frames: &mut Frames) -> io::Result<()> {
        let mut control = [Control::default(); SLOTS];
        // SAFETY: plain data, for which all zeros is a value.
        let mut vectors: [libc::iovec; SLOTS] = unsafe { mem::zeroed() };
        // SAFETY: plain data, for which all zeros is a value.
        let mut heads: [libc::mmsghdr; SLOTS] = unsafe { mem::zeroed() };
        for (i, buffer) in frames.bytes.chunks_exact_mut(SLOT).enumerate() {
            vectors[i].iov_base = buffer.as_mut_ptr().cast();
            vectors[i].iov_len = SLOT;
            let head = &mut heads[i].msg_hdr;
            head.msg_iov = &raw mut vectors[i];
            head.msg_iovlen = 1;
            head.msg_control = (&raw mut control[i]).cast();
            head.msg_controllen = size_of::<Control>() as _;
        }
        frames.received.clear();
        // SAFETY: every pointer in the heads is to memory that lives until the end of this function,
        // with its true length.
        let received = checked(unsafe {
            libc::recvmmsg(
                self.0.as_raw_fd(),
                heads.as_mut_ptr(),
                SLOTS as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        });
        frames.time = Instant::now();
        let now = SystemTime::now();
        let count = match received {
            Ok(count) => count,
            Err(error) => match error.raw_os_error() {
                // The device went down, which the system reports once; frames arrive again when it is up.
                Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => return Ok(()),
                _ => return Err(error),
            },
        };
        for head in &heads[..count] {
            let age = time_of(&head.msg_hdr).and_then(|time| now.duration_since(time).ok());
            let age = age.filter(|age| *age < MAX_AGE).unwrap_or_default();
            frames.received.push((head.msg_len as usize, age));
        }
        Ok(())
    }

    /// Number of frames that were dropped because the receive buffer was full, since the last call.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn dropped(&self) -> io::Result<u32> {
        // struct tpacket_stats: the numbers of packets and of drops, which each call resets.
        let [_, _, _, _, drops @ ..]: [u8; 8] =
            option(&self.0, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        Ok(u32::from_ne_bytes(drops))
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            bytes: vec![0; SLOTS * SLOT],
            received: Vec::with_capacity(SLOTS),
            time: Instant::now(),
        }
    }
}

impl Frames {
    /// The frames, each with its header, and the time when its device received it.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, &[u8])> {
        let slots = self.bytes.chunks_exact(SLOT);
        slots.zip(&self.received).map(|(bytes, (length, age))| {
            let time = self.time.checked_sub(*age).unwrap_or(self.time);
            (time, &bytes[..*length])
        })
    }
}

/// Whether frames of several UDP datagrams (`UDP_SEGMENT`) can be received and sent: since Linux 6.2.
/// Otherwise the kernel must cut them before.
pub fn carries_udp_segments() -> bool {
    let system = rustix::system::uname();
    system.release().to_str().is_ok_and(is_at_least_6_2)
}

fn is_at_least_6_2(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    let version = (next().unwrap_or_default(), next().unwrap_or_default());
    version >= (6, 2)
}

/// A socket that sends frames over any device.
#[derive(Debug)]
pub struct Sender(OwnedFd);

impl Sender {
    /// Opens a socket to the calling thread's network namespace, whose frames have `mark` (`SO_MARK`
    /// of socket(7)), with a send buffer of `buffer` bytes. It does not block.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` and `CAP_NET_ADMIN` in that namespace.
    pub fn open(mark: u32, buffer: usize) -> io::Result<Self> {
        let socket = open()?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_MARK, mark as i32)?;
        set_send_buffer(&socket, buffer)?;
        Ok(Self(socket))
    }

    /// Sends a frame with its header over the device with the number `index`.
    ///
    /// # Errors
    /// When the device is down, or its queue or the send buffer is full.
    pub fn send(&self, index: u32, frame: &[u8]) -> io::Result<()> {
        let address = address(index, 0);
        // SAFETY: the pointers are to memory that outlives the call, with its true length.
        checked(unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        })?;
        Ok(())
    }
}

/// A packet socket without a protocol, whose frames have headers.
fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    Ok(socket)
}

fn address(index: u32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as i32;
    address
}

/// The kernel's timestamp of the frame.
fn time_of(head: &libc::msghdr) -> Option<SystemTime> {
    let (level, kind) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    // SAFETY: recvmmsg has filled the head in, and its control messages are still there; a timespec
    // is integers only.
    let time: libc::timespec = unsafe { control_message(head, level, kind) }?;
    let seconds = time.tv_sec.try_into().ok()?;
    let time = Duration::new(seconds, time.tv_nsec.try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(time)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::link::{LinkFlags, LinkMessage};

    use super::*;
    use crate::namespace::{NetNs, is_privileged};
    use crate::netlink::Netlink;

    #[test]
    fn kernels_are_told_apart_by_their_release() {
        for release in ["6.2", "6.2.0-rc1", "6.18.44-x", "7.0.1", "10.0"] {
            assert!(is_at_least_6_2(release), "{release}");
        }
        for release in ["5.15.0-91-generic", "6.1.0-18-amd64", "6", "", "x"] {
            assert!(!is_at_least_6_2(release), "{release}");
        }
    }

    #[test]
    fn frames_are_received_whole_and_can_be_sent_again() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let namespace = NetNs::create().unwrap();
        let received = namespace.run(|| {
            let mut message = LinkMessage::default();
            message.header.index = 1;
            message.header.flags = LinkFlags::Up;
            message.header.change_mask = LinkFlags::Up;
            let up = RouteNetlinkMessage::SetLink(message);
            Netlink::open().unwrap().request(up, 0).unwrap();
            let receiver = Receiver::open("lo", 1 << 20).unwrap();
            let sender = Sender::open(7, 1 << 20).unwrap();
            let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let (speaker, listener) = (bind(), bind());
            let to = listener.local_addr().unwrap();
            let mut frames = Frames::default();
            speaker.send_to(&[5; 100], to).unwrap();
            let mut next = || loop {
                receiver.receive(&mut frames).unwrap();
                let found: Vec<_> = frames.iter().map(|(_, frame)| frame.to_vec()).collect();
                if !found.is_empty() {
                    return found;
                }
            };
            let first = next();
            sender.send(1, &first[0]).unwrap();
            let again = next();
            (first, again, receiver.dropped().unwrap())
        });
        let (first, again, dropped) = received.unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].len(), HEADER + 14 + 20 + 8 + 100);
        assert_eq!(first[0][HEADER + 42..], [5; 100]);
        assert_eq!(again, first);
        assert_eq!(dropped, 0);
    }
}
