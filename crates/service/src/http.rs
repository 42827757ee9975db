//! The HTTP API: connections, the user that a request comes from, and the function that answers it.

mod answer;
mod caller;
mod hercules;
mod transfers;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get};
use hawser_http::{Tls, json_errors, nothing};

use self::answer::TEXT_PATHS;
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

/// The description of the API, as OpenAPI 3.1.
const DESCRIPTION: &str = include_str!("openapi.json");

/// `GET /openapi.json`
async fn description() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION).into_response()
}

/// A path, its methods, and the functions that answer them.
type Route = (&'static str, &'static [&'static str], MethodRouter<Service>);

/// The JSON API, and what is read beside it.
fn json_routes() -> [Route; 4] {
    let transfers = get(transfers::list).post(transfers::submit);
    let transfer = get(transfers::show)
        .patch(transfers::change)
        .delete(transfers::cancel);
    [
        ("/openapi.json", &["get"], get(description)),
        ("/transfers", &["get", "post"], transfers),
        ("/transfers/{id}", &["delete", "get", "patch"], transfer),
        ("/metrics", &["get"], get(transfers::metrics)),
    ]
}

/// The API of Hercules' monitor: `GET` as any other method.
fn text_routes() -> [Route; TEXT_PATHS.len()] {
    let [submit, status, cancel, stat, server] = TEXT_PATHS;
    [
        (submit, &["get"], any(hercules::submit)),
        (status, &["get"], any(hercules::status)),
        (cancel, &["get"], any(hercules::cancel)),
        (stat, &["get"], any(hercules::stat)),
        (server, &["get"], any(hercules::server)),
    ]
}

fn with_routes(routes: impl IntoIterator<Item = Route>) -> Router<Service> {
    let mut router = Router::new();
    for (path, _, answers) in routes {
        router = router.route(path, answers);
    }
    router
}

/// Which function answers what.
fn router(service: Service) -> Router {
    with_routes(json_routes())
        .fallback(nothing)
        .layer(from_fn(json_errors))
        // Its errors are text, as its other answers are.
        .merge(with_routes(text_routes()))
        .with_state(service)
}

#[cfg(test)]
mod tests;
