//! A socket, its connections and their requests.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use crate::admission::{Admission, Admitted};
use crate::answer::challenge;
use crate::busy::{RequestBody, watched};
use crate::tls::Tls;

/// Longest wait for a TLS handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that written bytes wait for a client that does not acknowledge or read them.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Most connections at once, unless said otherwise.
const MAX_CONNECTIONS: usize = 256;
/// Wait after a connection could not be accepted, as with too many open files.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Where a request comes from; an extension of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The address of the other end of the connection.
    pub address: SocketAddr,
    /// Whether the connection is TLS.
    pub tls: bool,
    /// The subject of the certificate that the client showed.
    pub certificate: Option<String>,
}

/// A socket on which HTTP is served.
pub struct Listener {
    socket: TcpListener,
    tls: Option<Tls>,
    connections: usize,
}

impl Listener {
    /// Binds a socket at `address`, for plain HTTP or over TLS.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn bind(address: SocketAddr, tls: Option<Tls>) -> io::Result<Self> {
        Ok(Self {
            socket: TcpListener::bind(address).await?,
            tls,
            connections: MAX_CONNECTIONS,
        })
    }

    /// Sets how many connections there are at once, 256 without this. A further one takes the place of
    /// one that waits for a request, or waits itself while all are busy with one.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Has `router` answer requests, each with its [`Peer`]. Each 401 asks for a token, if it does not
    /// ask for something else. Dropping the future ends all
    /// connections.
    pub async fn serve(self, router: Router) {
        let admission = Admission::new(self.connections);
        let mut connections = tokio::task::JoinSet::new();
        if let Some(tls) = self.tls.clone() {
            connections.spawn(tls.follow());
        }
        loop {
            admission.room().await;
            while connections.try_join_next().is_some() {}
            let Ok((stream, address)) = self.socket.accept().await else {
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
                continue;
            };
            let admitted = Arc::new(admission.admit(address.ip()));
            let (router, tls) = (router.clone(), self.tls.clone());
            connections.spawn(async move {
                tokio::select! {
                    () = serve_one(stream, address, tls, router, Arc::clone(&admitted)) => {}
                    () = admitted.evicted() => {}
                }
            });
        }
    }
}

/// Answers the requests of a connection from `address`, after its handshake.
async fn serve_one(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<Tls>,
    router: Router,
    admitted: Arc<Admitted>,
) {
    let mut peer = Peer {
        address,
        tls: tls.is_some(),
        certificate: None,
    };
    // What a client does not take in is not kept for long.
    let _ = socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(WRITE_TIMEOUT));
    // Answers are written whole: waiting to fill segments only delays them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return requests(stream, router, peer, admitted).await;
    };
    // A client that does not complete the handshake gets no answer.
    if let Ok(Ok((stream, subject))) = tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await
    {
        peer.certificate = subject;
        requests(stream, router, peer, admitted).await;
    }
}

/// Answers the requests of a connection.
async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    peer: Peer,
    admitted: Arc<Admitted>,
) {
    let is_first = Cell::new(true);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        let (router, admitted) = (router.clone(), Arc::clone(&admitted));
        request.extensions_mut().insert(peer.clone());
        let is_first = is_first.replace(false);
        async move {
            // Many requests may have come at once: other connections have their turn in between.
            if !is_first {
                tokio::task::yield_now().await;
            }
            let body = |body| Body::new(RequestBody::new(body, Arc::clone(&admitted)));
            Ok::<Response, Infallible>(match router.oneshot(request.map(body)).await {
                Ok(mut answer) => {
                    challenge(&mut answer);
                    watched(answer, admitted)
                }
                Err(never) => match never {},
            })
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    let builder = builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    // A connection that breaks has no one to report to.
    let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
}

#[cfg(test)]
mod tests;
