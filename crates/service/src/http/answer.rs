//! Answers to requests.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_http::JsonError;
use utoipa::ToSchema;

/// The paths of Hercules' monitor, whose errors are text as its other answers are.
pub(super) const TEXT_PATHS: [&str; 5] = ["/submit", "/status", "/cancel", "/stat", "/server"];

/// An error of a request to `path`, in the form that its other answers have.
pub(super) fn error(path: &str, status: StatusCode, reason: String) -> Response {
    match TEXT_PATHS.contains(&path) {
        true => TextError(status, reason + "\n").into_response(),
        false => JsonError(status, reason).into_response(),
    }
}

/// An error as text.
#[derive(Debug)]
pub(super) struct TextError(pub StatusCode, pub String);

impl IntoResponse for TextError {
    fn into_response(self) -> Response {
        text(self.0, self.1)
    }
}

/// A line of text: all that the monitor's plug-in reads of it.
#[derive(Debug, ToSchema)]
#[schema(max_length = 99)]
pub(super) struct Line(pub String);

impl IntoResponse for Line {
    fn into_response(self) -> Response {
        text(StatusCode::OK, self.0)
    }
}

/// Text as it is.
fn text(status: StatusCode, text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, kind, text).into_response()
}
