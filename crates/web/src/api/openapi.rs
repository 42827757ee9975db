//! The description of the API.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// The description, as OpenAPI 3.1.
pub(crate) const TEXT: &str = include_str!("../openapi.json");

/// `GET /api/v1/openapi.json`
pub(crate) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT).into_response()
}
