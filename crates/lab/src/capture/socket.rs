//! A packet socket of packet(7) on one device.

use std::ffi::CString;
use std::time::Duration;
use std::{io, mem, ptr};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use super::{Frame, SNAP_LENGTH};

/// Bytes of frames that may wait for us; the kernel gives what it allows.
const BUFFER: usize = 64 << 20;

/// Room for the one control message that is asked for, and more.
const CONTROL: usize = 128;

#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
    buffer: Vec<u8>,
    /// PACKET_STATISTICS starts again from zero whenever it is read.
    dropped: u64,
}

impl PacketSocket {
    /// Listens at a device of the calling thread's network namespace.
    pub fn open(device: &str) -> io::Result<Self> {
        let name = CString::new(device)?;
        // SAFETY: the name ends with a zero byte and outlives the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // No protocol yet: nothing arrives before all is set.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        if sockopt::set_socket_recv_buffer_size_force(&fd, BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&fd, BUFFER)?;
        }
        set(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
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
        check(bound)?;
        Ok(Self {
            fd,
            buffer: vec![0; SNAP_LENGTH as usize],
            dropped: 0,
        })
    }

    /// The next frame, or none.
    pub fn receive(&mut self) -> io::Result<Option<Frame<'_>>> {
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
            // outlives the call. MSG_TRUNC: the whole length is returned, whatever fits.
            let got =
                unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
            if got >= 0 {
                break got as usize;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                // The link went down: said once, and frames come again with it.
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

    /// Frames that found no room.
    pub fn dropped(&mut self) -> io::Result<u64> {
        // SAFETY: all zeros is a valid tpacket_stats.
        let mut statistics: libc::tpacket_stats = unsafe { mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the pointers are to a tpacket_stats and its size, which outlive the call.
        let got = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        check(got)?;
        self.dropped += u64::from(statistics.tp_drops);
        Ok(self.dropped)
    }
}

impl PacketSocket {
    /// To wait for frames by.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// When the kernel saw the frame.
fn time_of(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: recvmsg has filled the control messages in, and the macros stay inside them.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let (level, kind) = ((*header).cmsg_level, (*header).cmsg_type);
            if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time: libc::timespec = ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                return Some(Duration::new(
                    time.tv_sec.try_into().ok()?,
                    time.tv_nsec.try_into().ok()?,
                ));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

fn set(fd: &OwnedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer is to an int, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    check(done)
}

fn check(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
