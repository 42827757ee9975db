//! Answers to requests.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// An error as text.
#[derive(Debug)]
pub(super) struct TextError(pub StatusCode, pub String);

impl IntoResponse for TextError {
    fn into_response(self) -> Response {
        text(self.0, self.1)
    }
}

/// Text as it is.
pub(super) fn text(status: StatusCode, text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, kind, text).into_response()
}
