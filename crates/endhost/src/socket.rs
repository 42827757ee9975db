//! The socket of a host: sends and receives many SCION packets at a time.
//!
//! When sending, the kernel cuts one buffer `[headers, payload]…` of constant stride into packets
//! (UDP segmentation offload, GSO); when receiving, it returns several packets of one sender in one
//! buffer (GRO).

mod arrival;
mod bind;
mod errors;
mod reader;
mod receive;
mod xdp;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hawser_address::ScionAddr;
use hawser_kernel::socket::allow_fragments;
pub use hawser_xdp::{Hook as XdpHook, Status as XdpStatus, XdpError};
use noq_udp::{Transmit, UdpSocketState};
use rustix::io::Errno;
use tokio::io::Interest;

pub use self::arrival::{Arrival, Datagram, ReplyPath, Report};
pub use self::bind::BindError;
pub(crate) use self::bind::source_address;
use self::errors::Io;
pub use self::reader::DropCounters;
use self::reader::Reader;
pub use self::receive::{Packets, ReceiveBuffer};
use self::xdp::Xdp;
pub use self::xdp::XdpUse;
use crate::endhost::Endhost;
use crate::headers::Headers;
use crate::sync::lock;

/// The largest payload of UDP over IPv4, so the largest buffer that the kernel cuts.
const MAX_DATAGRAM: usize = 65507;
/// Most packets that the kernel cuts one buffer into (`UDP_MAX_SEGMENTS`; newer kernels take twice
/// that).
const MAX_SEGMENTS: usize = 64;
/// Most retries of a call that fails because of the errors of earlier packets.
const RETRIES: usize = 4;

/// A UDP socket for SCION packets.
#[derive(Debug)]
pub struct Socket {
    io: Io,
    offload: UdpSocketState,
    host: Endhost,
    reader: Reader,
    xdp: Option<Xdp>,
}

impl Socket {
    /// Binds a socket of `host` at `local`, or at [`Endhost::address`], or at this host's address
    /// towards its border routers. With port 0 or without an address, the socket gets the first
    /// free port that routers deliver to, or any port if they deliver to none. Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] when the address is not usable.
    pub fn bind(host: &Endhost, local: Option<SocketAddr>) -> Result<Self, BindError> {
        let socket = Self::bind_blocking(host, local)?;
        let addr = socket.local_addr().host;
        let registered = socket.io.registered();
        registered.map_err(|source| BindError::SetUp { addr, source })?;
        Ok(socket)
    }

    /// Binds a socket as [`Socket::bind`] does, for a thread that waits for it by
    /// [`Socket::wait`]. The runtime does not watch it until a task waits for it, so errors of
    /// packets sent are noticed by the next call only.
    ///
    /// # Errors
    /// As [`Socket::bind`].
    pub fn bind_blocking(host: &Endhost, local: Option<SocketAddr>) -> Result<Self, BindError> {
        let (socket, addr) = bind::bind(host, local)?;
        let failed = |source| BindError::SetUp { addr, source };
        let offload = UdpSocketState::new((&socket).into()).map_err(failed)?;
        // QUIC's smallest packets exceed SCION's smallest MTU.
        allow_fragments(&socket, addr.ip()).map_err(failed)?;
        Ok(Self {
            io: Io::new(socket, host.clone()),
            offload,
            host: host.clone(),
            reader: Reader {
                local: ScionAddr::new(host.local_as(), addr),
                drops: Mutex::default(),
            },
            xdp: None,
        })
    }

    /// Has packets pass the kernel's stack by, in and out of the network device called `device`, as
    /// far as that is possible ([`XdpUse`]). Only for a thread that receives by
    /// [`Socket::try_receive`] and waits by [`Socket::wait`].
    ///
    /// # Errors
    /// [`XdpError`] when the device cannot be used so.
    pub fn with_xdp(mut self, device: &str) -> Result<Self, XdpError> {
        self.xdp = Some(Xdp::open(device, self.local_addr().host)?);
        Ok(self)
    }

    /// How the socket uses AF_XDP; `None` without [`Socket::with_xdp`].
    pub fn xdp(&self) -> Option<XdpUse> {
        self.xdp.as_ref().map(Xdp::used)
    }

    /// The address of this socket.
    #[inline]
    pub fn local_addr(&self) -> ScionAddr {
        self.reader.local
    }

    /// The host this socket belongs to.
    pub fn host(&self) -> &Endhost {
        &self.host
    }

    /// The number of packets dropped so far, by reason.
    pub fn drops(&self) -> DropCounters {
        *lock(&self.reader.drops)
    }

