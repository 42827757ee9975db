//! Answers to requests.

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use serde::Serialize;
use utoipa::ToSchema;

/// Most bytes of the text of an error.
const MAX_REASON: usize = 1 << 14;

/// An error as JSON: `{"error": "..."}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError(pub StatusCode, pub String);

/// The body of an answer that is an error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody {
    /// Why.
    error: String,
}

impl IntoResponse for JsonError {
    fn into_response(self) -> Response {
        json(self.0, &ErrorBody { error: self.1 })
    }
}

/// Has errors that are answered as text, as by extractors and routers, answered as JSON; for
/// [`from_fn`](axum::middleware::from_fn).
pub async fn json_errors(request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    let status = answer.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_error || is_json {
        return answer;
    }
    let (head, body) = answer.into_parts();
    let text = match Limited::new(body, MAX_REASON).collect().await {
        Ok(text) => String::from_utf8_lossy(&text.to_bytes()).trim().to_owned(),
        Err(_) => String::new(),
    };
    let reason = match (text.is_empty(), status) {
        (false, _) => text,
        (true, StatusCode::METHOD_NOT_ALLOWED) => "this path does not have this method".to_owned(),
        (true, status) => status
            .canonical_reason()
            .unwrap_or("refused")
            .to_lowercase(),
    };
    let mut answer = JsonError(status, reason).into_response();
    // Such as `Allow`.
    for (name, value) in &head.headers {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            answer.headers_mut().append(name, value.clone());
        }
    }
    answer
}

/// Has a 401 say how to authenticate, as RFC 9110, 15.5.2, demands of each. All services take tokens.
pub(crate) fn challenge(answer: &mut Response) {
    let is_refusal = answer.status() == StatusCode::UNAUTHORIZED;
    if is_refusal && !answer.headers().contains_key(header::WWW_AUTHENTICATE) {
        let scheme = HeaderValue::from_static("Bearer");
        answer
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme);
    }
}

/// The answer of a service with an API for any path that is not served.
pub async fn nothing() -> JsonError {
    let reason = "there is nothing at this path: see /api/v1/openapi.json";
    JsonError(StatusCode::NOT_FOUND, reason.to_owned())
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

/// [`Metrics`](crate::Metrics), as an answer.
#[must_use]
pub fn prometheus(text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, text).into_response()
}
