//! When a connection is busy with a request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};

use crate::admission::Admitted;

/// The body of a request. The connection waits until all of it has arrived, and is busy then.
pub(crate) struct RequestBody {
    body: Incoming,
    connection: Arc<Admitted>,
}

impl RequestBody {
    pub fn new(body: Incoming, connection: Arc<Admitted>) -> Self {
        connection.set_busy(body.is_end_stream());
        Self { body, connection }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.connection.set_busy(true);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. When it was sent, or is not wanted, the connection waits for a request again.
struct ResponseBody {
    body: Body,
    connection: Arc<Admitted>,
}

/// Has the connection wait again once `answer` was sent.
pub(crate) fn watched(answer: Response, connection: Arc<Admitted>) -> Response {
    // An answer may come before all of the request has.
    connection.set_busy(true);
    answer.map(|body| Body::new(ResponseBody { body, connection }))
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.connection.set_busy(false);
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
