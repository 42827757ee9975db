//! A socket of `noq` that sends at most as much in one call as UDP carries.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime, TokioRuntime, UdpSender};

/// Most bytes of one send over IPv4, in all its segments.
const LIMIT: usize = 65507;

/// A socket that sends packets of `packet` bytes. `noq` 1.4.0 puts ten into every send, at any size,
/// and takes a send that is too long for a packet lost on its path: from 6551 bytes on, every full
/// send would be lost.
pub fn open(socket: std::net::UdpSocket, packet: u16) -> io::Result<Box<dyn AsyncUdpSocket>> {
    let inner = TokioRuntime.wrap_udp_socket(socket)?;
    let segments = NonZeroUsize::new(LIMIT / usize::from(packet)).unwrap_or(NonZeroUsize::MIN);
    Ok(Box::new(Socket { inner, segments }))
}

#[derive(Debug)]
struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    segments: NonZeroUsize,
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.inner.create_sender(),
            segments: self.segments,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    segments: NonZeroUsize,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_send(transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments().min(self.segments)
    }
}
