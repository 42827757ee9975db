//! The sockets of the API, and what is served on them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hawser_client::http::Daemon;
use hawser_http::{JsonError, Listener, NO_PAGES, Peer, api, is_own_page, may_be_from_page};
use hawser_service::{Config, HttpsConfig, Service};
use utoipa::OpenApi;

use crate::error::DaemonError;

/// The address of the API by default: the port at which programs look for Transmission.
const API: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9091);

/// What the description of the API begins with.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "hawser daemon",
        version = "1",
        description = "The torrents and the transfers of a host. Transmission's RPC is at /transmission/rpc."
    ),
    security(("token" = []))
)]
struct Described;

/// Where the API is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Over plain HTTP.
    pub http: SocketAddr,
    /// Over TLS; `None` if it is not served so.
    pub https: Option<SocketAddr>,
}

/// The sockets of the API.
pub(crate) struct Server {
    http: Listener,
    https: Option<Listener>,
    /// Whether requests over plain HTTP may do without a token, as those of the user that the configuration
    /// names.
    may_be_anonymous: bool,
}

impl Server {
    /// Binds the sockets: at `listen` if that is given, else where the configuration says.
    pub async fn bind(
        listen: Option<SocketAddr>,
        config: &Config,
    ) -> Result<(Self, Addresses), DaemonError> {
        let tls = config.https.as_ref().map(HttpsConfig::tls).transpose()?;
        let address = listen.or(config.http.listen).unwrap_or(API);
        let (http, http_address) = bind(address, None).await?;
        let mut addresses = Addresses {
            http: http_address,
            https: None,
        };
        let mut https = None;
        if let (Some(config), Some(tls)) = (&config.https, tls) {
            let (listener, address) = bind(config.listen, Some(tls)).await?;
            https = Some(listener);
            addresses.https = Some(address);
        }
        let server = Self {
            http,
            https,
            may_be_anonymous: config.http.anonymous.is_some(),
        };
        Ok((server, addresses))
    }

    /// Answers requests. Dropping the future ends all connections.
    pub async fn serve(self, daemon: Daemon, service: Service) {
        let plain = routes(daemon.clone(), service.clone(), self.may_be_anonymous);
        match self.https {
            None => self.http.serve(plain).await,
            Some(https) => tokio::select! {
                () = self.http.serve(plain) => {}
                () = https.serve(routes(daemon, service, false)) => {}
            },
        }
    }
}

async fn bind(
    address: SocketAddr,
    tls: Option<hawser_http::Tls>,
) -> Result<(Listener, SocketAddr), DaemonError> {
    let bound = async {
        let listener = Listener::bind(address, tls).await?;
        let address = listener.local_addr()?;
        Ok::<_, io::Error>((listener, address))
    };
    bound
        .await
        .map_err(|source| DaemonError::Listen { address, source })
}

/// All that is served on a socket.
fn routes(daemon: Daemon, service: Service, may_be_anonymous: bool) -> Router {
    let torrents = hawser_client::http::part(daemon.clone());
    let mut transfers = hawser_service::part(service, may_be_anonymous);
    let sessions = from_fn_with_state(daemon, find_session);
    transfers.routes = transfers.routes.layer(sessions);
    let router = api(Described::openapi(), vec![torrents, transfers]);
    match may_be_anonymous {
        // Metrics need no token, and other requests without one are those of the user that `http.anonymous` names.
        true => router.layer(from_fn(refuse_named_pages)),
        false => router,
    }
}

/// Has the session of a request of the own page be known to what answers it.
async fn find_session(State(daemon): State<Daemon>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>();
    let tls = peer.is_some_and(|peer| peer.tls);
    if is_own_page(request.headers(), tls) {
        let session = daemon.signed_in(request.headers());
        request.extensions_mut().insert(session);
    }
    next.run(request).await
}

/// Refuses the metrics to pages whose name was made to lead here (DNS rebinding).
async fn refuse_named_pages(request: Request, next: Next) -> Response {
    let is_metrics = request.uri().path() == "/metrics";
    match is_metrics && may_be_from_page(request.headers(), true) {
        true => JsonError(StatusCode::FORBIDDEN, NO_PAGES.to_owned()).into_response(),
        false => next.run(request).await,
    }
}
