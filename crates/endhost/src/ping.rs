//! SCMP echo: is a host there on a path, and how far away.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::addr::ScionAddr;
use crate::endhost::Endhost;
use crate::path::Path;
use crate::socket::{Arrival, BindError, ReceiveBuffer, Socket};
use crate::wire::{Route, RouteError, Scmp, ScmpError, echo};

/// Bytes SCMP adds to an echo's data.
const ECHO_HEADER: usize = 8;

/// Sends SCMP echo requests and waits for the replies; any number may be under way at once.
pub struct Pinger {
    socket: Arc<Socket>,
    waiting: Arc<Mutex<Waiting>>,
    receiver: JoinHandle<()>,
}

#[derive(Default)]
struct Waiting {
    next: u16,
    by_sequence: HashMap<u16, oneshot::Sender<Answer>>,
}

enum Answer {
    Reply { from: ScionAddr, at: Instant },
    Error(ScmpError),
}

/// An echo that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// Who answered; the port means nothing.
    pub from: ScionAddr,
    /// How long it took.
    pub rtt: Duration,
    /// Bytes of the SCION packets sent and received.
    pub size: usize,
}

/// Why no echo came back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PingError {
    /// Nothing came back in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// A router or host tells why nothing comes back.
    #[error("{0}")]
    Scmp(ScmpError),
    /// There is no way there over this path.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The request is larger than the path takes.
    #[error("{size} bytes of data make a packet of {packet} bytes: the path takes {mtu}")]
    TooLarge {
        /// Bytes of data asked for.
        size: usize,
        /// Bytes of the packet.
        packet: usize,
        /// What the path takes.
        mtu: u16,
    },
    /// 65536 echoes are under way.
    #[error("too many echoes are under way")]
    TooMany,
    /// The request could not be sent.
    #[error("cannot send: {0}")]
    Send(#[source] io::Error),
}

impl Pinger {
    /// Binds a socket for echoes, as [`Socket::bind`] does. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] when there is no address or port to use.
    pub fn bind(host: &Endhost, local: Option<SocketAddr>) -> Result<Self, BindError> {
        let socket = Arc::new(Socket::bind(host, local)?);
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let receiver = tokio::spawn(receive(Arc::clone(&socket), Arc::clone(&waiting)));
        Ok(Self {
            socket,
            waiting,
            receiver,
        })
    }

    /// Where echoes come back to.
    pub fn local_addr(&self) -> ScionAddr {
        self.socket.local_addr()
    }

    /// Sends an echo request with `size` bytes of data to `host` at the end of `path` and waits for
    /// the reply, no longer than `timeout`.
    ///
    /// # Errors
    /// [`PingError`] when none comes.
    pub async fn echo(
        &self,
        host: IpAddr,
        path: &Path,
        size: usize,
        timeout: Duration,
    ) -> Result<Reply, PingError> {
        let local = self.socket.local_addr();
        // Hosts answer echoes at a port of their own; in the SCION packet there is none.
        let port = crate::responder::PORT;
        let peer = ScionAddr::new(path.info().dst, SocketAddr::new(host, port));
        let route = Route::new(local, peer, path)?;
        let (sequence, answer) = self.expect().ok_or(PingError::TooMany)?;
        let expected = Expected(self, sequence);
        let message = echo(false, local.host.port(), sequence, &vec![0; size]);
        let packet = route.scmp(&message);
        let mtu = path.mtu();
        if packet.len() > usize::from(mtu) || size > usize::from(mtu) {
            let packet = packet.len().max(size + ECHO_HEADER);
            return Err(PingError::TooLarge { size, packet, mtu });
        }
        let sent = Instant::now();
        self.socket
            .send_raw(&packet, route.next_hop())
            .await
            .map_err(PingError::Send)?;
        let answer = tokio::time::timeout(timeout, answer).await;
        drop(expected);
        match answer {
            Ok(Ok(Answer::Reply { from, at })) => Ok(Reply {
                from,
                rtt: at.saturating_duration_since(sent),
                size: packet.len(),
            }),
            Ok(Ok(Answer::Error(error))) => Err(PingError::Scmp(error)),
            // The receiving task ends only with the socket.
            Ok(Err(_)) | Err(_) => Err(PingError::TimedOut(timeout)),
        }
    }

    /// A sequence number nobody uses, and what will come back for it.
    fn expect(&self) -> Option<(u16, oneshot::Receiver<Answer>)> {
        let mut waiting = lock(&self.waiting);
        let free = (0..=u16::MAX)
            .map(|step| waiting.next.wrapping_add(step))
            .find(|sequence| !waiting.by_sequence.contains_key(sequence))?;
        waiting.next = free.wrapping_add(1);
        let (sender, receiver) = oneshot::channel();
        waiting.by_sequence.insert(free, sender);
        Some((free, receiver))
    }
}

/// A number in use, also when waiting for it is given up.
struct Expected<'a>(&'a Pinger, u16);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).by_sequence.remove(&self.1);
    }
}

impl Drop for Pinger {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}

fn lock(waiting: &Mutex<Waiting>) -> std::sync::MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands replies and errors to whoever waits for them.
async fn receive(socket: Arc<Socket>, waiting: Arc<Mutex<Waiting>>) {
    let mut buffer = ReceiveBuffer::new();
    let port = socket.local_addr().host.port();
    loop {
        if let Err(error) = poll_fn(|cx| socket.poll_receive(cx, &mut buffer)).await {
            tracing::debug!(%error, "receiving echoes");
            continue;
        }
        let at = Instant::now();
        while let Some(arrival) = buffer.next(&socket) {
            let (sequence, answer) = match arrival {
                Arrival::Scmp(
                    packet,
                    Scmp::Echo {
                        reply: true,
                        id,
                        sequence,
                        ..
                    },
                ) if id == port => {
                    let host = packet.src_host().unwrap_or(socket.local_addr().host.ip());
                    let from = ScionAddr::new(packet.src_as(), SocketAddr::new(host, 0));
                    (sequence, Answer::Reply { from, at })
                }
                Arrival::Report(report) => match report.quote.request {
                    Some(sequence) => (sequence, Answer::Error(report.error)),
                    None => continue,
                },
                _ => continue,
            };
            if let Some(waiter) = lock(&waiting).by_sequence.remove(&sequence) {
                // Nobody listening any more is fine.
                let _ = waiter.send(answer);
            }
        }
    }
}
