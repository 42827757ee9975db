//! Requests to a coordinator.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::FetchError;
use crate::tls;

/// Longest time until a connection is there.
const CONNECT: Duration = Duration::from_secs(10);
/// Time without a packet after which the kernel asks whether the coordinator is still there, the time between
/// two such questions, and how many without an answer end the connection.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_COUNT: u32 = 3;
/// The header with what tells this run of the program from others.
const INSTANCE: &str = "hawser-instance";
/// The header with the address of another machine that runs the same AS.
const OTHER_MACHINE: &str = "hawser-other-machine";
/// Longest text of an error that is shown.
const LONGEST_REASON: usize = 200;

/// The way to a coordinator: one connection, made anew when it has ended.
pub(crate) struct Client {
    url: Arc<Url>,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// How many connections were made.
    connects: u64,
}

/// Where a coordinator is, and the credentials for it.
struct Url {
    /// As it was given, for messages.
    text: String,
    host: String,
    port: u16,
    /// What paths are added to.
    path: String,
    /// `None` for plain HTTP.
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    authorization: HeaderValue,
    /// What tells this run of the program from others.
    instance: HeaderValue,
}

/// A request.
pub(crate) struct Ask<'a> {
    pub method: Method,
    /// The path with its query, from the root of the API.
    pub path: &'a str,
    /// The tag of what is there already.
    pub tag: Option<&'a str>,
    /// A body in JSON.
    pub body: Option<Vec<u8>>,
    /// Longest time until the whole answer is there.
    pub patience: Duration,
    /// Longest body of the answer.
    pub most: u64,
}

/// An answer that is not an error.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub tag: Option<String>,
    /// The address of another machine that runs the same AS.
    pub other_machine: Option<String>,
    pub body: Bytes,
}

/// A number chosen once for this process.
fn instance() -> HeaderValue {
    static NUMBER: LazyLock<u64> = LazyLock::new(|| fastrand::u64(..));
    let text = format!("{:016x}", *NUMBER);
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
}

impl Client {
    /// The client of the coordinator at `url`, with the bearer token of this host, which verifies
    /// TLS by `ca`.
    pub fn new(url: &str, token: &str, ca: Option<&str>) -> Result<Self, FetchError> {
        let wrong = || FetchError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let (tls, port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => {
                let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong())?;
                (Some((tls::config(ca)?, name)), 443)
            }
            _ => return Err(wrong()),
        };
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| wrong())?;
        authorization.set_sensitive(true);
        let url = Url {
            text: url.to_owned(),
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(port),
            path: uri.path().trim_end_matches('/').to_owned(),
            tls,
            authorization,
            instance: instance(),
        };
        Ok(Self {
            url: Arc::new(url),
            connection: None,
            connects: 0,
        })
    }

    /// Another client of the same coordinator, with a connection of its own.
    pub fn another(&self) -> Self {
        Self {
            url: Arc::clone(&self.url),
            connection: None,
            connects: 0,
        }
    }

    /// The URL, for messages.
    pub fn url(&self) -> &str {
        &self.url.text
    }

    /// How many connections were made so far. Another number than before: the coordinator may have
    /// been restarted.
    pub fn connects(&self) -> u64 {
        self.connects
    }

    /// Makes a request, and waits for the answer.
    pub async fn ask(&mut self, ask: Ask<'_>) -> Result<Answer, FetchError> {
        let patience = ask.patience;
        let asked = timeout(CONNECT + patience, self.try_ask(ask)).await;
        let broken = || self.url.broken("it took too long");
        let answer = asked.unwrap_or_else(|_| Err(broken()));
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    async fn try_ask(&mut self, ask: Ask<'_>) -> Result<Answer, FetchError> {
        // A server may close a connection at any time.
        let kept = match self.connection.take() {
            Some(mut kept) => kept.ready().await.is_ok().then_some(kept),
            None => None,
        };
        let mut connection = match kept {
            Some(kept) => kept,
            None => {
                let made = self.url.connect().await?;
                self.connects += 1;
                made
            }
        };
        let url = Arc::clone(&self.url);
        let request = url.request(&ask)?;
        let answer = connection.send_request(request).await;
        let answer = answer.map_err(|error| url.broken(error))?;
        let (parts, body) = answer.into_parts();
        let most = usize::try_from(ask.most).unwrap_or(usize::MAX);
        let body = Limited::new(body, most).collect().await.map_err(|error| {
            match error.is::<http_body_util::LengthLimitError>() {
                true => FetchError::TooLong {
                    url: url.text.clone(),
                    most: ask.most,
                },
                false => url.broken(error),
            }
        });
        let body = body?.to_bytes();
        self.connection = Some(connection);
        let status = parts.status;
        if !status.is_success() && status != StatusCode::NOT_MODIFIED {
            return Err(url.refusal(status, &body));
        }
        let tag = parts.headers.get(header::ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let other = parts.headers.get(OTHER_MACHINE);
        let other = other.and_then(|other| other.to_str().ok());
        let other = other.and_then(|other| other.parse::<IpAddr>().ok());
        Ok(Answer {
            status,
            tag,
            other_machine: other.map(|other| other.to_string()),
            body,
        })
    }
}

/// Has a connection end when the network has carried nothing of it for a while, also if nothing is to be
/// sent. Otherwise a request that waits for its answer would not notice that this machine was cut off until
/// [`Ask::patience`] is over, and what the kernel sends again comes late after a long cut.
fn notice_silence(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_COUNT)?;
    let millis = u32::try_from(CONNECT.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, millis)
}

