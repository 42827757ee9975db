//! Datagrams over SCION.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hawser_address::{PeerAddr, ScionAddr};
use hawser_endhost::socket::{Arrival, BindError, ReceiveBuffer, Socket};
use hawser_endhost::{Endhost, Headers};

use crate::datagrams::{BoxFuture, Datagrams};

/// How long an answer may go back over the path of what it answers.
const REPLY_TIME: Duration = Duration::from_secs(60);

/// Most hosts whose paths for answers are remembered; the one that sent nothing for longest is forgotten
/// first.
const MAX_REPLIES: usize = 4096;

/// A socket in a SCION network. An answer goes back over the path of what it answers, anything else over
/// the first path that the host knows.
pub struct ScionDatagrams {
    socket: Socket,
    /// Packets that were received and not taken yet.
    buffer: tokio::sync::Mutex<ReceiveBuffer>,
    replies: Mutex<HashMap<ScionAddr, Reply>>,
}

struct Reply {
    headers: Headers,
    since: Instant,
}

impl fmt::Debug for ScionDatagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScionDatagrams")
            .field(&self.local_addr())
            .finish()
    }
}

impl ScionDatagrams {
    /// Binds a socket of `host` at `local`, or at any port.
    ///
    /// # Errors
    /// When the address is not usable.
    pub fn bind(host: &Endhost, local: Option<SocketAddr>) -> Result<Self, BindError> {
        Ok(Self {
            socket: Socket::bind(host, local)?,
            buffer: tokio::sync::Mutex::default(),
            replies: Mutex::default(),
        })
    }

    /// Its address.
    pub fn local_addr(&self) -> ScionAddr {
        self.socket.local_addr()
    }

    fn replies(&self) -> MutexGuard<'_, HashMap<ScionAddr, Reply>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The headers of packets to `to`.
    async fn headers(&self, to: ScionAddr) -> io::Result<Headers> {
        let known = self.replies().get(&to).and_then(|reply| {
            let is_fresh = reply.since.elapsed() < REPLY_TIME;
            is_fresh.then(|| reply.headers.clone())
        });
        if let Some(headers) = known {
            return Ok(headers);
        }
        let paths = self.socket.host().paths(to.isd_as).await;
        let paths = paths.map_err(io::Error::other)?;
        let path = paths.first();
        let path = path.ok_or_else(|| io::Error::other(format!("no path to {to}")))?;
        Headers::new(self.local_addr(), to, path).map_err(io::Error::other)
    }

    /// Remembers the path over which a host is answered.
    fn remember(&self, headers: Headers) {
        let mut replies = self.replies();
        if replies.len() >= MAX_REPLIES && !replies.contains_key(&headers.remote) {
            let oldest = replies.iter().min_by_key(|(_, reply)| reply.since);
            if let Some(oldest) = oldest.map(|(addr, _)| *addr) {
                replies.remove(&oldest);
            }
        }
        let since = Instant::now();
        replies.insert(headers.remote, Reply { headers, since });
    }

    /// The next datagram of those in the buffer.
    fn take(&self, buffer: &mut ReceiveBuffer) -> Option<(PeerAddr, Vec<u8>)> {
        for arrival in self.socket.packets(buffer) {
            let datagram = match arrival {
                Arrival::Datagram(datagram) => datagram,
                // Requests are repeated, and answers may be lost.
                Arrival::Report(report) => {
                    self.socket.reject(&report);
                    continue;
                }
                Arrival::Scmp(..) => continue,
            };
            match datagram.reply_path(self.socket.host(), self.local_addr()) {
                Ok(reply) => {
                    let from = reply.headers.remote;
                    self.remember(reply.headers);
                    return Some((from.into(), datagram.payload.to_vec()));
                }
                Err(error) => tracing::debug!(%error, "a datagram cannot be answered"),
            }
        }
        None
    }
}

impl Datagrams for ScionDatagrams {
    fn send<'a>(&'a self, to: PeerAddr, payload: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let to = to.scion().ok_or(io::ErrorKind::Unsupported)?;
            let headers = self.headers(to).await?;
            let mut scratch = Vec::new();
            loop {
                let sent = self
                    .socket
                    .try_send(&headers, payload, payload.len(), 0, &mut scratch);
                match sent {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.socket.writable().await?;
                    }
                    sent => return sent.map(|_| ()),
                }
            }
        })
    }

    fn receive(&self) -> BoxFuture<'_, io::Result<(PeerAddr, Vec<u8>)>> {
        Box::pin(async move {
            let mut buffer = self.buffer.lock().await;
            loop {
                if let Some(datagram) = self.take(&mut buffer) {
                    return Ok(datagram);
                }
                poll_fn(|cx| self.socket.poll_receive(cx, &mut buffer)).await?;
            }
        })
    }
}
