//! The HTTP API: connections, the user that a request comes from, and the function that answers it.

mod answer;
mod caller;
mod hercules;
mod transfers;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use hawser_http::{JsonError, Tls, json_errors, prometheus};

use self::caller::Caller;
use crate::service::Service;

/// A socket on which the API is served.
pub struct Listener {
    inner: hawser_http::Listener,
    /// Whether requests may do without a token, if there is a user for that.
    may_be_anonymous: bool,
}

impl Listener {
    /// Binds a socket at `address` for plain HTTP. With `may_be_anonymous`, requests without a token
    /// act for the user that the service has for them.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn http(address: SocketAddr, may_be_anonymous: bool) -> io::Result<Self> {
        Ok(Self {
            inner: hawser_http::Listener::bind(address, None).await?,
            may_be_anonymous,
        })
    }

    /// Binds a socket at `address` for HTTP over TLS.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn https(address: SocketAddr, tls: Tls) -> io::Result<Self> {
        Ok(Self {
            inner: hawser_http::Listener::bind(address, Some(tls)).await?,
            may_be_anonymous: false,
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
        let router = router.fallback(transfers::nothing);
        self.serve_router(router.layer(from_fn(json_errors))).await;
    }

    async fn serve_router(self, router: Router) {
        let may_be_anonymous = self.may_be_anonymous;
        let checked = move |mut request: Request, next: Next| async move {
            let caller = Caller::new(request.extensions().get(), may_be_anonymous);
            if let Some(refusal) = caller.refusal(&request) {
                return refusal;
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        };
        self.inner.serve(router.layer(from_fn(checked))).await;
    }
}

/// Which function answers what.
fn router(service: Service) -> Router {
    // Its errors are text, as its other answers are.
    let hercules = Router::new()
        .route("/submit", any(hercules::submit))
        .route("/status", any(hercules::status))
        .route("/cancel", any(hercules::cancel))
        .route("/stat", any(hercules::stat))
        .route("/server", any(hercules::server));
    Router::new()
        .route("/transfers", get(transfers::list).post(transfers::submit))
        .route(
            "/transfers/{id}",
            get(transfers::show)
                .patch(transfers::change)
                .delete(transfers::cancel),
        )
        .route("/metrics", get(transfers::metrics))
        .fallback(transfers::nothing)
        .layer(from_fn(json_errors))
        .merge(hercules)
        .with_state(service)
}

#[cfg(test)]
mod tests;
