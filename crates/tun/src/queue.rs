//! Reading and writing packets.

use std::io::{self, IoSlice};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, writev};

use crate::ip::IPV6_HEADER;
use crate::merge::MergedPacket;
use crate::packet::Packet;
use crate::vnet::VNET_HEADER;

/// Bytes of a buffer that any packet fits. The kernel drops a packet that its buffer is too small for
/// (`EFAULT`).
pub const READ_BUFFER: usize = VNET_HEADER + IPV6_HEADER + u16::MAX as usize;

/// A queue of a TUN device: a descriptor that does not block, of a device without protocol information
/// and with vnet headers of 10 bytes ([`Tun::create`](crate::Tun::create)). Such a descriptor may come
/// from another process.
#[derive(Debug)]
pub struct Queue(OwnedFd);

impl Queue {
    /// Reads one packet, perhaps a large one, by one system call.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none; [`io::ErrorKind::InvalidData`] with
    /// [`Malformed`](crate::Malformed) for one packet that was dropped; others when the device is down
    /// (`EIO`) or gone (`EBADFD`).
    #[inline]
    pub fn try_read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Packet<'a>> {
        let length = read(&self.0, &mut *buffer)?;
        Packet::parse(&buffer[..length])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Writes a merged packet by one system call.
    ///
    /// # Errors
    /// The packet is lost when the kernel has no memory for it, and when the device is down (`EIO`) or
    /// gone (`EBADFD`).
    #[inline]
    pub fn try_write(&self, packet: MergedPacket<'_>) -> io::Result<()> {
        rustix::io::write(&self.0, packet.bytes())?;
        Ok(())
    }

    /// Writes an IP packet whose checksums are complete. The kernel verifies them.
    ///
    /// # Errors
    /// As [`Queue::try_write`], and [`io::ErrorKind::InvalidInput`] if it is neither IPv4 nor IPv6.
    #[inline]
    pub fn try_write_datagram(&self, packet: &[u8]) -> io::Result<()> {
        // Nothing to complete, nothing to cut.
        let vnet = [0; VNET_HEADER];
        writev(&self.0, &[IoSlice::new(&vnet), IoSlice::new(packet)])?;
        Ok(())
    }
}

impl From<OwnedFd> for Queue {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl From<Queue> for OwnedFd {
    fn from(queue: Queue) -> Self {
        queue.0
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
