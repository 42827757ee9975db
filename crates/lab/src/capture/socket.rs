//! Captures with a packet socket (packet(7)) on one device.

use std::time::Duration;
use std::{io, mem};

use hawser_kernel::socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use super::pcapng::{CaptureInterface, Frame, SNAP_LENGTH};

/// Requested size of the receive buffer in bytes; the kernel may grant less.
const BUFFER: usize = 64 << 20;

/// Space for control messages in bytes: more than the requested one needs.
const CONTROL: usize = 128;

/// A capture at one end of a link, of both directions.
///
/// Frames that the interface sends are captured after the link's limit and delay, received frames
/// on arrival. A super-packet of segmentation offload is one frame.
#[derive(Debug)]
pub struct Capture {
    /// The captured interface.
    pub interface: CaptureInterface,
    fd: OwnedFd,
    buffer: Vec<u8>,
    /// Total number of dropped frames so far: each read of PACKET_STATISTICS resets the kernel's
    /// counter.
    dropped: u64,
}

impl Capture {
    /// Starts a capture at a device of the calling thread's network namespace.
    pub(super) fn open(interface: CaptureInterface) -> io::Result<Self> {
        // Without a protocol no frames arrive before all options are set.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let index = netdevice::name_to_index(&fd, &interface.device)?;
        socket::set_receive_buffer(&fd, BUFFER)?;
        socket::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // SAFETY: all zeros is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: the pointer is to a sockaddr_ll of that size, which outlives the call.
        let bound = unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            interface,
            fd,
            buffer: vec![0; SNAP_LENGTH as usize],
            dropped: 0,
        })
    }

    /// The next frame; `None` if no frame is available.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        let mut control = [0u64; CONTROL / 8];
        // SAFETY: all zeros is a valid sockaddr_ll.
        let mut from: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut part = libc::iovec {
            iov_base: self.buffer.as_mut_ptr().cast(),
            iov_len: self.buffer.len(),
        };
        // SAFETY: all zeros is a valid msghdr.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = CONTROL as _;
        let length = loop {
            // SAFETY: every pointer of the message is to memory of the length beside it, which
            // outlives the call. With MSG_TRUNC the call returns the length of the complete frame.
            let got =
                unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
            if got >= 0 {
                break got as usize;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                // The link went down, which the system reports once; frames arrive again when it is
                // up.
                Some(libc::EINTR | libc::ENETDOWN) => {}
                _ if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                _ => return Err(error),
            }
        };
        Ok(Some(Frame {
            time: time_of(&message).unwrap_or_default(),
            outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
            length: length.try_into().unwrap_or(u32::MAX),
            data: &self.buffer[..length.min(self.buffer.len())],
        }))
    }

    /// Waits until a frame is available or `stop` is readable; returns `false` in the latter case.
    ///
    /// # Errors
    /// When poll(2) fails.
    pub fn wait(&self, stop: BorrowedFd<'_>) -> io::Result<bool> {
        let mut fds = [
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::new(&self.fd, PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        Ok(fds[0].revents().is_empty())
    }

    /// Number of frames that the kernel has dropped so far because the receive buffer was full.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn dropped(&mut self) -> io::Result<u64> {
        // struct tpacket_stats: the numbers of packets and of drops.
        let statistics: [u8; 8] =
            socket::option(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        let [_, _, _, _, drops @ ..] = statistics;
        self.dropped += u64::from(u32::from_ne_bytes(drops));
        Ok(self.dropped)
    }
}

/// The packet socket: a frame that is written to it is sent out of the interface.
impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The kernel's timestamp of the frame.
fn time_of(message: &libc::msghdr) -> Option<Duration> {
    let (level, kind) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    // SAFETY: recvmsg has filled the message in; a timespec is integers only.
    let time: libc::timespec = unsafe { socket::control_message(message, level, kind) }?;
    let seconds = time.tv_sec.try_into().ok()?;
    Some(Duration::new(seconds, time.tv_nsec.try_into().ok()?))
}
