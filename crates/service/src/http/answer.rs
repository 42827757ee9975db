//! Answers to requests.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

/// An error as text.
#[derive(Debug)]
pub(super) struct TextError(pub StatusCode, pub String);

/// An error as JSON.
#[derive(Debug)]
pub(super) struct JsonError(pub StatusCode, pub String);

impl IntoResponse for TextError {
    fn into_response(self) -> Response {
        text(self.0, self.1)
    }
}

impl IntoResponse for JsonError {
    fn into_response(self) -> Response {
        json(self.0, &json!({ "error": self.1 }))
    }
}

/// Text as it is.
pub(super) fn text(status: StatusCode, text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, kind, text).into_response()
}

/// A value as JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match serde_json::to_string(value) {
        Ok(text) => (status, kind, text + "\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
