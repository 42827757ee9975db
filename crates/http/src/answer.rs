//! Answers to requests.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// An error as JSON: `{"error": "..."}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError(pub StatusCode, pub String);

/// The body of a [`JsonError`].
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}

impl IntoResponse for JsonError {
    fn into_response(self) -> Response {
        json(self.0, &ErrorBody { error: &self.1 })
    }
}

/// A value as JSON, with a line break at its end.
#[must_use]
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match serde_json::to_string(value) {
        Ok(text) => (status, kind, text + "\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Metrics in Prometheus' text format.
#[must_use]
pub fn prometheus(text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, text).into_response()
}
