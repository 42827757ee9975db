//! Requests over HTTP.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hawser_tracker::http_reply;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::shared::Shared;

/// Most connections at once; others wait in the queue of the system.
const MAX_CONNECTIONS: usize = 1024;
/// Longest time of a connection: clients send one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Wait after a connection could not be accepted, as with too many open files.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Binds a socket; one of IPv6 is for IPv6 alone.
pub(super) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Answers requests. Dropping the future ends all connections.
pub(super) async fn serve(listener: TcpListener, swarms: Shared) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // It is never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        let Ok((stream, from)) = listener.accept().await else {
            sleep(ACCEPT_RETRY_INTERVAL).await;
            continue;
        };
        let swarms = swarms.clone();
        connections.spawn(async move {
            // A connection that breaks has no one to report to.
            let _ = timeout(CONNECTION_TIMEOUT, connection(stream, from, swarms)).await;
            drop(permit);
        });
    }
}

async fn connection(stream: TcpStream, from: SocketAddr, swarms: Shared) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let response = answer(&request, from, &swarms);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .keep_alive(false);
    if let Err(error) = builder
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!("a connection of a client broke: {error}");
    }
}

fn answer(request: &Request<Incoming>, from: SocketAddr, swarms: &Shared) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    if request.method() != Method::GET {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET"));
        return response;
    }
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let reply = http_reply(&mut swarms.lock(), from, target, Instant::now().into_std());
    *response.status_mut() = match reply.status {
        200 => StatusCode::OK,
        _ => StatusCode::NOT_FOUND,
    };
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    *response.body_mut() = Full::new(reply.body.into());
    response
}
