//! Packets as the kernel hands them over, taken apart one by one.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use hawser_packet::{Malformed, MalformedPath, Packet, Quote, ScionAddr, Scmp, ScmpError, path};
use noq_udp::RecvMeta;
use sciparse::identifier::isd_asn::IsdAsn;

use super::Socket;
use crate::route::{Route, RouteError};

/// What the kernel hands over at most in one piece.
const PIECE: usize = 65536;
/// Pieces received with one system call. More only fill the caches.
const PIECES: usize = 8;

/// Room for the packets of one receive, kept to be used again.
pub struct ReceiveBuffer {
    bytes: Box<[u8]>,
    meta: [RecvMeta; PIECES],
    pieces: usize,
    /// Where the next packet begins: piece, and offset in it.
    next: (usize, usize),
}

/// The packets of one receive, taken apart one by one.
pub struct Packets<'a> {
    socket: &'a Socket,
    bytes: &'a [u8],
    meta: &'a [RecvMeta],
    next: &'a mut (usize, usize),
    /// Where the packet taken last began.
    last: (usize, usize),
}

/// A packet for us.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// Data from a peer.
    Datagram(Datagram<'a>),
    /// An SCMP error that quotes a packet from this socket's address. Any host may have sent it.
    Report(Report<'a>),
    /// An SCMP message that is no error.
    Scmp(Packet<'a>, Scmp<'a>),
}

/// Data from a peer.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    packet: Packet<'a>,
    from: SocketAddr,
    /// The peer's port.
    pub port: u16,
    /// What it sent.
    pub payload: &'a [u8],
}

/// The way back to where a packet came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayBack {
    /// The headers that lead there.
    pub route: Route,
    /// The interfaces on the way, from here to there; empty inside one AS.
    pub interfaces: Vec<u16>,
    /// When the path expires, in seconds since the Unix epoch.
    pub expiry: u64,
}

/// An SCMP error that quotes a packet from this socket's address.
///
/// It counts only if the owner of the socket finds that `quote` is of a packet that was sent: then
/// [`Endhost::report`](crate::Endhost::report) takes in its [`Outage`](crate::Outage), if it is of
/// that kind. All others are to be counted by [`Socket::reject`].
#[derive(Debug)]
pub struct Report<'a> {
    /// What is wrong.
    pub error: ScmpError,
    /// The packet it is about.
    pub quote: Quote<'a>,
}

impl Report<'_> {
    /// Whether the error fits the packet that it quotes, and comes from the AS `sender`. Only the
    /// AS of an interface reports it down (SCMP specification, "External Interface Down", "Internal
    /// Connectivity Down"), and routers let no host send in the name of another AS. A packet that
    /// fits the MTU reported cannot have been too big for it (RFC 8201, section 4).
    fn is_consistent(&self, sender: IsdAsn) -> bool {
        match self.error {
            ScmpError::ExternalInterfaceDown { isd_as, .. }
            | ScmpError::InternalConnectivityDown { isd_as, .. } => isd_as == sender,
            ScmpError::PacketTooBig { mtu } => usize::from(mtu) < self.quote.packet_len(),
            _ => true,
        }
    }
}

impl<'a> Datagram<'a> {
    /// The same for all packets of one peer host over one path, and (as far as routers check) for
    /// no others; the port comes on top.
    #[inline]
    pub fn route_bytes(&self) -> &'a [u8] {
        self.packet.route_bytes()
    }

    /// The packet's congestion mark.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.packet.ecn()
    }

    /// The way back to the sender over the packet's own path, reversed, through this AS's router at
    /// the interface the packet came in by.
    ///
    /// # Errors
    /// [`RouteError`] when the path cannot be turned round, or the router is not one of this AS.
    pub fn way_back(&self, socket: &Socket) -> Result<WayBack, RouteError> {
        let (packet, local) = (&self.packet, socket.local_addr());
        let no_way_back = |reason| RouteError::NoWayBack {
            peer: ScionAddr::new(packet.src_as(), (self.from.ip(), self.port).into()),
            reason,
        };
        if packet.path_type() == 0 {
            if packet.src_as() != local.isd_as {
                return Err(no_way_back(
                    "it comes from another AS without a path".into(),
                ));
            }
            let host = packet.src_host();
            let host = host.map_err(|error| no_way_back(error.to_string()))?;
            // Nor can answers be turned on others inside the AS.
            if host != self.from.ip() {
                return Err(no_way_back(format!("it says it is from {host}")));
            }
            return Ok(WayBack {
                route: Route::back(local, packet, self.port, (host, self.port).into())?,
                interfaces: Vec::new(),
                expiry: u64::MAX,
            });
        }
        // Only through a router of this AS, so that nobody can turn answers on others.
        if !socket
            .host()
            .routers()
            .values()
            .any(|router| *router == self.from)
        {
            let reason = format!("{} is no border router of {}", self.from, local.isd_as);
            return Err(no_way_back(reason));
        }
        // Refuses path types other than the standard one.
        let route = Route::back(local, packet, self.port, self.from)?;
        let unreadable = |error: MalformedPath| no_way_back(error.to_string());
        Ok(WayBack {
            interfaces: path::interface_ids(route.path()).map_err(unreadable)?,
            expiry: path::expiry(route.path()).map_err(unreadable)?,
            route,
        })
    }
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self {
            bytes: vec![0; PIECES * PIECE].into(),
            meta: [RecvMeta::default(); PIECES],
            pieces: 0,
            next: (0, 0),
        }
    }
}

