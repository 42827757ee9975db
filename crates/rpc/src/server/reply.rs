//! Answers to requests.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use crate::code::{Code, RpcError};
use crate::protocol::{ACCEPTED, Content, Protocol};
use crate::{frame, status};

/// The body of an answer: one piece of data at most, and trailers if there are any.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    data: Bytes,
    trailers: Option<HeaderMap>,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = std::mem::take(&mut self.data);
        let frame = match data.is_empty() {
            false => Some(Frame::data(data)),
            true => self.trailers.take().map(Frame::trailers),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // A usize has at most 64 bits.
        SizeHint::with_exact(self.data.len() as u64)
    }
}

/// An answer with a status, one header and data.
fn response(
    status: StatusCode,
    header: (HeaderName, &'static str),
    data: Bytes,
) -> Response<Reply> {
    let mut response = Response::new(Reply {
        data,
        trailers: None,
    });
    *response.status_mut() = status;
    let (name, value) = header;
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    response
}

/// The answer with a message.
pub(super) fn message(protocol: Protocol, message: Bytes) -> Response<Reply> {
    let content_type = (CONTENT_TYPE, protocol.content_type());
    match protocol {
        Protocol::Connect => response(StatusCode::OK, content_type, message),
        Protocol::Grpc => {
            let mut response = response(StatusCode::OK, content_type, frame::frame(&message));
            response.body_mut().trailers = Some(status::ok());
            response
        }
    }
}

/// The answer with an error.
pub(super) fn error(protocol: Protocol, error: &RpcError) -> Response<Reply> {
    match protocol {
        // Without a message, the status is in the header ("Trailers-Only").
        Protocol::Grpc => {
            let content_type = (CONTENT_TYPE, protocol.content_type());
            let mut response = response(StatusCode::OK, content_type, Bytes::new());
            status::write(error, response.headers_mut());
            response
        }
        Protocol::Connect => {
            let status = StatusCode::from_u16(error.code.http_status());
            json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error)
        }
    }
}

/// An error of Connect, which is JSON whatever the request was.
fn json(status: StatusCode, error: &RpcError) -> Response<Reply> {
    let RpcError { code, message } = error;
    let body = serde_json::json!({"code": code.name(), "message": message});
    let content_type = (CONTENT_TYPE, "application/json");
    response(status, content_type, body.to_string().into())
}

/// The answer to a request by Connect, or by no protocol, for a method that there is not.
pub(super) fn not_found(path: &str) -> Response<Reply> {
    let message = format!("method not found: {path}");
    json(
        StatusCode::NOT_FOUND,
        &RpcError::new(Code::Unimplemented, message),
    )
}

/// The answer to a request with another HTTP method than POST.
pub(super) fn only_post() -> Response<Reply> {
    response(
        StatusCode::METHOD_NOT_ALLOWED,
        (ALLOW, "POST"),
        Bytes::new(),
    )
}

/// The answer to a request with a content type that is not answered.
pub(super) fn unsupported(content: Content) -> Response<Reply> {
    if content == Content::OtherGrpc {
        let unsupported = RpcError::new(Code::Unimplemented, "unsupported content type");
        return error(Protocol::Grpc, &unsupported);
    }
    let accept = (HeaderName::from_static("accept-post"), ACCEPTED);
    response(StatusCode::UNSUPPORTED_MEDIA_TYPE, accept, Bytes::new())
}
