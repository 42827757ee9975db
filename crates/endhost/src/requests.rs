//! SCMP requests in flight, and their answers.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hawser_address::{IsdAsn, ScionAddr};
use hawser_packet::{Body, Quote, Scmp, ScmpError};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::endhost::Endhost;
use crate::headers::{Headers, HeadersError};
use crate::outage::Outage;
use crate::path::Path;
use crate::responder;
use crate::socket::{Arrival, BindError, ReceiveBuffer, Socket, source_address};
use crate::sync::lock;

/// First wait until a request that is not answered is sent again.
const RESEND: Duration = Duration::from_secs(1);

/// Sends SCMP requests and waits for their answers; many may be in flight at once.
pub struct Requests {
    socket: Arc<Socket>,
    waiting: Arc<Mutex<Waiting>>,
    /// The task that passes answers on until this is dropped.
    _receiver: JoinSet<()>,
}

struct Waiting {
    next: u16,
    by_sequence: HashMap<u16, Request>,
}

/// A request in flight.
struct Request {
    packet: Arc<[u8]>,
    answer: oneshot::Sender<(Result<Answer, ScmpError>, Instant)>,
}

/// A number that other hosts cannot predict.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The answer to a request.
pub(crate) struct Answer {
    /// The answer's sender; the port has no meaning.
    pub from: ScionAddr,
    /// Bytes of the answer's SCION packet.
    pub size: usize,
    /// The AS and interface of the router that answers; `None` for an echo.
    pub router: Option<(IsdAsn, u16)>,
}

/// Why a request has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No answer arrived in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// A router or host reported why there is no answer.
    #[error("{0}")]
    Scmp(ScmpError),
    /// 65536 requests are in flight.
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
    /// The path does not lead to the host.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// The request is larger than the path takes.
    #[error("{size} bytes of data make a packet of {packet} bytes: the path takes {mtu}")]
    TooLarge {
        /// Requested bytes of data.
        size: usize,
        /// Bytes of the packet.
        packet: usize,
        /// The path's MTU, in bytes.
        mtu: u16,
    },
    /// The path has no such interface.
    #[error("the path crosses {count} interfaces: it has no interface {index}, counted from 0")]
    NoInterface {
        /// The requested index, counted from 0.
        index: usize,
        /// The number of interfaces.
        count: usize,
    },
}

impl Requests {
    /// Binds a socket for requests at `local`, or at this host's address towards `next_hop`, which
    /// is the result of [`next_hop`](crate::ping::next_hop) for the path and the host. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] when no address or port is usable.
    pub fn bind(
        host: &Endhost,
        local: Option<IpAddr>,
        next_hop: SocketAddr,
    ) -> Result<Self, BindError> {
        let wanted = local.map(|ip| SocketAddr::new(ip, 0));
        let mut socket = Socket::bind(host, wanted)?;
        let configured = local.is_some() || host.address().is_some();
        if !configured && socket.local_addr().host.is_ipv4() != next_hop.is_ipv4() {
            // The routers are of the other family; the host may still have an address of this one.
            let ip = source_address(next_hop).map_err(|error| {
                let next_hop = next_hop.ip();
                BindError::NoAddress(format!(
                    "none of its addresses leads to {next_hop}: {error}"
                ))
            })?;
            socket = Socket::bind(host, Some(SocketAddr::new(ip, 0)))?;
        }
        let socket = Arc::new(socket);
        let waiting = Arc::new(Mutex::new(Waiting {
            // Random, so that hosts off the path cannot forge answers.
            next: random() as u16,
            by_sequence: HashMap::new(),
        }));
        let receiver = receive(Arc::clone(&socket), Arc::clone(&waiting));
        Ok(Self {
            socket,
            waiting,
            _receiver: JoinSet::from_iter([receiver]),
        })
    }

    /// The address that answers are sent to.
    pub fn local_addr(&self) -> ScionAddr {
        self.socket.local_addr()
    }

    /// The headers of requests to `host` at the end of `path`, or to routers before it.
    pub(crate) fn headers(&self, host: IpAddr, path: &Path) -> Result<Headers, HeadersError> {
        // A request has no port; hosts in this AS receive it at the responder's.
        let host = SocketAddr::new(host, responder::PORT);
        let remote = ScionAddr::new(path.info().dst, host);
        Headers::new(self.local_addr(), remote, path)
    }