    /// Sends the beginning of `contents` behind `headers`: as many payloads of `segment` bytes (the
    /// last may be shorter) as one call takes. Returns how many bytes of `contents` were sent.
    ///
    /// `ecn` is the packets' congestion mark (two bits). `scratch` keeps its allocation between
    /// calls.
    ///
    /// # Errors
    /// `WouldBlock` when the socket's buffer is full: wait for [`Socket::writable`]. Every other
    /// error is the system's; then nothing was sent.
    #[inline]
    pub fn try_send(
        &self,
        headers: &Headers,
        contents: &[u8],
        segment: usize,
        ecn: u8,
        scratch: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let stride = headers.overhead() + segment;
        let offload = self.offload.max_gso_segments().get();
        let segments = self.max_segments(headers, segment).get();
        let sent = &contents[..contents.len().min(segments * segment)];
        scratch.clear();
        for payload in sent.chunks(segment.max(1)) {
            headers.write(payload, ecn, scratch);
        }
        match self.try_send_raw(scratch, Some(stride), headers.next_hop) {
            Ok(()) => Ok(sent.len()),
            // The network card cannot cut buffers, as this call has shown.
            Err(_) if self.offload.max_gso_segments().get() < offload => {
                self.try_send(headers, contents, segment, ecn, scratch)
            }
            // A queue of this host is full: the packets are lost, as packets may be.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => Ok(sent.len()),
            Err(error) => Err(error),
        }
    }

    /// Most payloads of `segment` bytes that one call of [`Socket::try_send`] takes.
    pub(crate) fn max_segments(&self, headers: &Headers, segment: usize) -> NonZeroUsize {
        let stride = headers.overhead() + segment;
        if stride > usize::from(self.host.local_mtu()) {
            // The kernel fragments single packets, but does not cut buffers into ones that are
            // larger than the device takes.
            return NonZeroUsize::MIN;
        }
        let fit = MAX_DATAGRAM / stride;
        let fit = NonZeroUsize::new(fit.min(MAX_SEGMENTS)).unwrap_or(NonZeroUsize::MIN);
        fit.min(self.offload.max_gso_segments())
    }

    /// Sends finished packets to `next_hop`: several of `stride` bytes, the last possibly shorter,
    /// or one.
    ///
    /// # Errors
    /// `WouldBlock` when the socket's buffer is full; every other error is the system's.
    pub(crate) fn try_send_raw(
        &self,
        packets: &[u8],
        stride: Option<usize>,
        next_hop: SocketAddr,
    ) -> io::Result<()> {
        if let Some(xdp) = &self.xdp
            && xdp.try_send(packets, stride.unwrap_or(packets.len()), next_hop)?
        {
            return Ok(());
        }
        let transmit = Transmit {
            destination: next_hop,
            ecn: None,
            contents: packets,
            segment_size: stride,
            src_ip: None,
        };
        let io = &self.io.socket;
        let send = || (self.io).try_send(|| self.offload.try_send(io.into(), &transmit));
        let mut result = send();
        for _ in 0..RETRIES {
            match &result {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {}
                _ => break,
            }
            if !self.io.read_errors() {
                break;
            }
            // The error was about another packet; send this one again.
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
    /// The system's error.
    pub async fn writable(&self) -> io::Result<()> {
        self.io.writable().await
    }

    /// Waits for packets, and receives as many as have arrived and fit into `buffer`, whose packets
    /// must all have been taken.
    ///
    /// Only one task at a time may wait.
    ///
    /// # Errors
    /// The system's error.
    pub fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut ReceiveBuffer,
    ) -> Poll<io::Result<()>> {
        let mut failures = 0;
        loop {
            let io = &self.io.registered()?.socket;
            ready!(io.poll_recv_ready(cx))?;
            let received = io.try_io(Interest::READABLE, || {
                buffer.fill(|bufs, meta| self.offload.recv((&**io).into(), bufs, meta))
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => match self.io.outlives(&error, &mut failures) {
                    true => {}
                    false => return Poll::Ready(Err(error)),
                },
                Ok(()) => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Receives as many packets as are there and fit into `buffer`, whose packets must all have been
    /// taken. Does not wait.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; everything else as the system says.
    pub fn try_receive(&self, buffer: &mut ReceiveBuffer) -> io::Result<()> {
        match &self.xdp {
            Some(xdp) => xdp.try_receive(buffer, |buffer| self.try_receive_by_kernel(buffer)),
            None => self.try_receive_by_kernel(buffer),
        }
    }

    fn try_receive_by_kernel(&self, buffer: &mut ReceiveBuffer) -> io::Result<()> {
        let io = &self.io.socket;
        let mut failures = 0;
        loop {
            match buffer.fill(|bufs, meta| self.offload.recv(io.into(), bufs, meta)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) => match self.io.outlives(&error, &mut failures) {
                    true => {}
                    false => return Err(error),
                },
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Blocks this thread until packets have arrived, there is room to send if `writable`, `also`
    /// can be read, or `timeout` is over.
    ///
    /// # Errors
    /// As the system says.
    pub fn wait(
        &self,
        also: BorrowedFd<'_>,
        writable: bool,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        match &self.xdp {
            // Whether the kernel has room says nothing about the device.
            Some(xdp) => {
                let timeout = xdp.timeout(writable, timeout);
                self.io.wait(xdp.sockets().chain([also]), false, timeout)
            }
            None => self.io.wait([also], writable, timeout),
        }
    }

    /// The packets in `buffer` that are for this socket, in order; others are dropped and counted.
    /// Packets not taken are returned by the next call.
    #[inline]
    pub fn packets<'a>(&'a self, buffer: &'a mut ReceiveBuffer) -> Packets<'a> {
        buffer.packets(&self.reader)
    }

    /// Counts `report` as one that quotes no packet sent from here.
    pub fn reject(&self, report: &Report<'_>) {
        self.reader.reject(&report.error);
    }
}
