//! The page and the HTTP API: connections, authorization of requests, and the functions that answer them.

mod access;
mod adding;
pub mod body;
mod caller;
mod describe;
mod feed;
mod look;
mod metrics;
mod page;
mod range;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod torrents;
mod transmission;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use hawser_http::page::secure;
use hawser_http::{
    ApiPart, JsonError, NO_PAGES, Peer, SignedIn, Token, is_own_page, json_errors,
    may_be_from_page, session_cookie,
};
use tokio_util::sync::CancellationToken;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::access::OwnerAlone;
pub use self::access::{Access, Callers};
use self::feed::Feed;
use crate::addresses::PeerAddresses;
use crate::client::Client;

/// What the paths of the JSON API begin with.
const PREFIX: &str = "/api/v1";
/// Where Transmission's RPC is; with a slash at its end for transmission-remote.
const RPC: &str = "/transmission/rpc";
const RPC_SLASH: &str = "/transmission/rpc/";

/// The torrents as they are served. Clones are the same.
#[derive(Clone)]
pub struct Daemon {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    addresses: PeerAddresses,
    callers: Arc<dyn Callers>,
    began: Instant,
    /// Browsers that have shown the token.
    sessions: hawser_http::Sessions<()>,
    /// What has changed of the torrents, for those that ask again and again.
    feed: tokio::sync::Mutex<Feed>,
    /// The ids that requests of Transmission's RPC must carry, and what makes them.
    rpc: Mutex<(hawser_transmission::Session, fastrand::Rng)>,
    /// Ends the daemon.
    stop: CancellationToken,
}

impl Daemon {
    /// Serves `client` to those that have the token. A request to end the daemon cancels `stop`.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(
        client: Client,
        addresses: PeerAddresses,
        token: &Token,
        stop: CancellationToken,
    ) -> Result<Self, &'static str> {
        let owner = Arc::new(OwnerAlone::new(token.hash()));
        Self::for_callers(client, addresses, owner, stop)
    }

    /// Serves `client` to those of `callers` that may command it. A request to end the daemon cancels `stop`.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn for_callers(
        client: Client,
        addresses: PeerAddresses,
        callers: Arc<dyn Callers>,
        stop: CancellationToken,
    ) -> Result<Self, &'static str> {
        // The ids depend on nothing but the seed: 64 bits of random numbers that nobody else sees.
        let secret = Token::random()?.hash().0;
        let (seed, _) = secret.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let mut rng = fastrand::Rng::with_seed(u64::from_ne_bytes(*seed));
        let began = Instant::now();
        let session = hawser_transmission::Session::new(began.elapsed(), &mut rng);
        Ok(Self {
            inner: Arc::new(Inner {
                client,
                addresses,
                callers,
                began,
                sessions: hawser_http::Sessions::default(),
                feed: tokio::sync::Mutex::new(Feed::new(rng.u64(..))),
                rpc: Mutex::new((session, rng)),
                stop,
            }),
        })
    }
}

impl Daemon {
    /// The session that these headers of a request of the page belong to, for other parts of the server.
    pub fn signed_in(&self, headers: &HeaderMap) -> SignedIn {
        let inner = &self.inner;
        let token = |(): &(), token| inner.callers.by_token(&token).map(|_| token);
        let find = |cookie| inner.sessions.user(cookie, inner.began.elapsed(), token);
        SignedIn(session_cookie(headers, caller::COOKIE).and_then(find))
    }
}

/// A socket on which the API is served.
pub struct Listener(hawser_http::Listener);

impl Listener {
    /// Binds a socket at `address`, for plain HTTP.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(hawser_http::Listener::bind(address, None).await?))
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves requests to the torrents alone. Dropping the future ends all connections.
    pub async fn serve(self, daemon: Daemon) {
        self.0.serve(router(daemon)).await;
    }
}

/// The JSON API, below [`PREFIX`].
fn json_api() -> OpenApiRouter<Daemon> {
    OpenApiRouter::new()
        .routes(routes!(torrents::about, torrents::change_daemon))
        .routes(routes!(torrents::list, adding::add))
        .routes(routes!(torrents::show, torrents::change, torrents::remove))
        .routes(routes!(torrents::settled))
        .routes(routes!(look::peers))
        .routes(routes!(look::pieces))
        .routes(routes!(look::rates))
        .routes(routes!(look::changes))
        .routes(routes!(stream::read))
        .routes(routes!(session::sign_in, session::show, session::sign_out))
        .routes(routes!(torrents::start))
        .routes(routes!(torrents::start_now))
        .routes(routes!(torrents::announce))
        .routes(routes!(torrents::stop))
        .routes(routes!(torrents::verify))
}

/// All routes of the API with their descriptions.
fn api() -> OpenApiRouter<Daemon> {
    OpenApiRouter::with_openapi(describe::Shared::openapi())
        .nest(PREFIX, json_api())
        .layer(from_fn(json_errors))
}

/// The description of the JSON API.
pub fn description() -> utoipa::openapi::OpenApi {
    api().split_for_parts().1
}

/// The torrents as a part of an API: the JSON API, Transmission's RPC and the page.
pub fn part(daemon: Daemon) -> ApiPart {
    let (router, description) = api().split_for_parts();
    // A client may ask for the id of the session by GET.
    let rpc = post(transmission::call).get(transmission::call);
    let router = router.route(RPC, rpc.clone()).route(RPC_SLASH, rpc);
    let router = router.layer(from_fn(refuse_pages));
    let router = router.with_state(daemon.clone());
    // A link of another site may lead to the page, which shows nothing without a session.
    let router = router
        .route("/", get(page::index))
        .route("/assets/{name}", get(page::asset));
    ApiPart {
        routes: router.layer(from_fn(secure)),
        description,
        metrics: Arc::new(move || {
            let daemon = daemon.clone();
            Box::pin(async move {
                let text = metrics::text(&daemon).await;
                text.map_err(|error| torrents::refused(&error))
            })
        }),
    }
}

/// A server of the torrents alone.
fn router(daemon: Daemon) -> Router {
    hawser_http::api(describe::Shared::openapi(), vec![part(daemon)])
}

async fn refuse_pages(request: Request, next: Next) -> axum::response::Response {
    let tls = is_tls(request.extensions());
    let headers = request.headers();
    match may_be_from_page(headers, false) && !is_own_page(headers, tls) {
        true => JsonError(StatusCode::FORBIDDEN, NO_PAGES.to_owned()).into_response(),
        false => next.run(request).await,
    }
}

/// Whether the request with these extensions came over TLS.
fn is_tls(extensions: &axum::http::Extensions) -> bool {
    extensions.get::<Peer>().is_some_and(|peer| peer.tls)
}
