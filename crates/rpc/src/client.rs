//! A client of services by gRPC.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use hawser_proto::{Message, Method};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HeaderValue, TE};
use hyper::{HeaderMap, Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::code::{Code, RpcError};
use crate::frame::{self, HEADER, MAX_MESSAGE};
use crate::status;

/// Content types of answers. The shorter one means the same.
const CONTENT_TYPES: [&str; 2] = ["application/grpc+proto", "application/grpc"];

type Sender = SendRequest<Full<Bytes>>;

type Exchange<'a> = Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send + 'a>>;

/// A client of a service, by gRPC over HTTP/2 without TLS. It connects with the first call, and again
/// after the service was restarted.
///
/// A call takes as long as the service does: whoever has a deadline drops the future.
pub struct Client {
    /// `HOST:PORT`.
    address: String,
    connect_timeout: Duration,
    connection: Mutex<Connection>,
}

/// The address of a service is not `HOST:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not HOST:PORT")]
pub struct InvalidAddress;

#[derive(Default)]
struct Connection {
    sender: Option<Sender>,
    /// Why connecting failed last, and when.
    failed: Option<(Instant, RpcError)>,
}

impl Client {
    /// A client of the service at `address`, `HOST:PORT`. Finding and reaching the host may take
    /// `connect_timeout`.
    ///
    /// # Errors
    /// When the address is not `HOST:PORT`.
    pub fn new(address: &str, connect_timeout: Duration) -> Result<Self, InvalidAddress> {
        let uri: Uri = format!("http://{address}")
            .parse()
            .map_err(|_| InvalidAddress)?;
        let is_whole = uri.authority().is_some_and(|it| it.as_str() == address);
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        if !is_whole || !has_host || uri.port_u16().is_none() || address.contains('@') {
            return Err(InvalidAddress);
        }
        Ok(Self {
            address: address.to_owned(),
            connect_timeout,
            connection: Mutex::default(),
        })
    }

    /// Calls a method.
    ///
    /// # Errors
    /// The service's error; [`Code::Unavailable`] when it cannot be reached, or the connection breaks;
    /// another one when its answer is not one of gRPC with one message.
    pub async fn call<Q, A>(&self, method: Method<Q, A>, request: &Q) -> Result<A, RpcError>
    where
        Q: Message,
        A: Message + Default,
    {
        let message = self.exchange(method.path(), request.encode_to_vec());
        let invalid = |error| RpcError::new(Code::Internal, format!("failed to decode: {error}"));
        A::decode(message.await?).map_err(invalid)
    }

    /// Calls a method with messages that are bytes. Its future is boxed so that the code of HTTP/2 is in
    /// this crate alone, and not once more in each crate that calls methods.
    fn exchange<'a>(&'a self, path: &'a str, message: Vec<u8>) -> Exchange<'a> {
        Box::pin(async move {
            tracing::trace!(service = self.address, method = path, "call");
            let response = self.send(self.request(path, &message)?).await?;
            read(response).await
        })
    }

    fn request(&self, path: &str, message: &[u8]) -> Result<Request<Full<Bytes>>, RpcError> {
        let body = Full::new(frame::frame(message));
        let uri = format!("http://{}{path}", self.address);
        let request = Request::post(uri)
            .header(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPES[0]))
            .header(TE, HeaderValue::from_static("trailers"))
            .body(body);
        request.map_err(|error| RpcError::new(Code::Internal, error.to_string()))
    }

    /// Sends a request, a second time if the connection was closed before it left.
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, RpcError> {
        let broken = |error| RpcError::new(Code::Unavailable, format!("request failed: {error}"));
        let mut sender = self.sender().await?;
        let mut refused = match sender.try_send_request(request).await {
            Ok(response) => return Ok(response),
            Err(refused) => refused,
        };
        match refused.take_message() {
            Some(request) => {
                self.connection.lock().await.sender = None;
                let mut sender = self.sender().await?;
                sender.send_request(request).await.map_err(broken)
            }
            None => Err(broken(refused.into_error())),
        }
    }

    /// The connection, which calls share. Those that wait for it while it fails get that error, too:
    /// one after the other would wait much longer.
    async fn sender(&self) -> Result<Sender, RpcError> {
        let begin = Instant::now();
        let mut connection = self.connection.lock().await;
        if let Some(sender) = connection
            .sender
            .as_ref()
            .filter(|sender| !sender.is_closed())
        {
            return Ok(sender.clone());
        }
        if let Some((_, error)) = connection.failed.as_ref().filter(|(at, _)| *at > begin) {
            return Err(error.clone());
        }
        let connected = self.connect().await;
        *connection = match &connected {
            Ok(sender) => Connection {
                sender: Some(sender.clone()),
                failed: None,
            },
            Err(error) => Connection {
                sender: None,
                failed: Some((Instant::now(), error.clone())),
            },
        };
        connected
    }

    async fn connect(&self) -> Result<Sender, RpcError> {
        let unavailable = |error: &dyn fmt::Display| {
            let message = format!("cannot connect to {}: {error}", self.address);
            RpcError::new(Code::Unavailable, message)
        };
        let stream = within(self.connect_timeout, self.reach()).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        // Requests are written whole: waiting to fill segments only delays them.
        let _ = stream.set_nodelay(true);
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(|error| unavailable(&error))?;
        // It ends with the last sender, or with the connection.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("a connection to a service broke: {error}");
            }
        });
        Ok(sender)
    }

    /// Connects to one of the addresses of the host; each may take its share of the time.
    async fn reach(&self) -> io::Result<TcpStream> {
        let addresses: Vec<_> = lookup_host(&self.address).await?.collect();
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut failed = io::ErrorKind::AddrNotAvailable.into();
        for address in addresses {
            let stream = TcpStream::connect(address);
            match within(self.connect_timeout / count, stream).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.address).finish()
    }
}

