//! The HTTP API: connections, the user that a request comes from, and the function that answers it.

mod answer;
mod caller;
mod hercules;
mod tls;
mod transfers;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt;

use self::answer::JsonError;
use self::caller::Caller;
pub use self::tls::{Tls, TlsError};
use crate::service::Service;

/// Longest wait for a TLS handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most connections at once.
const CONNECTIONS: usize = 256;
/// Wait after a connection could not be accepted, as with too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A socket on which the API is served.
pub struct Listener {
    socket: TcpListener,
    tls: Option<Tls>,
    anonymous: Option<Arc<str>>,
}

impl Listener {
    /// Binds a socket at `address` for plain HTTP; requests without a token act for `anonymous`.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn http(address: SocketAddr, anonymous: Option<&str>) -> io::Result<Self> {
        Ok(Self {
            socket: TcpListener::bind(address).await?,
            tls: None,
            anonymous: anonymous.map(Arc::from),
        })
    }

    /// Binds a socket at `address` for HTTP over TLS.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn https(address: SocketAddr, tls: Tls) -> io::Result<Self> {
        Ok(Self {
            socket: TcpListener::bind(address).await?,
            tls: Some(tls),
            anonymous: None,
        })
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves requests to `service`. Dropping the future ends all connections.
    pub async fn serve(self, service: Service) {
        self.serve_router(router(service)).await;
    }

    /// Serves metrics alone, at `/metrics`: the text that `read` gives, or why it gives none. Dropping
    /// the future ends all connections.
    pub async fn serve_metrics<R>(self, read: impl Fn() -> R + Clone + Send + Sync + 'static)
    where
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let metrics = move || {
            let text = read();
            async move {
                match text.await {
                    Ok(text) => transfers::prometheus(text),
                    Err(reason) => {
                        JsonError(StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
                    }
                }
            }
        };
        let router = Router::new().route("/metrics", get(metrics));
        self.serve_router(router.fallback(transfers::nothing)).await;
    }

    async fn serve_router(self, router: Router) {
        let free = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else {
                return;
            };
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = self.socket.accept().await else {
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            };
            let (router, tls) = (router.clone(), self.tls.clone());
            let anonymous = self.anonymous.clone();
            connections.spawn(async move {
                let _permit = permit;
                let Some(tls) = tls else {
                    return connection(stream, router, Caller::plain(anonymous)).await;
                };
                // A client that does not complete the handshake gets no answer.
                if let Ok(Ok((stream, subject))) =
                    tokio::time::timeout(PATIENCE, tls.accept(stream)).await
                {
                    connection(stream, router, Caller::certified(subject)).await;
                }
            });
        }
    }
}

/// Answers the requests of a connection.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    caller: Caller,
) {
    let answer = service_fn(|mut request: Request<Incoming>| {
        let router = router.clone();
        let refused = caller.refusal(&request);
        request.extensions_mut().insert(caller.clone());
        async move {
            match refused {
                Some(refusal) => Ok::<Response, Infallible>(refusal),
                None => router.oneshot(request.map(Body::new)).await,
            }
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    let builder = builder
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    // A connection that breaks has no one to report to.
    let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
}

/// Which function answers what.
fn router(service: Service) -> Router {
    Router::new()
        .route("/submit", any(hercules::submit))
        .route("/status", any(hercules::status))
        .route("/cancel", any(hercules::cancel))
        .route("/stat", any(hercules::stat))
        .route("/server", any(hercules::server))
        .route("/transfers", get(transfers::list).post(transfers::submit))
        .route(
            "/transfers/{id}",
            get(transfers::show)
                .patch(transfers::change)
                .delete(transfers::cancel),
        )
        .route("/metrics", get(transfers::metrics))
        .fallback(transfers::nothing)
        .with_state(service)
}

#[cfg(test)]
mod tests;