impl ReceiveBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut pieces = self.bytes.chunks_exact_mut(PIECE);
        let mut bufs: [IoSliceMut<'_>; PIECES] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        self.pieces = 0;
        self.next = (0, 0);
        self.pieces = receive(&mut bufs, &mut self.meta)?;
        Ok(())
    }

    /// The packets that are for `socket`, in order; others are dropped and counted. Those not taken
    /// come out of the next call.
    pub fn packets<'a>(&'a mut self, socket: &'a Socket) -> Packets<'a> {
        Packets {
            socket,
            bytes: &self.bytes,
            meta: &self.meta[..self.pieces],
            last: self.next,
            next: &mut self.next,
        }
    }
}

impl Packets<'_> {
    /// Puts the packet taken last back.
    #[inline]
    pub fn put_back(&mut self) {
        *self.next = self.last;
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Arrival<'a>;

    #[inline]
    fn next(&mut self) -> Option<Arrival<'a>> {
        loop {
            let (piece, at) = *self.next;
            let meta = self.meta.get(piece)?;
            let end = (at + meta.stride.max(1)).min(meta.len);
            self.last = (piece, at);
            *self.next = if end >= meta.len {
                (piece + 1, 0)
            } else {
                (piece, end)
            };
            let packet = &self.bytes[piece * PIECE + at..piece * PIECE + end];
            if let Some(arrival) = self.socket.accept(packet, meta.addr) {
                return Some(arrival);
            }
        }
    }
}

impl Socket {
    /// Reads a packet; none when it is not for us or broken, which is counted.
    #[inline]
    fn accept<'a>(&self, bytes: &'a [u8], from: SocketAddr) -> Option<Arrival<'a>> {
        match self.read(bytes, from) {
            Ok(arrival) => arrival,
            Err(why) => {
                self.drops.malformed(why);
                None
            }
        }
    }

    /// An SCMP error from the AS `sender`, as far as it may be about a packet of this socket.
    fn report<'a>(
        &self,
        error: ScmpError,
        quote: Option<Quote<'a>>,
        sender: IsdAsn,
    ) -> Option<Report<'a>> {
        let Some(quote) = quote else {
            self.reject_error(&error);
            return None;
        };
        if quote.src != self.local_addr() {
            self.drops.not_for_us.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let report = Report { error, quote };
        if !report.is_consistent(sender) {
            self.reject(&report);
            return None;
        }
        Some(report)
    }

    #[inline]
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        from: SocketAddr,
    ) -> Result<Option<Arrival<'a>>, Malformed> {
        let packet = Packet::parse(bytes)?;
        let local = self.local_addr();
        let for_us = packet.dst_as() == local.isd_as && packet.dst_host()? == local.host.ip();
        if !for_us {
            self.drops.not_for_us.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        if packet.is_scmp() {
            return Ok(match Scmp::parse(&packet)? {
                Scmp::Error { error, quote } => self
                    .report(error, quote, packet.src_as())
                    .map(Arrival::Report),
                other => Some(Arrival::Scmp(packet, other)),
            });
        }
        let udp = packet.udp()?;
        if udp.dst_port != local.host.port() {
            self.drops.not_for_us.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        Ok(Some(Arrival::Datagram(Datagram {
            packet,
            from,
            port: udp.src_port,
            payload: udp.payload,
        })))
    }
}
