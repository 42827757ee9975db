//! Transmission's RPC over HTTP.

use std::sync::PoisonError;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_http::{JsonError, read_body};
use hawser_transmission::{Challenge, MAX_BODY, SESSION_ID_HEADER, answer};
use tokio::runtime::Handle;

use super::Daemon;
use super::caller::Authorized;
use crate::rpc::Rpc;

/// Answers a request: 409 with the id of the session if it has none, else as the body says.
pub(super) async fn call(
    State(daemon): State<Daemon>,
    _: Authorized,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, JsonError> {
    let id = headers
        .get(SESSION_ID_HEADER)
        .and_then(|id| id.to_str().ok());
    let session_id = match check(&daemon, id) {
        Ok(session_id) => session_id,
        Err(challenge) => return Ok(refuse(&challenge)),
    };
    if method != Method::POST {
        let reason = "the RPC takes POST".to_owned();
        return Err(JsonError(StatusCode::METHOD_NOT_ALLOWED, reason));
    }
    let body = read_body(body, MAX_BODY).await?;
    let runtime = Handle::current();
    let answered = tokio::task::spawn_blocking(move || {
        let mut rpc = Rpc::new(
            &daemon.inner.client,
            &daemon.inner.addresses,
            &daemon.inner.stop,
            runtime,
        );
        answer(&body, &session_id, &mut rpc)
    });
    let failed = |error: tokio::task::JoinError| {
        JsonError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    };
    Ok(match answered.await.map_err(failed)? {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
    })
}

/// Checks the id of the session, and returns the current one.
fn check(daemon: &Daemon, id: Option<&str>) -> Result<String, Challenge> {
    let mut guard = daemon
        .inner
        .rpc
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let (session, rng) = &mut *guard;
    session.check(id, daemon.inner.began.elapsed(), rng)?;
    Ok(session.id().to_owned())
}

fn refuse(challenge: &Challenge) -> Response {
    let status = StatusCode::from_u16(Challenge::STATUS).unwrap_or(StatusCode::CONFLICT);
    (status, challenge.headers(), challenge.body()).into_response()
}
