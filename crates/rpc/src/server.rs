//! Services: their methods, and what requests get.

mod connections;
mod reply;

use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use hawser_proto::{Message, Method};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::{Request, Response};
use tokio::time::Instant;

pub use self::connections::serve;
use self::reply::Reply;
use crate::code::{Code, RpcError};
use crate::frame::{self, FrameError, HEADER, MAX_MESSAGE};
use crate::protocol::{Content, Protocol};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send>>;
type Handler = Box<dyn Fn(&[u8]) -> Result<Answer, RpcError> + Send + Sync>;

/// An encoded message `A`. One that is sent often is encoded once: copies are cheap.
pub struct Encoded<A> {
    bytes: Bytes,
    message: PhantomData<fn() -> A>,
}

impl<A> Encoded<A> {
    /// The encoded message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<A: Message> From<A> for Encoded<A> {
    fn from(message: A) -> Self {
        Self {
            bytes: message.encode_to_vec().into(),
            message: PhantomData,
        }
    }
}

impl<A> Clone for Encoded<A> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            message: PhantomData,
        }
    }
}

impl<A> std::fmt::Debug for Encoded<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Encoded").field(&self.bytes.len()).finish()
    }
}

/// The methods of services.
#[derive(Default)]
pub struct Router {
    methods: HashMap<&'static str, Handler>,
}

impl Router {
    /// No methods.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a method, whose requests `answer` answers.
    #[must_use]
    pub fn with_method<Q, A, B, F>(
        mut self,
        method: Method<Q, A>,
        answer: impl Fn(Q) -> F + Send + Sync + 'static,
    ) -> Self
    where
        Q: Message + Default + 'static,
        A: Message + 'static,
        B: Into<Encoded<A>>,
        F: Future<Output = Result<B, RpcError>> + Send + 'static,
    {
        let handler = move |request: &[u8]| -> Result<Answer, RpcError> {
            let request = Q::decode(request).map_err(|error| {
                let message = format!("failed to decode proto request: {error}");
                RpcError::new(Code::InvalidArgument, message)
            })?;
            let answer = answer(request);
            Ok(Box::pin(async move {
                let encoded: Encoded<A> = answer.await?.into();
                Ok(encoded.bytes)
            }))
        };
        self.methods.insert(method.path(), Box::new(handler));
        self
    }

    /// What a request gets.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response<Reply>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let (head, body) = request.into_parts();
        let (path, content) = (head.uri.path(), Content::of(&head.headers));
        let protocol = match content {
            Content::Proto(protocol) if head.method == hyper::Method::POST => protocol,
            _ => {
                // A client over HTTP/1 may not read the answer before it has sent everything.
                let _ = read(body).await;
                return match head.method {
                    hyper::Method::POST => reply::unsupported(content),
                    _ if self.methods.contains_key(path) => reply::only_post(),
                    _ => reply::not_found(path),
                };
            }
        };
        let timeout = protocol.timeout(&head.headers);
        let answer = async {
            let body = read(body).await?;
            protocol.check(&head.headers)?;
            let handler = self.methods.get(path).ok_or_else(|| {
                RpcError::new(Code::Unimplemented, format!("method not found: {path}"))
            })?;
            let request = match protocol {
                Protocol::Grpc => frame::unframe(&body).map_err(refusal)?,
                Protocol::Connect => body,
            };
            handler(&request)?.await
        };
        match within(timeout, answer).await {
            Ok(message) => reply::message(protocol, message),
            Err(_) if protocol == Protocol::Connect && !self.methods.contains_key(path) => {
                reply::not_found(path)
            }
            Err(error) => reply::error(protocol, &error),
        }
    }
}

/// The body of a request, of bounded length.
async fn read<B>(body: B) -> Result<Bytes, RpcError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    const MAX_BODY: usize = MAX_MESSAGE + HEADER;
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(RpcError::new(
            Code::ResourceExhausted,
            format!("request body size exceeds limit {MAX_BODY}"),
        )),
        Err(error) => Err(RpcError::new(
            Code::Internal,
            format!("failed to read request body: {error}"),
        )),
    }
}

/// The error of a request that is not one frame.
fn refusal(error: FrameError) -> RpcError {
    let code = match error {
        FrameError::Empty | FrameError::Several => Code::Unimplemented,
        FrameError::Short => Code::InvalidArgument,
        FrameError::Long(_) => Code::ResourceExhausted,
        FrameError::Compressed => Code::Internal,
    };
    RpcError::new(code, error.to_string())
}

/// The outcome of `answer`, unless it takes longer than `timeout`.
async fn within<T>(
    timeout: Option<Duration>,
    answer: impl Future<Output = Result<T, RpcError>>,
) -> Result<T, RpcError> {
    // One that is beyond the clock is none.
    match timeout.and_then(|timeout| Instant::now().checked_add(timeout)) {
        None => answer.await,
        Some(deadline) => tokio::time::timeout_at(deadline, answer)
            .await
            .unwrap_or_else(|_| Err(RpcError::new(Code::DeadlineExceeded, "request timeout"))),
    }
}
