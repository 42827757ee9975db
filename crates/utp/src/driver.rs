//! The task of a socket: receives datagrams, sends what its endpoint has to send, and wakes it in time.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_udp::{RecvMeta, UdpSocketState, is_msg_size_err};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::endpoint::Transmit;
use crate::shared::{Shared, now};

/// Bytes of a buffer from the kernel, which may have several datagrams of one sender.
const PIECE: usize = 65536;
/// Buffers received with one system call.
const PIECES: usize = 8;
/// Most bytes that the kernel cuts into datagrams.
const MAX_SEND: usize = 60_000;
/// Most datagrams that it cuts them into.
const MAX_SEGMENTS: usize = 42;
/// Receives in a row before other tasks get their turn.
const MAX_RECEIVES: usize = 16;
/// Errors in a row of receiving after which the socket counts as failed, and the pause after each.
const MAX_ERRORS: u32 = 100;
const ERROR_PAUSE: Duration = Duration::from_millis(10);
/// Longest sleep where nothing is due.
const LONG: Duration = Duration::from_secs(3600);

pub(crate) struct Driver {
    shared: Arc<Shared>,
    socket: UdpSocket,
    offload: UdpSocketState,
    received: Box<[u8]>,
    /// Packets that are not sent yet, if the kernel had no room for them.
    out: Vec<u8>,
    pending: Option<Transmit>,
    errors: u32,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Nobody would wake the streams again.
        self.shared.end();
    }
}

impl Driver {
    pub fn new(shared: Arc<Shared>, socket: UdpSocket, offload: UdpSocketState) -> Self {
        Self {
            shared,
            socket,
            offload,
            received: vec![0; PIECE * PIECES].into(),
            out: Vec::with_capacity(MAX_SEND),
            pending: None,
            errors: 0,
        }
    }

    /// Runs until the socket is dropped or has failed.
    pub async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut sleep = std::pin::pin!(tokio::time::sleep(LONG));
        loop {
            let is_blocked = !self.transmit();
            let due = {
                let mut state = shared.lock();
                if state.has_ended {
                    // The last packets, which say so, were sent if the kernel had room for them.
                    return;
                }
                let due = state.endpoint.next_due();
                state.wakes_at = due;
                due
            };
            let wakes_at = due.unwrap_or_else(|| now() + LONG).into();
            if sleep.deadline() != wakes_at {
                sleep.as_mut().reset(wakes_at);
            }
            tokio::select! {
                readable = self.socket.readable() => {
                    if !self.receive(readable).await {
                        return;
                    }
                }
                _ = self.socket.writable(), if is_blocked => {}
                () = shared.changed.notified() => {}
                () = &mut sleep => {}
            }
            let mut state = shared.lock();
            state.endpoint.advance(now());
            shared.wake_users(state);
        }
    }

    /// Receives what has arrived, and answers it. Returns whether the socket can be used further.
    async fn receive(&mut self, readable: io::Result<()>) -> bool {
        let mut result = readable;
        for _ in 0..MAX_RECEIVES {
            result = result.and_then(|()| self.receive_once());
            match &result {
                Ok(()) => {
                    self.errors = 0;
                    self.transmit();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) => {
                    self.errors += 1;
                    tracing::debug!(%error, "a socket of uTP cannot receive");
                    if self.errors >= MAX_ERRORS {
                        return false;
                    }
                    tokio::time::sleep(ERROR_PAUSE).await;
                    return true;
                }
            }
        }
        tokio::task::yield_now().await;
        true
    }

    fn receive_once(&mut self) -> io::Result<()> {
        let mut meta = [RecvMeta::default(); PIECES];
        let mut pieces = self.received.chunks_exact_mut(PIECE);
        let mut buffers: [IoSliceMut<'_>; PIECES] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        let receive = || {
            self.offload
                .recv((&self.socket).into(), &mut buffers, &mut meta)
        };
        let count = self.socket.try_io(Interest::READABLE, receive)?;
        let now = now();
        let mut state = self.shared.lock();
        for (piece, meta) in self.received.chunks_exact(PIECE).zip(&meta[..count]) {
            for datagram in piece[..meta.len].chunks(meta.stride.max(1)) {
                state.endpoint.receive(meta.addr, datagram, now);
            }
        }
        self.shared.wake_users(state);
        Ok(())
    }

    /// Sends all that there is to send. Returns whether the kernel had room for it.
    fn transmit(&mut self) -> bool {
        loop {
            let transmit = match self.pending.take() {
                Some(pending) => pending,
                None => match self.next_transmit() {
                    Some(transmit) => transmit,
                    None => return true,
                },
            };
            match self.send(transmit) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.pending = Some(transmit);
                    return false;
                }
                Err(error) => {
                    // What is not sent is lost, as on the way, and sent again.
                    let to = transmit.to;
                    tracing::debug!(%to, %error, "a packet of uTP cannot be sent");
                }
            }
        }
    }

    fn next_transmit(&mut self) -> Option<Transmit> {
        self.out.clear();
        let most = self.offload.max_gso_segments().get().min(MAX_SEGMENTS);
        let now: Instant = now();
        let mut state = self.shared.lock();
        state.endpoint.transmit(&mut self.out, most, now)
    }

    fn send(&self, transmit: Transmit) -> io::Result<()> {
        let Transmit { to, stride } = transmit;
        match self.send_at_once(to, &self.out, stride) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            // The kernel does not cut them for this device: one by one, and in fragments if need be.
            Err(_) if self.out.len() > stride => self.send_one_by_one(to, stride),
            Err(error) if is_msg_size_err(&error) => {
                self.refuse(to, [&self.out[..]]);
                Err(error)
            }
            sent => sent,
        }
    }

    fn send_one_by_one(&self, to: SocketAddr, stride: usize) -> io::Result<()> {
        let mut datagrams = self.out.chunks(stride);
        while let Some(datagram) = datagrams.next() {
            match self.send_at_once(to, datagram, datagram.len()) {
                // The rest counts as lost: to send it again would repeat what was sent.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_msg_size_err(&error) => {
                    // Those behind it are as long, and are not sent either.
                    self.refuse(to, std::iter::once(datagram).chain(datagrams));
                    return Err(error);
                }
                sent => sent?,
            }
        }
        Ok(())
    }

    /// These datagrams are too large for the device, and were not sent.
    fn refuse<'a>(&self, to: SocketAddr, datagrams: impl IntoIterator<Item = &'a [u8]>) {
        let now = now();
        let mut state = self.shared.lock();
        for datagram in datagrams {
            state.endpoint.on_too_large(to, datagram, now);
        }
        self.shared.wake_users(state);
    }

    fn send_at_once(&self, to: SocketAddr, contents: &[u8], stride: usize) -> io::Result<()> {
        let transmit = noq_udp::Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: (contents.len() > stride).then_some(stride),
            src_ip: None,
        };
        let send = || self.offload.try_send((&self.socket).into(), &transmit);
        self.socket.try_io(Interest::WRITABLE, send)
    }
}
