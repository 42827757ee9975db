//! Connecting, asking, and following redirects.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, COOKIE, HOST, LOCATION, RANGE, USER_AGENT,
};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::HttpError;
use crate::resolve::resolve;
use crate::response::Response;
use crate::tls;
use crate::url::{Host, HttpUrl};

/// Most redirects followed.
pub const MAX_REDIRECTS: usize = 3;
/// Longest head of a response, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// Longest time in which one of several addresses of a host is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What is asked of a server.
#[derive(Debug, Clone, Copy)]
enum Ask<'a> {
    /// A page, or these bytes of it, with the value of a header `Cookie`.
    Get(Option<&'a Range<u64>>, Option<&'a str>),
    /// A call with headers and a body.
    Post(&'a [(&'a str, &'a str)], &'a str),
}

type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<hyper::Response<Incoming>, HttpError>> + Send + 'a>>;

/// Asks servers. Clones share the certificates that are trusted.
#[derive(Debug, Clone, Default)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    roots: Vec<Vec<u8>>,
    /// Made with the first request over HTTPS.
    tls: OnceCell<Arc<ClientConfig>>,
}

impl HttpClient {
    /// A client that trusts `roots`, certificates in DER form, beside those of the system.
    pub fn new(roots: Vec<Vec<u8>>) -> Self {
        let tls = OnceCell::new();
        Self {
            inner: Arc::new(Inner { roots, tls }),
        }
    }

    /// Asks for `url`, or for these bytes of it, which are some, and follows up to [`MAX_REDIRECTS`]
    /// redirects. Returns the response with any status. There is no limit of time but that of
    /// looking the host up and of connecting; dropping the future ends the request.
    ///
    /// # Errors
    /// [`HttpError`], if there is no response.
    pub async fn get(
        &self,
        url: &HttpUrl,
        bytes: Option<Range<u64>>,
    ) -> Result<Response, HttpError> {
        self.get_with_cookies(url, bytes, None).await
    }

    /// As [`Self::get`], with cookies: the value of a header `Cookie`, which is sent to the host and port of `url`
    /// alone, and to HTTPS on that host; not where a redirect leads elsewhere. No error names it.
    ///
    /// # Errors
    /// [`HttpError`], if there is no response.
    pub async fn get_with_cookies(
        &self,
        url: &HttpUrl,
        bytes: Option<Range<u64>>,
        cookies: Option<&str>,
    ) -> Result<Response, HttpError> {
        let (first, mut url, mut redirects) = (url, url.clone(), 0);
        loop {
            let cookies = cookies.filter(|_| url.is_trusted_by(first));
            let response = self.request(&url, Ask::Get(bytes.as_ref(), cookies));
            let response = response.await?;
            let host = url.authority();
            if !response.status().is_redirection() {
                return Ok(Response::new(response, host));
            }
            let to = response.headers().get(LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
            let next = match redirects < MAX_REDIRECTS {
                true => url.redirect(to),
                false => Err("too many redirects"),
            };
            url = next.map_err(|reason| HttpError::Redirect {
                host,
                to: to.chars().take(100).collect(),
                reason,
            })?;
            redirects += 1;
        }
    }

    /// Sends `body` to `url` with these headers beside those of every request. Redirects are not followed. Returns
    /// the response with any status; limits of time are those of [`Self::get`].
    ///
    /// # Errors
    /// [`HttpError`], if there is no response.
    pub async fn post(
        &self,
        url: &HttpUrl,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response, HttpError> {
        let response = self.request(url, Ask::Post(headers, body)).await?;
        Ok(Response::new(response, url.authority()))
    }

    /// Its future is boxed so that the code of HTTP and TLS is in this crate alone, and not once more in each
    /// crate that asks servers.
    fn request<'a>(&'a self, url: &'a HttpUrl, ask: Ask<'a>) -> Answer<'a> {
        Box::pin(async move {
            let stream = connect(url).await?;
            if !url.is_secure {
                return send(stream, url, ask).await;
            }
            let tls_error = |error: io::Error| HttpError::Tls {
                host: url.authority(),
                error: error.to_string(),
            };
            let name = match &url.host {
                Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other),
                Host::Ip(ip) => Ok(ServerName::from(*ip)),
            };
            let name = name.map_err(tls_error)?;
            let config = self.inner.tls.get_or_try_init(|| self.config()).await;
            let connector = TlsConnector::from(Arc::clone(config.map_err(tls_error)?));
            let stream = connector.connect(name, stream).await.map_err(tls_error)?;
            send(stream, url, ask).await
        })
    }

    async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        let roots = self.inner.roots.clone();
        let made = tokio::task::spawn_blocking(move || tls::config(&roots)).await;
        made.map_err(io::Error::other)?
    }
}

/// Connects to one of the addresses of the host; each has its share of the time.
async fn connect(url: &HttpUrl) -> Result<TcpStream, HttpError> {
    let addrs = match &url.host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, url.port)],
        Host::Name(name) => {
            let found = resolve(name, url.port).await;
            found.map_err(|error| HttpError::Resolve {
                host: name.clone(),
                error,
            })?
        }
    };
    let mut failed = io::ErrorKind::AddrNotAvailable.into();
    for addr in addrs {
        match within(CONNECT_TIMEOUT, TcpStream::connect(addr)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(HttpError::Reach {
        host: url.authority(),
        error: failed,
    })
}

async fn within<T>(limit: Duration, job: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = timeout(limit, job).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Sends a request.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &HttpUrl,
    ask: Ask<'_>,
) -> Result<hyper::Response<Incoming>, HttpError> {
    let failed = |error: &dyn std::fmt::Display| HttpError::Protocol {
        host: url.authority(),
        error: error.to_string(),
    };
    let mut request = match ask {
        Ask::Get(..) => Request::get(&url.path),
        Ask::Post(..) => Request::post(&url.path),
    };
    request = request
        .header(HOST, url.host_header())
        .header(USER_AGENT, concat!("hawser/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close");
    let mut content = Bytes::new();
    match ask {
        Ask::Get(bytes, cookies) => {
            if let Some(bytes) = bytes {
                let last = bytes.end.saturating_sub(1);
                request = request.header(RANGE, format!("bytes={}-{last}", bytes.start));
            }
            if let Some(cookies) = cookies {
                request = request.header(COOKIE, cookies);
            }
        }
        Ask::Post(headers, body) => {
            content = Bytes::copy_from_slice(body.as_bytes());
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
        }
    }
    let request = request
        .body(Full::new(content))
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
            tracing::debug!("a connection of HTTP broke: {error}");
        }
    });
    let response = sender.send_request(request).await;
    response.map_err(|error| failed(&error))
}
