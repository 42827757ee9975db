//! Datagrams that leave out the kernel's stack (AF_XDP), beside those that do not.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hawser_xdp::{Outcome, Port, Status, XdpError};

use super::receive::ReceiveBuffer;

/// Time between attempts to send what the device did not take.
const RETRY: Duration = Duration::from_micros(50);

/// How a socket uses AF_XDP, and packets so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpUse {
    /// How the device is used.
    pub status: Status,
    /// Packets sent by AF_XDP.
    pub sent: u64,
    /// Packets received by AF_XDP.
    pub received: u64,
    /// Packets that arrived and were dropped, because earlier ones were not taken in time.
    pub dropped: u64,
    /// Packets sent by the kernel's stack: by other devices, to hosts whose Ethernet address was not
    /// known yet, and larger than a frame.
    pub kernel_sent: u64,
    /// Packets received by the kernel's stack: from other devices, and larger than a frame.
    pub kernel_received: u64,
}

/// The datagrams of a socket by AF_XDP.
#[derive(Debug)]
pub(super) struct Xdp {
    port: Port,
    /// Whether the kernel's socket is received from first, every other time.
    kernel_first: AtomicBool,
    kernel_sent: AtomicU64,
    kernel_received: AtomicU64,
}

impl Xdp {
    pub(super) fn open(device: &str, local: SocketAddr) -> Result<Self, XdpError> {
        Ok(Self {
            port: Port::open(device, local)?,
            kernel_first: AtomicBool::new(false),
            kernel_sent: AtomicU64::new(0),
            kernel_received: AtomicU64::new(0),
        })
    }

    /// Sends packets of `stride` bytes each, the last possibly shorter. Returns whether they are sent:
    /// otherwise the kernel must send them.
    pub(super) fn try_send(
        &self,
        packets: &[u8],
        stride: usize,
        next_hop: SocketAddr,
    ) -> io::Result<bool> {
        let sent = self.port.try_send(packets, stride, next_hop)? == Outcome::Sent;
        if !sent {
            let count = packets.len().div_ceil(stride.max(1)) as u64;
            self.kernel_sent.fetch_add(count, Ordering::Relaxed);
        }
        Ok(sent)
    }

    /// Receives into `buffer` what has arrived, also by `kernel`, which fails with `WouldBlock` when
    /// nothing has.
    pub(super) fn try_receive(
        &self,
        buffer: &mut ReceiveBuffer,
        mut kernel: impl FnMut(&mut ReceiveBuffer) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut by_kernel = |buffer: &mut ReceiveBuffer| -> io::Result<()> {
            kernel(buffer)?;
            let count = buffer.count() as u64;
            self.kernel_received.fetch_add(count, Ordering::Relaxed);
            Ok(())
        };
        let kernel_first = self.kernel_first.fetch_xor(true, Ordering::Relaxed);
        if kernel_first {
            match by_kernel(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
        if buffer.gather(|take| self.port.receive(take)) > 0 {
            return Ok(());
        }
        match kernel_first {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => by_kernel(buffer),
        }
    }

    /// What can be read when packets have arrived.
    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.port.sockets()
    }

    /// How long to wait, at most `timeout`: shorter if packets could not be sent.
    pub(super) fn timeout(&self, blocked: bool, timeout: Option<Duration>) -> Option<Duration> {
        match blocked || self.port.is_sending() {
            true => Some(timeout.map_or(RETRY, |timeout| timeout.min(RETRY))),
            false => timeout,
        }
    }

    pub(super) fn used(&self) -> XdpUse {
        XdpUse {
            status: self.port.status().clone(),
            sent: self.port.sent(),
            received: self.port.received(),
            dropped: self.port.dropped(),
            kernel_sent: self.kernel_sent.load(Ordering::Relaxed),
            kernel_received: self.kernel_received.load(Ordering::Relaxed),
        }
    }
}
