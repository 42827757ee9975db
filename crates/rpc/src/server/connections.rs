//! Connections of clients: HTTP/1 and HTTP/2 without TLS.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Router;

/// Wait after a connection could not be accepted, as with too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Longest wait for the head of a request over HTTP/1.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Has `router` answer requests at `listener` until `stopped` is true or has no sender, and then those
/// under way. Dropping the future ends all connections.
pub async fn serve(listener: TcpListener, router: Router, stopped: watch::Receiver<bool>) {
    serve_accepted(|| listener.accept(), router, stopped).await;
}

/// Like [`serve`], for the connections that `accept` returns.
async fn serve_accepted<F, A>(
    mut accept: impl FnMut() -> F,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) where
    F: Future<Output = io::Result<(TcpStream, A)>>,
{
    let router = Arc::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let router = Arc::clone(&router);
        async move { Ok::<_, Infallible>(router.respond(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    let http1 = &mut builder.http1();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    let ending = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut is_reported = false;
    loop {
        let accepted = tokio::select! {
            // The sender may be gone, too.
            _ = stopped.wait_for(|&stop| stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Those that are open go on, and the next one may be accepted.
                if !std::mem::replace(&mut is_reported, true) {
                    tracing::warn!("cannot accept a connection: {error}");
                }
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        is_reported = false;
        // Answers are written whole: waiting to fill segments only delays them.
        let _ = stream.set_nodelay(true);
        let connection = builder.serve_connection(TokioIo::new(stream), service.clone());
        let connection = ending.watch(connection.into_owned());
        connections.spawn(async move {
            // A connection that breaks has no one to report to.
            let _ = connection.await;
        });
    }
    ending.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn connections_are_accepted_after_failures() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Too many open files, here and in the system; no memory; a connection and a network that fail.
        let errors = [24, 23, 12, 105, 103, 100];
        let tries = AtomicUsize::new(0);
        let accept = async || match errors.get(tries.fetch_add(1, Ordering::Relaxed)) {
            Some(error) => Err(io::Error::from_raw_os_error(*error)),
            None => listener.accept().await,
        };
        let (stop, stopped) = watch::channel(false);
        let serving = serve_accepted(accept, Router::new(), stopped);
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = b"POST /a/b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, request)
                .await
                .unwrap();
            let mut answer = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer)
                .await
                .unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 "), "{answer:?}");
            stop.send(true).unwrap();
        };
        tokio::join!(serving, client);
        assert!(tries.load(Ordering::Relaxed) > errors.len());
    }
}