async fn within<T>(limit: Duration, job: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, job)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The message of an answer, if the call succeeded.
async fn read(response: Response<Incoming>) -> Result<Bytes, RpcError> {
    let (head, body) = response.into_parts();
    check(head.status.as_u16(), &head.headers)?;
    let body = match Limited::new(body, MAX_MESSAGE + HEADER).collect().await {
        Ok(body) => body,
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("an answer of more than {MAX_MESSAGE} bytes");
            return Err(RpcError::new(Code::ResourceExhausted, message));
        }
        Err(error) => {
            let message = format!("failed to read response body: {error}");
            return Err(RpcError::new(Code::Internal, message));
        }
    };
    let trailers = body.trailers().cloned();
    outcome(&head.headers, trailers.as_ref(), &body.to_bytes())
}

/// # Errors
/// When the head is not that of an answer of gRPC.
pub(crate) fn check(http_status: u16, headers: &HeaderMap) -> Result<(), RpcError> {
    if !(200..300).contains(&http_status) {
        let code = Code::from_http_status(http_status);
        return Err(RpcError::new(code, format!("HTTP error {http_status}")));
    }
    let Some(content_type) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let text = content_type.to_str().unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default().trim();
    if CONTENT_TYPES.contains(&media_type) {
        return Ok(());
    }
    let code = match media_type.starts_with("application/grpc+") {
        true => Code::Internal,
        false => Code::Unknown,
    };
    Err(RpcError::new(
        code,
        format!("unexpected content-type: {text}"),
    ))
}

/// The message of an answer, or its error, which is in the trailers, or in the headers if there is
/// nothing else.
pub(crate) fn outcome(
    headers: &HeaderMap,
    trailers: Option<&HeaderMap>,
    body: &Bytes,
) -> Result<Bytes, RpcError> {
    let in_headers = || status::read(headers).filter(|_| body.is_empty());
    let status = match trailers {
        Some(trailers) => status::read(trailers),
        None => in_headers(),
    };
    let missing = "gRPC response missing grpc-status trailer";
    status.unwrap_or_else(|| Err(RpcError::new(Code::Internal, missing)))?;
    frame::unframe(body).map_err(|error| RpcError::new(Code::Internal, error.to_string()))
}