impl Url {
    fn request(&self, ask: &Ask<'_>) -> Result<Request<Full<Bytes>>, FetchError> {
        let host = match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        };
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(format!("{}{}", self.path, ask.path))
            .header(header::HOST, host)
            .header(header::AUTHORIZATION, &self.authorization)
            .header(INSTANCE, &self.instance)
            .header(
                header::USER_AGENT,
                concat!("hawser/", env!("CARGO_PKG_VERSION")),
            );
        if let Some(tag) = ask.tag {
            request = request.header(header::IF_NONE_MATCH, tag);
        }
        if ask.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(ask.body.clone().unwrap_or_default()));
        request.body(body).map_err(|error| self.broken(error))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, FetchError> {
        let connect = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
            let stream = stream.map_err(|error| self.unreachable(error))?;
            // Requests are short, and answers are waited for.
            let _ = stream.set_nodelay(true);
            let _ = notice_silence(&stream);
            match &self.tls {
                None => self.speak(TokioIo::new(stream)).await,
                Some((config, name)) => {
                    let connector = TlsConnector::from(Arc::clone(config));
                    let stream = connector.connect(name.clone(), stream).await;
                    let stream = stream.map_err(|error| self.unreachable(error))?;
                    self.speak(TokioIo::new(stream)).await
                }
            }
        };
        let connected = timeout(CONNECT, connect).await;
        connected.unwrap_or_else(|_| Err(self.unreachable("it took too long")))
    }

    async fn speak<S>(&self, stream: S) -> Result<SendRequest<Full<Bytes>>, FetchError>
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let made = handshake(stream).await;
        let (sender, connection) = made.map_err(|error| self.unreachable(error))?;
        // It ends when the sender is dropped, or with an error that the next request shows.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }

    fn unreachable(&self, reason: impl fmt::Display) -> FetchError {
        FetchError::Unreachable {
            url: self.text.clone(),
            reason: reason.to_string(),
        }
    }

    fn broken(&self, reason: impl fmt::Display) -> FetchError {
        FetchError::Broken {
            url: self.text.clone(),
            reason: reason.to_string(),
        }
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> FetchError {
        #[derive(serde::Deserialize)]
        struct Said {
            error: String,
        }
        let said = serde_json::from_slice::<Said>(body).map(|said| said.error);
        let said = said.unwrap_or_else(|_| {
            let reason = status.canonical_reason();
            reason.unwrap_or("no reason given").to_owned()
        });
        // It is printed on a terminal, on one line.
        let plain = said.chars().filter(|c| !c.is_control());
        let (url, reason) = (self.text.clone(), plain.take(LONGEST_REASON).collect());
        let status = status.as_u16();
        match status {
            401 | 403 | 404 | 410 => FetchError::Refused {
                url,
                status,
                reason,
            },
            _ => FetchError::Status {
                url,
                status,
                reason,
            },
        }
    }
}

#[cfg(test)]
mod tests;
