//! SCMP requests under way, and their answers.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hawser_packet::{Packet, Quote, ScionAddr, Scmp, ScmpError};
use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::endhost::Endhost;
use crate::outage::Outage;
use crate::socket::{Arrival, BindError, ReceiveBuffer, Socket, source_address};

/// A socket for requests; any number may be under way at once.
pub(crate) struct Requests {
    socket: Arc<Socket>,
    waiting: Arc<Mutex<Waiting>>,
    receiver: JoinHandle<()>,
}

struct Waiting {
    next: u16,
    by_sequence: HashMap<u16, Request>,
}

/// A request under way.
struct Request {
    /// The packet, once it is made.
    packet: Arc<[u8]>,
    answer: oneshot::Sender<(Answer, Instant)>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            // Random, so that hosts off the path cannot forge answers.
            next: random() as u16,
            by_sequence: HashMap::new(),
        }
    }
}

/// A number that other hosts cannot predict.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub what: What,
    /// Its sender; the port means nothing.
    pub from: ScionAddr,
    /// Bytes of its SCION packet.
    pub size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Echo,
    /// A router with this interface answered.
    Traceroute {
        isd_as: IsdAsn,
        interface: u16,
    },
    /// A router or host reported why no answer comes.
    Error(ScmpError),
}

/// Why a request has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// None arrived in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// 65536 requests are under way.
    #[error("too many requests are under way")]
    TooMany,
    /// The request could not be sent.
    #[error("cannot send to {next_hop}: {source}")]
    Send {
        /// The router or host to send to.
        next_hop: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

impl Requests {
    /// Binds a socket at `local`, or at this host's address of the family of `next_hop`. Must be
    /// called inside a tokio runtime.
    pub fn bind(
        host: &Endhost,
        local: Option<IpAddr>,
        next_hop: SocketAddr,
    ) -> Result<Self, BindError> {
        let wanted = local.map(|ip| SocketAddr::new(ip, 0));
        let mut socket = Socket::bind(host, wanted)?;
        let configured = local.is_some() || host.address().is_some();
        if !configured && socket.local_addr().host.is_ipv4() != next_hop.is_ipv4() {
            // The routers are of the other family; the host may have an address of this one.
            let ip = source_address(next_hop).map_err(|error| BindError::NoAddress {
                reason: format!("none of its addresses leads to {}: {error}", next_hop.ip()),
            })?;
            socket = Socket::bind(host, Some(SocketAddr::new(ip, 0)))?;
        }
        let socket = Arc::new(socket);
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let receiver = tokio::spawn(receive(Arc::clone(&socket), Arc::clone(&waiting)));
        Ok(Self {
            socket,
            waiting,
            receiver,
        })
    }

    /// The address that answers are sent to.
    pub fn local_addr(&self) -> ScionAddr {
        self.socket.local_addr()
    }

    /// Sends the packet that `packet` makes for an identifier and a sequence number to `next_hop`,
    /// an address of this socket's family, and waits for the answer, no longer than `timeout`.
    /// Returns it with the round-trip time.
    pub async fn ask(
        &self,
        next_hop: SocketAddr,
        timeout: Duration,
        packet: impl FnOnce(u16, u16) -> Vec<u8>,
    ) -> Result<(Answer, Duration), RequestError> {
        let (sequence, answer) = self.expect().ok_or(RequestError::TooMany)?;
        let expected = Expected(self, sequence);
        let packet: Arc<[u8]> = packet(self.local_addr().host.port(), sequence).into();
        if let Some(request) = lock(&self.waiting).by_sequence.get_mut(&sequence) {
            request.packet = Arc::clone(&packet);
        }
        let sent = Instant::now();
        self.socket
            .send_raw(&packet, next_hop)
            .await
            .map_err(|source| RequestError::Send { next_hop, source })?;
        let answer = tokio::time::timeout(timeout, answer).await;
        drop(expected);
        match answer {
            Ok(Ok((answer, at))) => Ok((answer, at.saturating_duration_since(sent))),
            // The receiving task ends only with the socket.
            Ok(Err(_)) | Err(_) => Err(RequestError::TimedOut(timeout)),
        }
    }

    /// A sequence number that is free, and the channel that its answer arrives by.
    fn expect(&self) -> Option<(u16, oneshot::Receiver<(Answer, Instant)>)> {
        let mut waiting = lock(&self.waiting);
        let free = (0..=u16::MAX)
            .map(|step| waiting.next.wrapping_add(step))
            .find(|sequence| !waiting.by_sequence.contains_key(sequence))?;
        waiting.next = free.wrapping_add(1);
        let (answer, receiver) = oneshot::channel();
        let packet = Arc::default();
        waiting.by_sequence.insert(free, Request { packet, answer });
        Some((free, receiver))
    }
}

/// A sequence number in use, freed also when the wait for it is given up.
struct Expected<'a>(&'a Requests, u16);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).by_sequence.remove(&self.1);
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands answers to the requests that wait for them.
async fn receive(socket: Arc<Socket>, waiting: Arc<Mutex<Waiting>>) {
    let mut buffer = ReceiveBuffer::new();
    let local = socket.local_addr();
    loop {
        if let Err(error) = poll_fn(|cx| socket.poll_receive(cx, &mut buffer)).await {
            tracing::debug!(%error, "receiving answers");
            continue;
        }
        let at = Instant::now();
        for arrival in socket.packets(&mut buffer) {
            if let Arrival::Report(report) = &arrival {
                if !lock(&waiting).sent(&report.quote) {
                    socket.reject(report);
                    continue;
                }
                if let Some(outage) = Outage::of(&report.error) {
                    socket.host().report(outage);
                }
            }
            let Some((sequence, answer)) = answer(local, arrival) else {
                continue;
            };
            if let Some(request) = lock(&waiting).by_sequence.remove(&sequence) {
                // The request may have been given up.
                let _ = request.answer.send((answer, at));
            }
        }
    }
}

impl Waiting {
    /// Whether `quote` is of a request that is under way.
    fn sent(&self, quote: &Quote<'_>) -> bool {
        let request = quote.request.and_then(|at| self.by_sequence.get(&at));
        request.is_some_and(|request| quote.is_of(&request.packet))
    }
}

/// The sequence number of the request of `local` that `arrival` answers, and the answer.
fn answer(local: ScionAddr, arrival: Arrival<'_>) -> Option<(u16, Answer)> {
    let from = |packet: &Packet<'_>| {
        let host = packet.src_host().unwrap_or(local.host.ip());
        ScionAddr::new(packet.src_as(), SocketAddr::new(host, 0))
    };
    match arrival {
        Arrival::Scmp(packet, message) => {
            let (id, sequence, what) = match message {
                Scmp::Echo {
                    reply: true,
                    id,
                    sequence,
                    ..
                } => (id, sequence, What::Echo),
                Scmp::Traceroute {
                    reply: true,
                    id,
                    sequence,
                    isd_as,
                    interface,
                } => (id, sequence, What::Traceroute { isd_as, interface }),
                _ => return None,
            };
            let answer = Answer {
                what,
                from: from(&packet),
                size: packet.bytes().len(),
            };
            (id == local.host.port()).then_some((sequence, answer))
        }
        Arrival::Report(report) => {
            let answer = Answer {
                what: What::Error(report.error),
                from: report.quote.dst,
                size: 0,
            };
            Some((report.quote.request?, answer))
        }
        Arrival::Datagram(_) => None,
    }
}
