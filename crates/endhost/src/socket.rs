//! The socket of a host: SCION packets out and in, many at a time.
//!
//! Out, the kernel cuts one buffer `[headers, payload]…` of constant stride into packets (UDP
//! segmentation offload, GSO); in, it hands several packets of one sender over as one (GRO).

mod bind;
mod errors;
mod receive;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use hawser_packet::{Malformed, ScionAddr, ScmpError};
use nix::errno::Errno;
use noq_udp::{Transmit, UdpSocketState};
use tokio::io::Interest;

pub use self::bind::BindError;
use self::errors::Io;
pub use self::receive::{Arrival, Datagram, Packets, ReceiveBuffer, Report, WayBack};
use crate::endhost::Endhost;
use crate::route::Route;

/// The largest payload UDP over IPv4 carries, so the largest buffer the kernel cuts.
const MAX_DATAGRAM: usize = 65507;
/// The kernel cuts one buffer into at most so many packets (`UDP_MAX_SEGMENTS`; newer ones take
/// twice that).
const MAX_SEGMENTS: usize = 64;
/// So often in a row a call may fail because of what became of earlier packets.
const TRIES: usize = 4;

/// A UDP socket that speaks SCION.
pub struct Socket {
    io: Io,
    offload: UdpSocketState,
    local: ScionAddr,
    host: Endhost,
    drops: Drops,
}

/// Packets that arrived and were dropped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DropCounters {
    /// A wrong UDP or SCMP checksum.
    pub checksum: u64,
    /// No SCION packet, or one with contradicting lengths.
    pub malformed: u64,
    /// For another AS, host or port.
    pub not_for_us: u64,
    /// A sender or path that cannot be answered, or a protocol nobody here speaks.
    pub unusable: u64,
    /// SCMP errors that quote no packet sent from here, or too little of one to tell.
    pub invented: u64,
}

#[derive(Debug, Default)]
struct Drops {
    checksum: AtomicU64,
    malformed: AtomicU64,
    not_for_us: AtomicU64,
    unusable: AtomicU64,
    invented: AtomicU64,
}

impl Drops {
    fn malformed(&self, why: Malformed) {
        let counter = match why {
            Malformed::Checksum => &self.checksum,
            Malformed::NextHeader(_) => &self.unusable,
            _ => &self.malformed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Socket {
    /// Where peers reach this socket.
    pub fn local_addr(&self) -> ScionAddr {
        self.local
    }

    /// The host this socket belongs to.
    pub fn host(&self) -> &Endhost {
        &self.host
    }

    /// How many packets were dropped so far, by reason.
    pub fn drops(&self) -> DropCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DropCounters {
            checksum: load(&self.drops.checksum),
            malformed: load(&self.drops.malformed),
            not_for_us: load(&self.drops.not_for_us),
            unusable: load(&self.drops.unusable),
            invented: load(&self.drops.invented),
        }
    }

    /// Sends the beginning of `contents` over `route`: as many payloads of `segment` bytes (the
    /// last may be shorter) as one call takes. Returns how many bytes of `contents` are sent.
    ///
    /// `ecn` is the packets' congestion mark (two bits). `scratch` is only there to be used again.
    ///
    /// # Errors
    /// `WouldBlock` when the socket's buffer is full: wait for [`Socket::writable`]. Everything
    /// else as the system says; nothing is sent then.
    #[inline]
    pub fn try_send(
        &self,
        route: &Route,
        contents: &[u8],
        segment: usize,
        ecn: u8,
        scratch: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let stride = route.overhead() + segment;
        let offload = self.offload.max_gso_segments().get();
        let segments = (MAX_DATAGRAM / stride)
            .min(MAX_SEGMENTS)
            .min(offload)
            .max(1);
        let sent = &contents[..contents.len().min(segments * segment)];
        scratch.clear();
        for payload in sent.chunks(segment.max(1)) {
            route.write(payload, ecn, scratch);
        }
        match self.try_send_raw(scratch, Some(stride), route.next_hop()) {
            Ok(()) => Ok(sent.len()),
            // The network card cannot cut buffers: that was found out just now, and will be heeded.
            Err(_) if self.offload.max_gso_segments().get() < offload => {
                self.try_send(route, contents, segment, ecn, scratch)
            }
            // A queue on the way out is full: the packets are lost, as packets are.
            Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => Ok(sent.len()),
            Err(error) => Err(error),
        }
    }

    /// Hands finished packets to `next_hop`: several of `stride` bytes, the last maybe shorter, or
    /// one.
    ///
    /// # Errors
    /// `WouldBlock` when the socket's buffer is full; everything else as the system says.
    pub(crate) fn try_send_raw(
        &self,
        packets: &[u8],
        stride: Option<usize>,
        next_hop: SocketAddr,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: next_hop,
            ecn: None,
            contents: packets,
            segment_size: stride,
            src_ip: None,
        };
        let io = self.io.socket();
        let send = || {
            io.try_io(Interest::WRITABLE, || {
                self.offload.try_send(io.into(), &transmit)
            })
        };
        let mut result = send();
        for _ in 0..TRIES {
            match &result {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {}
                _ => break,
            }
            if !self.io.hear(&self.host) {
                break;
            }
            // That was about another packet; this one is still to be sent.
            result = send();
        }
        result
    }

    /// Sends one finished packet, waiting for room.
    pub(crate) async fn send_raw(&self, packet: &[u8], next_hop: SocketAddr) -> io::Result<()> {
        loop {
            match self.try_send_raw(packet, None, next_hop) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.io.writable().await?;
                }
                done => return done,
            }
        }
    }

    /// Waits until there is room to send again.
    ///
    /// # Errors
    /// As the system says.
    pub async fn writable(&self) -> io::Result<()> {
        self.io.writable().await
    }

    /// Waits for packets and receives all that are there and fit into `buffer`, which must have
    /// been emptied.
    ///
    /// One task at a time may wait.
    ///
    /// # Errors
    /// As the system says.
    pub fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut ReceiveBuffer,
    ) -> Poll<io::Result<()>> {
        loop {
            let io = self.io.socket();
            ready!(io.poll_recv_ready(cx))?;
            let received = io.try_io(Interest::READABLE, || {
                buffer.fill(|bufs, meta| self.offload.recv(io.into(), bufs, meta))
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // What became of packets sent is no reason not to receive.
                Err(_) if self.io.hear(&self.host) => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Counts `report` as one that quotes no packet sent from here.
    pub fn reject(&self, report: &Report<'_>) {
        self.reject_error(&report.error);
    }

    fn reject_error(&self, error: &ScmpError) {
        self.drops.invented.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(local = %self.local, %error, "an SCMP error quotes no packet sent from here");
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}
