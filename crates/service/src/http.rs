//! The HTTP API: connections, the user that a request comes from, and the function that answers it.

mod answer;
mod caller;
mod hercules;
mod transfers;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use hawser_http::{JsonError, Tls, prometheus};

use self::caller::Caller;
use crate::service::Service;

/// A socket on which the API is served.
pub struct Listener {
    inner: hawser_http::Listener,
    anonymous: Option<Arc<str>>,
}

impl Listener {
    /// Binds a socket at `address` for plain HTTP; requests without a token act for `anonymous`.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn http(address: SocketAddr, anonymous: Option<&str>) -> io::Result<Self> {
        Ok(Self {
            inner: hawser_http::Listener::bind(address, None).await?,
            anonymous: anonymous.map(Arc::from),
        })
    }

    /// Binds a socket at `address` for HTTP over TLS.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn https(address: SocketAddr, tls: Tls) -> io::Result<Self> {
        Ok(Self {
            inner: hawser_http::Listener::bind(address, Some(tls)).await?,
            anonymous: None,
        })
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
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
                    Ok(text) => prometheus(text),
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
        let anonymous = self.anonymous;
        let checked = move |mut request: Request, next: Next| {
            let anonymous = anonymous.clone();
            async move {
                let caller = Caller::new(request.extensions().get(), anonymous);
                if let Some(refusal) = caller.refusal(&request) {
                    return refusal;
                }
                request.extensions_mut().insert(caller);
                next.run(request).await
            }
        };
        self.inner.serve(router.layer(from_fn(checked))).await;
    }
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
