//! UDP in batches, as QUIC implementations send and receive it.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hawser_kernel::socket;
use noq_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::PerfError;
use crate::flight::{HEADER, Receiver, Sender};
use crate::message::Received;

/// Size of the sockets' buffers, in bytes.
const BUFFER: usize = 8 << 20;
/// The largest payload of UDP over IPv4.
const MAX_DATAGRAM: usize = 65507;
/// Most datagrams that the kernel cuts one buffer into.
const MAX_SEGMENTS: usize = 64;
/// Bytes of a buffer from the kernel.
const PIECE: usize = 65536;
/// Time without an answer after which datagrams in flight count as lost.
const LOSS_TIMEOUT: Duration = Duration::from_millis(20);
/// Time without a datagram after which a test has ended.
const END: Duration = Duration::from_millis(300);
/// The number of the test: each has sockets of its own.
const ID: u64 = 0;

/// A non-blocking socket: a receive of several datagrams would otherwise wait for all of them.
fn bind(at: SocketAddr) -> io::Result<(UdpSocket, UdpSocketState)> {
    let socket = UdpSocket::bind(at)?;
    socket::set_receive_buffer(&socket, BUFFER)?;
    socket::set_send_buffer(&socket, BUFFER)?;
    let state = UdpSocketState::new((&socket).into())?;
    socket.set_nonblocking(true)?;
    Ok((socket, state))
}

/// Waits until a call does not block; `None` if nothing happens for `time`.
fn wait<T>(
    socket: &UdpSocket,
    time: Duration,
    event: PollFlags,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<Option<T>> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            result => return result.map(Some),
        }
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(socket, event)], Some(&time))? == 0 {
            return Ok(None);
        }
    }
}

pub fn send(to: SocketAddr, payload: usize, time: Duration) -> Result<u64, PerfError> {
    let any = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let (socket, state) = bind(any)?;
    let payload = payload.clamp(HEADER, MAX_DATAGRAM);
    let most = (MAX_DATAGRAM / payload)
        .min(MAX_SEGMENTS)
        .min(state.max_gso_segments().get());
    let mut sender = Sender::new(ID, payload);
    let mut contents = vec![0; most * payload];
    let mut answer = [0; HEADER];
    let began = Instant::now();
    while began.elapsed() < time {
        let packets = (sender.room() as usize).min(most);
        // Small batches would cost as much as large ones.
        if packets < most.min(sender.window() as usize) {
            match wait(&socket, LOSS_TIMEOUT, PollFlags::IN, || {
                socket.recv(&mut answer)
            })? {
                Some(length) => sender.on_answer(&answer[..length]),
                None => sender.on_silence(),
            }
            continue;
        }
        let contents = &mut contents[..packets * payload];
        sender.number(contents, payload);
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: (packets > 1).then_some(payload),
            src_ip: None,
        };
        let send = || state.try_send((&socket).into(), &transmit);
        if wait(&socket, LOSS_TIMEOUT, PollFlags::OUT, send)?.is_none() {
            continue;
        }
        sender.on_sent(packets as u64);
    }
    Ok(sender.sent() * payload as u64)
}

pub fn receive(
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr),
) -> Result<Received, PerfError> {
    let (socket, state) = bind(listen)?;
    listening(socket.local_addr()?);
    let mut receiver = Receiver::new(ID);
    let mut bytes = vec![0; BATCH_SIZE * PIECE];
    let mut meta = [RecvMeta::default(); BATCH_SIZE];
    loop {
        let mut pieces = bytes.chunks_exact_mut(PIECE);
        let mut bufs: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        let receive = || state.recv((&socket).into(), &mut bufs, &mut meta);
        let count = match wait(&socket, END, PollFlags::IN, receive)? {
            Some(count) => count,
            None if receiver.packets() == 0 => continue,
            None => break,
        };
        for (piece, meta) in bytes.chunks_exact(PIECE).zip(&meta[..count]) {
            for datagram in piece[..meta.len].chunks(meta.stride.max(1)) {
                receiver.on_packet(datagram);
            }
        }
        if let Some(answer) = receiver.answer(Instant::now()) {
            socket.send_to(&answer, meta[0].addr)?;
        }
    }
    Ok(Received {
        bytes: receiver.bytes(),
        packets: receiver.packets(),
        seconds: receiver.time().as_secs_f64(),
        cpu_seconds: 0.0,
    })
}
