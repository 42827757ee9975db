//! Bodies of requests, of bounded length and time.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::answer::JsonError;
use crate::explain::explain;
use crate::strict;

/// Longest wait for a whole body: 64 KiB take less over any line that still works.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a body is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It is longer than what is read.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It did not arrive in time.
    #[error("the body did not arrive within {} s", BODY_TIMEOUT.as_secs())]
    TooSlow,
    /// It broke off.
    #[error("the body broke off: {0}")]
    Broken(String),
    /// It is not what is expected: which field, and what to write instead.
    #[error("the body: {0}")]
    Malformed(String),
}

impl BodyError {
    /// The status that says so.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl From<BodyError> for JsonError {
    fn from(error: BodyError) -> Self {
        Self(error.status(), error.to_string())
    }
}

impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        JsonError::from(self).into_response()
    }
}

/// Reads a body of at most `max` bytes, within ten seconds.
///
/// # Errors
/// [`BodyError`] when it is longer, slower, or breaks off.
pub async fn read_body(body: Body, max: usize) -> Result<Bytes, BodyError> {
    let whole = Limited::new(body, max).collect();
    let whole = tokio::time::timeout(BODY_TIMEOUT, whole).await;
    match whole.map_err(|_| BodyError::TooSlow)? {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLong(max)),
        Err(error) => Err(BodyError::Broken(error.to_string())),
    }
}

/// Reads a body of at most `max` bytes as JSON, in which objects are objects: a list of their fields is
/// refused.
///
/// # Errors
/// [`BodyError`] when it cannot be read, or is no such value.
pub async fn read_json<T: DeserializeOwned>(body: Body, max: usize) -> Result<T, BodyError> {
    let bytes = read_body(body, max).await?;
    strict::from_slice(&bytes).map_err(|error| BodyError::Malformed(explain::<T>(&bytes, &error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_read_up_to_its_bound() {
        let read = |text: &'static str| read_body(Body::from(text), 4);
        assert_eq!(read("1234").await.unwrap(), "1234");
        let error = read("12345").await.unwrap_err();
        assert_eq!(error.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(error.to_string(), "the body is longer than 4 bytes");
        let error = read_json::<u8>(Body::from("x"), 4).await.unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
        assert_eq!(read_json::<u8>(Body::from("7"), 4).await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = Body::new(http_body_util::StreamBody::new(Never));
        let error = read_body(never, 4).await.unwrap_err();
        assert_eq!(error.status(), StatusCode::REQUEST_TIMEOUT);
    }

    /// A body of which nothing arrives.
    struct Never;

    impl futures_core::Stream for Never {
        type Item = Result<hyper::body::Frame<Bytes>, std::io::Error>;

        fn poll_next(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            std::task::Poll::Pending
        }
    }
}
