//! The SCION socket as QUIC wants sockets to be.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hawser_endhost::socket::{Arrival, Datagram, ReceiveBuffer, Socket};
use noq::udp::{EcnCodepoint, RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use tokio::sync::mpsc;

use crate::faults::Fault;
use crate::quotes::{ConnectionId, SentIds};
use crate::routes::{Routes, Table, Way, local_addr};

/// The kernel cuts one buffer into at most so many packets.
const MAX_SEGMENTS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// The receiving side, owned by QUIC's endpoint task.
pub(crate) struct QuicSocket {
    socket: Arc<Socket>,
    routes: Arc<Routes>,
    sent_ids: Arc<SentIds>,
    faults: mpsc::Sender<Fault>,
    buffer: ReceiveBuffer,
    groups: Vec<Group>,
    /// What the packet before this one had in common with all of its way.
    form: Vec<u8>,
}

/// A sending side; each connection has one.
pub(crate) struct QuicSender {
    socket: Arc<Socket>,
    routes: Arc<Routes>,
    sent_ids: Arc<SentIds>,
    /// The connection id used last, and the address of its way.
    id: Option<(ConnectionId, SocketAddr)>,
    faults: mpsc::Sender<Fault>,
    /// The way used last: a connection uses but one.
    way: Option<(SocketAddr, Arc<Way>)>,
    /// How much of the current transmit is sent already.
    sent: usize,
    scratch: Vec<u8>,
    writable: Option<Writable>,
}

type Writable = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

impl QuicSocket {
    pub(crate) fn new(
        socket: Arc<Socket>,
        routes: Arc<Routes>,
        faults: mpsc::Sender<Fault>,
    ) -> Self {
        Self {
            socket,
            routes,
            sent_ids: Arc::default(),
            faults,
            buffer: ReceiveBuffer::new(),
            groups: Vec::new(),
            form: Vec::new(),
        }
    }
}

/// Datagrams of one way and size, being collected in one of QUIC's buffers.
struct Group {
    addr: SocketAddr,
    ecn: u8,
    stride: usize,
    len: usize,
    /// A datagram of another size can only be the last.
    complete: bool,
}

impl Group {
    fn new(addr: SocketAddr, ecn: u8, stride: usize) -> Self {
        Self {
            addr,
            ecn,
            stride,
            len: 0,
            complete: false,
        }
    }

    #[inline]
    fn takes(&self, ecn: u8, len: usize, room: usize) -> bool {
        self.ecn == ecn && !self.complete && len <= self.stride && self.len + len <= room
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(QuicSender {
            socket: Arc::clone(&self.socket),
            routes: Arc::clone(&self.routes),
            sent_ids: Arc::clone(&self.sent_ids),
            id: None,
            faults: self.faults.clone(),
            way: None,
            sent: 0,
            scratch: Vec::new(),
            writable: None,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let groups = self.collect(bufs, meta);
            if groups > 0 {
                return Poll::Ready(Ok(groups));
            }
            ready!(self.socket.poll_receive(cx, &mut self.buffer))?;
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(local_addr())
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

impl QuicSocket {
    /// Sorts what was received into QUIC's buffers, one group of datagrams each. Returns how many
    /// buffers are used; none when nothing is left.
    fn collect(&mut self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let Self {
            socket,
            routes,
            sent_ids,
            faults,
            buffer,
            groups,
            form,
            ..
        } = self;
        groups.clear();
        let mut table = routes.lock();
        // Packets of one way mostly come in a row: then it is known without a look-up.
        let mut last: Option<SocketAddr> = None;
        while let Some(arrival) = buffer.next(socket) {
            let datagram = match arrival {
                Arrival::Datagram(datagram) => datagram,
                Arrival::Report(report) => {
                    match sent_ids.way_of(&report, socket.local_addr().isd_as) {
                        Some(way) => {
                            let error = report.error;
                            // When more come than can be handled, the next packet brings them
                            // again.
                            let _ = faults.try_send(Fault::Report { way, error });
                        }
                        None => socket.reject(&report),
                    }
                    continue;
                }
                _ => continue,
            };
            let addr = match last {
                Some(addr) if is_form(form, &datagram) => addr,
                _ => {
                    write_form(form, &datagram);
                    let way = match table.by_form(form) {
                        Some(way) => Some(way.addr()),
                        None => learn(&mut table, socket, &datagram, form),
                    };
                    last = way;
                    match way {
                        Some(addr) => addr,
                        None => continue,
                    }
                }
            };
            let (ecn, len) = (datagram.ecn(), datagram.payload.len());
            let of_way = groups.iter().rposition(|group| group.addr == addr);
            let open = of_way.filter(|at| groups[*at].takes(ecn, len, bufs[*at].len()));
            let at = match open {
                Some(at) => at,
                None if len == 0 => continue,
                None if groups.len() == bufs.len().min(meta.len()) => {
                    buffer.put_back();
                    break;
                }
                None if len > bufs[groups.len()].len() => continue,
                None => {
                    groups.push(Group::new(addr, ecn, len));
                    groups.len() - 1
                }
            };
            let group = &mut groups[at];
            bufs[at][group.len..group.len + len].copy_from_slice(datagram.payload);
            group.len += len;
            group.complete |= len < group.stride;
        }
        for (group, meta) in groups.iter().zip(meta) {
            *meta = RecvMeta::default();
            meta.addr = group.addr;
            meta.len = group.len;
            meta.stride = group.stride;
            meta.ecn = EcnCodepoint::from_bits(group.ecn);
        }
        groups.len()
    }
}

/// Whether `form` is that of `datagram`.
#[inline]
fn is_form(form: &[u8], datagram: &Datagram<'_>) -> bool {
    form.split_first_chunk().is_some_and(|(port, rest)| {
        *port == datagram.port.to_be_bytes() && rest == datagram.route_bytes()
    })
}

/// Writes what all packets of `datagram`'s way have in common.
#[inline]
fn write_form(form: &mut Vec<u8>, datagram: &Datagram<'_>) {
    form.clear();
    form.extend_from_slice(&datagram.port.to_be_bytes());
    form.extend_from_slice(datagram.route_bytes());
}

/// Finds out which way a packet of a new form came, and how to answer; none when there is no way
/// back.
#[cold]
fn learn(
    table: &mut Table,
    socket: &Socket,
    datagram: &Datagram<'_>,
    form: &[u8],
) -> Option<SocketAddr> {
    let back = datagram.way_back(socket).ok()?;
    let way = table.way(back.route.clone(), &back.interfaces, back.expiry);
    let way = Arc::clone(way);
    // The peer goes on with a refreshed path. It came through, so routers accept it. One that
    // expires earlier may be an old packet's.
    if way.expiry() <= back.expiry {
        way.refresh(back.route, back.expiry);
    }
    table.remember(&way, form);
    Some(way.addr())
}

impl UdpSender for QuicSender {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let contents = transmit.contents;
        let segment = transmit.segment_size.unwrap_or(contents.len());
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        while this.sent < contents.len() {
            let Some(way) = this.way(transmit.destination) else {
                // Nobody uses the way any more.
                break;
            };
            if this.sent == 0 {
                this.note_id(&way, contents);
            }
            let rest = &contents[this.sent..];
            let result = this
                .socket
                .try_send(&way.route(), rest, segment, ecn, &mut this.scratch);
            match result {
                Ok(sent) => this.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(this.poll_writable(cx))?;
                }
                Err(error) => {
                    // The rest is lost, as packets are. Whoever waits for them hears why.
                    let fault = Fault::Send {
                        addr: transmit.destination,
                        error,
                    };
                    let _ = this.faults.try_send(fault);
                    break;
                }
            }
        }
        this.sent = 0;
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        // What one call to the system does not take is sent with another.
        MAX_SEGMENTS
    }
}

impl QuicSender {
    #[inline]
    fn way(&mut self, addr: SocketAddr) -> Option<Arc<Way>> {
        match &self.way {
            Some((known, way)) if *known == addr => Some(Arc::clone(way)),
            _ => {
                let way = self.routes.find(addr)?;
                self.way = Some((addr, Arc::clone(&way)));
                Some(way)
            }
        }
    }

    /// Notes the connection id that `packet` goes over `way` with, where it is a new one.
    #[inline]
    fn note_id(&mut self, way: &Arc<Way>, packet: &[u8]) {
        let id = ConnectionId::of(packet).map(|id| (id, way.addr()));
        if id == self.id {
            return;
        }
        // Added first, so that at no time none is known.
        if let Some((id, _)) = id {
            self.sent_ids.add(id, way);
        }
        self.forget_id();
        self.id = id;
    }

    fn forget_id(&mut self) {
        if let Some((id, _)) = self.id.take() {
            self.sent_ids.remove(id);
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = &self.socket;
        let writable = self.writable.get_or_insert_with(|| {
            let socket = Arc::clone(socket);
            Box::pin(async move { socket.writable().await })
        });
        let result = ready!(writable.as_mut().poll(cx));
        self.writable = None;
        Poll::Ready(result)
    }
}

impl Drop for QuicSender {
    fn drop(&mut self) {
        // What is said about the connection's packets from now on matters to nobody.
        self.forget_id();
    }
}

impl fmt::Debug for QuicSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

impl fmt::Debug for QuicSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}
