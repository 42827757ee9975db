//! Pages fetched over HTTP and HTTPS.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hawser_tracker::message::http::{AnswerError, MAX_ANSWER, read_answer};
use hawser_tracker::{Host, Scheme, TrackerUrl};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, HOST, LOCATION, USER_AGENT,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::resolve::resolve;
use super::tls;
use crate::error::AnnounceError;

/// Most redirects followed.
const MAX_REDIRECTS: usize = 3;
/// Longest head of a response, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// Longest time in which one of several addresses of a host is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches pages.
pub(super) struct Fetcher {
    timeout: Duration,
    roots: Vec<Vec<u8>>,
    /// Made with the first page over HTTPS.
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Fetcher {
    pub fn new(timeout: Duration, roots: Vec<Vec<u8>>) -> Self {
        Self {
            timeout,
            roots,
            tls: OnceCell::new(),
        }
    }

    /// The body of the page at `url`.
    ///
    /// # Errors
    /// [`AnnounceError`] if there is none, it is longer than [`MAX_ANSWER`], or its status is not success;
    /// then the reason of the tracker, if the body has one.
    pub async fn fetch(&self, url: &str) -> Result<Bytes, AnnounceError> {
        let host = url.parse::<TrackerUrl>()?.authority();
        let after = self.timeout;
        let fetched = timeout(after, self.follow(url.to_owned())).await;
        fetched.unwrap_or(Err(AnnounceError::TimedOut { host, after }))
    }

    async fn follow(&self, mut url: String) -> Result<Bytes, AnnounceError> {
        let mut redirects = 0;
        loop {
            let parsed: TrackerUrl = url.parse()?;
            let response = self.request(&parsed).await?;
            let host = parsed.authority();
            if !response.status().is_redirection() {
                return read(response, host).await;
            }
            let to = response.headers().get(LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
            url = target(&parsed, to)
                .and_then(|to| match redirects < MAX_REDIRECTS {
                    true => Ok(to),
                    false => Err("too many redirects"),
                })
                .map_err(|reason| AnnounceError::Redirect {
                    host,
                    to: to.chars().take(100).collect(),
                    reason,
                })?;
            redirects += 1;
        }
    }

    async fn request(&self, url: &TrackerUrl) -> Result<Response<Incoming>, AnnounceError> {
        let stream = connect(url).await?;
        if url.scheme == Scheme::Http {
            return send(stream, url).await;
        }
        let tls_error = |error: io::Error| AnnounceError::Tls {
            host: url.authority(),
            error: error.to_string(),
        };
        let name = match &url.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other),
            Host::Ip(ip) => Ok(ServerName::from(*ip)),
            Host::Scion(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let name = name.map_err(tls_error)?;
        let config = self.tls.get_or_try_init(|| self.config()).await;
        let connector = TlsConnector::from(Arc::clone(config.map_err(tls_error)?));
        let stream = connector.connect(name, stream).await.map_err(tls_error)?;
        send(stream, url).await
    }

    async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        let roots = self.roots.clone();
        let made = tokio::task::spawn_blocking(move || tls::config(&roots)).await;
        made.map_err(io::Error::other)?
    }
}

/// Connects to one of the addresses of the host; each has its share of the time.
async fn connect(url: &TrackerUrl) -> Result<TcpStream, AnnounceError> {
    let addrs = match &url.host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, url.port)],
        Host::Name(name) => resolve(name, url.port).await?,
        // Refused with the URL.
        Host::Scion(_) => Vec::new(),
    };
    let mut failed = io::ErrorKind::AddrNotAvailable.into();
    for addr in addrs {
        match within(CONNECT_TIMEOUT, TcpStream::connect(addr)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(AnnounceError::Reach {
        host: url.authority(),
        error: failed,
    })
}

async fn within<T>(limit: Duration, job: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = timeout(limit, job).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Sends the request for a page.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &TrackerUrl,
) -> Result<Response<Incoming>, AnnounceError> {
    let failed = |error: &dyn std::fmt::Display| AnnounceError::Http {
        host: url.authority(),
        error: error.to_string(),
    };
    let path = match url.path.as_str() {
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    let request = Request::get(path)
        .header(HOST, host_header(url))
        .header(USER_AGENT, concat!("hawser/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(&error))?;
    let mut builder = http1::Builder::new();
    let handshake = builder
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await;
    let (mut sender, connection) = handshake.map_err(|error| failed(&error))?;
    // It ends with the response, or when that is dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection to a tracker broke: {error}");
        }
    });
    sender
        .send_request(request)
        .await
        .map_err(|error| failed(&error))
}

/// The port is named only if it is not the usual one.
fn host_header(url: &TrackerUrl) -> String {
    let authority = url.authority();
    let usual = match url.scheme {
        Scheme::Http => ":80",
        _ => ":443",
    };
    authority
        .strip_suffix(usual)
        .unwrap_or(&authority)
        .to_owned()
}

async fn read(response: Response<Incoming>, host: String) -> Result<Bytes, AnnounceError> {
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, MAX_ANSWER).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(AnswerError::Long.into()),
        Err(error) => {
            let error = error.to_string();
            return Err(AnnounceError::Http { host, error });
        }
    };
    if !head.status.is_success() {
        let status = head.status.as_u16();
        return Err(match read_answer(&body) {
            Err(refused @ AnswerError::Refused { .. }) => refused.into(),
            _ => AnnounceError::Status { host, status },
        });
    }
    match head.headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let error = "the answer is compressed, which was not asked for".to_owned();
            Err(AnnounceError::Http { host, error })
        }
        _ => Ok(body),
    }
}

/// Where a redirect leads: an absolute URL, or a path on the same host.
fn target(from: &TrackerUrl, to: &str) -> Result<String, &'static str> {
    let url = match to.starts_with('/') && !to.starts_with("//") {
        true => TrackerUrl {
            path: to.to_owned(),
            ..from.clone()
        }
        .to_string(),
        false => to.to_owned(),
    };
    match url.parse::<TrackerUrl>() {
        Ok(to) if to.scheme == Scheme::Udp => Err("it is not HTTP"),
        // What lets a client in may be in the URL.
        Ok(to) if to.scheme == Scheme::Http && from.scheme == Scheme::Https => {
            Err("it leaves HTTPS")
        }
        Ok(_) => Ok(url),
        Err(_) => Err("it is not a URL of HTTP"),
    }
}
