//! The HTTP API: connections, the user that a request comes from, and the function that answers it.

mod answer;
mod caller;
mod describe;
mod hercules;
mod transfers;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::any;
use hawser_http::{Tls, json_errors, nothing};
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use self::caller::Caller;
use crate::service::Service;

/// What the paths of the JSON API begin with.
const PREFIX: &str = "/api/v1";

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

/// The JSON API, below [`PREFIX`].
fn json_api() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(describe::description))
        .routes(routes!(transfers::list, transfers::submit))
        .routes(routes!(
            transfers::show,
            transfers::change,
            transfers::cancel
        ))
}

/// A handler for any method of its path.
macro_rules! any_method {
    ($handler:path) => {
        routes!($handler).map(|_| any($handler))
    };
}

/// The API of Hercules' monitor: `GET` as any other method.
fn text_api() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(any_method!(hercules::submit))
        .routes(any_method!(hercules::status))
        .routes(any_method!(hercules::cancel))
        .routes(any_method!(hercules::stat))
        .routes(any_method!(hercules::server))
}

/// All routes with their descriptions.
fn api() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(describe::Shared::openapi())
        .nest(PREFIX, json_api())
        .routes(routes!(transfers::metrics))
        .layer(from_fn(json_errors))
        // Its errors are text, as its other answers are.
        .merge(text_api())
}

/// Which function answers what.
fn router(service: Service) -> Router {
    let (router, _) = api().split_for_parts();
    router.fallback(nothing).with_state(service)
}

#[cfg(test)]
mod tests;
