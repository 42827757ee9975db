//! SCION/UDP packets of a test, on a socket of their own.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use hawser_endhost::socket::{Arrival, Datagram, ReceiveBuffer, Socket};
use hawser_endhost::{Endhost, Headers, IsdAsn, Path, ScionAddr};
use tokio::time::timeout;

use crate::error::PerfError;
use crate::flight::{HEADER, Receiver, Sender};

/// Most packets handed to the kernel at once.
const BATCH: u64 = 64;
/// Time without an answer after which packets in flight count as lost: longer than round trips.
const LOSS_TIMEOUT: Duration = Duration::from_millis(400);
/// Time without a packet after which a receiver gives up packets still in flight.
const DRAIN: Duration = Duration::from_millis(200);
/// Longest lag behind the rate that faster sending makes up for.
const MAX_LAG: Duration = Duration::from_millis(20);

/// Packets and payload bytes that were sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub packets: u64,
    pub bytes: u64,
}

/// The size and the rate of packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Bytes of each SCION packet; `None` for as many as the path takes.
    pub packet: Option<u16>,
    /// Bits of SCION packets per second; `None` for as fast as the receiver answers.
    pub rate: Option<u64>,
}

/// Sends packets to `peer` over `path` for `time`.
pub(crate) async fn send(
    host: &Endhost,
    peer: ScionAddr,
    path: &Path,
    id: u64,
    shape: Shape,
    time: Duration,
) -> Result<Sent, PerfError> {
    let socket = Socket::bind(host, None)?;
    let headers = Headers::new(socket.local_addr(), peer, path)?;
    let packet = shape.packet.unwrap_or(path.mtu());
    let smallest = headers.overhead() + HEADER;
    if usize::from(packet) < smallest || packet > path.mtu() {
        return Err(PerfError::PacketSize {
            packet,
            smallest,
            largest: path.mtu(),
        });
    }
    let payload = usize::from(headers.max_payload(packet));
    let mut sender = Sender::new(id, payload);
    let mut contents = vec![0; payload * BATCH as usize];
    let (mut scratch, mut buffer) = (Vec::new(), ReceiveBuffer::default());
    let began = Instant::now();
    let gap = shape.rate.map(|rate| f64::from(packet) * 8.0 / rate as f64);
    let mut due = began;
    loop {
        let now = Instant::now();
        if now >= began + time {
            break;
        }
        if receive(&socket, &mut buffer, Wait::No).await? {
            each(&socket, &mut buffer, |answer| {
                sender.on_answer(answer.payload)
            });
        }
        let packets = match gap {
            None => sender.room().min(BATCH),
            Some(gap) if due <= now => {
                due = due.max(now.checked_sub(MAX_LAG).unwrap_or(due));
                ((now - due).as_secs_f64() / gap).clamp(1.0, BATCH as f64) as u64
            }
            Some(_) => {
                tokio::time::sleep_until(due.into()).await;
                continue;
            }
        };
        if packets == 0 {
            match receive(&socket, &mut buffer, Wait::AtMost(LOSS_TIMEOUT)).await? {
                true => each(&socket, &mut buffer, |answer| {
                    sender.on_answer(answer.payload)
                }),
                false => sender.on_silence(),
            }
            continue;
        }
        let batch = &mut contents[..packets as usize * payload];
        sender.number(batch, payload);
        match socket.try_send(&headers, batch, payload, 0, &mut scratch) {
            Ok(sent) => {
                let sent = (sent / payload) as u64;
                sender.on_sent(sent);
                due += Duration::from_secs_f64(gap.unwrap_or(0.0) * sent as f64);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) => return Err(error.into()),
        }
    }
    let packets = sender.sent();
    Ok(Sent {
        packets,
        bytes: packets * payload as u64,
    })
}

/// Counts the packets with number `id` that arrive from the AS `from`, until `ended` and no more
/// arrive.
pub(crate) async fn count(
    socket: &Socket,
    from: IsdAsn,
    id: u64,
    ended: impl Future<Output = ()>,
) -> io::Result<Receiver> {
    let mut ended = pin!(ended);
    let mut receiver = Receiver::new(id);
    let (mut scratch, mut buffer) = (Vec::new(), ReceiveBuffer::default());
    let mut wait = Wait::Long;
    loop {
        let arrived = tokio::select! {
            biased;
            arrived = receive(socket, &mut buffer, wait) => arrived?,
            () = &mut ended, if matches!(wait, Wait::Long) => {
                wait = Wait::AtMost(DRAIN);
                continue;
            }
        };
        if !arrived {
            return Ok(receiver);
        }
        let mut reply = None;
        each(socket, &mut buffer, |datagram| {
            if receiver.on_packet(datagram.payload) && reply.is_none() {
                let headers = datagram.reply_path(socket.host(), socket.local_addr());
                let headers = headers.ok().map(|reply| reply.headers);
                reply = headers.filter(|headers| headers.remote.isd_as == from);
            }
        });
        if let (Some(answer), Some(headers)) = (receiver.answer(Instant::now()), reply) {
            match socket.try_send(&headers, &answer, HEADER, 0, &mut scratch) {
                // A later answer says the same.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                sent => drop(sent?),
            }
        }
    }
}

/// How long to wait for packets.
#[derive(Debug, Clone, Copy)]
enum Wait {
    No,
    AtMost(Duration),
    Long,
}

/// Receives packets into `buffer`, and returns whether any arrived.
async fn receive(socket: &Socket, buffer: &mut ReceiveBuffer, wait: Wait) -> io::Result<bool> {
    let mut arrive = pin!(poll_fn(|cx| socket.poll_receive(cx, buffer)));
    match wait {
        Wait::Long => arrive.await.map(|()| true),
        Wait::AtMost(time) => match timeout(time, arrive).await {
            Ok(arrived) => arrived.map(|()| true),
            Err(_) => Ok(false),
        },
        Wait::No => match poll_fn(|cx| Poll::Ready(arrive.as_mut().poll(cx))).await {
            Poll::Ready(arrived) => arrived.map(|()| true),
            Poll::Pending => Ok(false),
        },
    }
}

/// Takes the packets with data out of `buffer`.
fn each(socket: &Socket, buffer: &mut ReceiveBuffer, mut observe: impl FnMut(Datagram<'_>)) {
    for arrival in socket.packets(buffer) {
        match arrival {
            Arrival::Datagram(datagram) => observe(datagram),
            Arrival::Report(report) => socket.reject(&report),
            Arrival::Scmp(..) => {}
        }
    }
}