    /// Sends the packet that `packet` makes for an identifier and a sequence number to `next_hop`,
    /// an address of this socket's family, and waits for the answer no longer than `timeout`.
    /// Returns the answer with the round-trip time.
    pub(crate) async fn ask(
        &self,
        next_hop: SocketAddr,
        timeout: Duration,
        packet: impl FnOnce(u16, u16) -> Vec<u8>,
    ) -> Result<(Answer, Duration), RequestError> {
        let (sender, answer) = oneshot::channel();
        let (expected, packet) = {
            let mut waiting = lock(&self.waiting);
            let free = (0..=u16::MAX)
                .map(|step| waiting.next.wrapping_add(step))
                .find(|sequence| !waiting.by_sequence.contains_key(sequence));
            let sequence = free.ok_or(RequestError::TooMany)?;
            waiting.next = sequence.wrapping_add(1);
            let request = Request {
                packet: packet(self.local_addr().host.port(), sequence).into(),
                answer: sender,
            };
            let packet = Arc::clone(&request.packet);
            waiting.by_sequence.insert(sequence, request);
            (Expected(self, sequence), packet)
        };
        let sent = Instant::now();
        self.socket
            .send_raw(&packet, next_hop)
            .await
            .map_err(|source| RequestError::Send { next_hop, source })?;
        let answer = tokio::time::timeout(timeout, answer).await;
        drop(expected);
        match answer {
            Ok(Ok((Ok(answer), at))) => Ok((answer, at.saturating_duration_since(sent))),
            Ok(Ok((Err(error), _))) => Err(RequestError::Scmp(error)),
            // The receiving task ends only with the socket.
            Ok(Err(_)) | Err(_) => Err(RequestError::TimedOut(timeout)),
        }
    }

    /// Asks as [`ask`](Self::ask) does, and sends another request while none is answered: after
    /// [`RESEND`], then after twice as long each time. A packet may be lost, as where a router has many to
    /// answer at once. The answer to any of the requests counts.
    pub(crate) async fn ask_until_answered(
        &self,
        next_hop: SocketAddr,
        timeout: Duration,
        packet: impl Fn(u16, u16) -> Vec<u8>,
    ) -> Result<(Answer, Duration), RequestError> {
        let end = tokio::time::Instant::now() + timeout;
        let mut requests = FuturesUnordered::new();
        let mut wait = RESEND;
        loop {
            let now = tokio::time::Instant::now();
            requests.push(self.ask(next_hop, end.saturating_duration_since(now), &packet));
            tokio::select! {
                Some(answer) = requests.next() => return answer.map_err(|error| match error {
                    RequestError::TimedOut(_) => RequestError::TimedOut(timeout),
                    error => error,
                }),
                () = tokio::time::sleep(wait), if now + wait < end => wait *= 2,
            }
        }
    }
}

/// A sequence number in use, freed also when the wait is cancelled.
struct Expected<'a>(&'a Requests, u16);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).by_sequence.remove(&self.1);
    }
}

/// Passes answers to the requests that wait for them.
async fn receive(socket: Arc<Socket>, waiting: Arc<Mutex<Waiting>>) {
    let mut buffer = ReceiveBuffer::default();
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
                // The request may have been cancelled.
                let _ = request.answer.send((answer, at));
            }
        }
    }
}

impl Waiting {
    /// Whether `quote` is of a request in flight.
    fn sent(&self, quote: &Quote<'_>) -> bool {
        let request = quote.request.and_then(|at| self.by_sequence.get(&at));
        request.is_some_and(|request| quote.is_of(&request.packet))
    }
}

/// The sequence number of the request of `local` that `arrival` answers, and the answer.
fn answer(local: ScionAddr, arrival: Arrival<'_>) -> Option<(u16, Result<Answer, ScmpError>)> {
    let (packet, message) = match arrival {
        Arrival::Scmp(packet, message) => (packet, message),
        Arrival::Report(report) => return Some((report.quote.request?, Err(report.error))),
        Arrival::Datagram(_) => return None,
    };
    let Scmp::Query {
        reply: true,
        id,
        sequence,
        body,
    } = message
    else {
        return None;
    };
    let router = match body {
        Body::Echo(_) => None,
        Body::Traceroute { isd_as, interface } => Some((isd_as, interface)),
    };
    let host = packet.src_host().unwrap_or(local.host.ip());
    let answer = Answer {
        from: ScionAddr::new(packet.header.src_as, SocketAddr::new(host, 0)),
        size: packet.bytes().len(),
        router,
    };
    (id == local.host.port()).then_some((sequence, Ok(answer)))
}
