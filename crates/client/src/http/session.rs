//! Signing in by the page: the token for a cookie.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_http::describe::ReadsBody;
use hawser_http::{
    JsonError, TokenHash, by_token, json, read_json, session_cookie, set_session_cookie,
};

use super::access::Access;
use super::body::{Session, SignIn};
use super::caller::{Authorized, COOKIE, refused};
use super::describe::Refused;
use super::{Daemon, is_tls};

/// Longest body of a sign-in, in bytes.
const MAX_BODY: usize = 4096;

fn session() -> Session {
    Session {
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Sign in by a page: the token for a cookie
///
/// A page of this server sends the headers `Origin` and `X-Hawser-Page`.
#[utoipa::path(
    post, path = "/session", operation_id = "sign_in", security(), request_body = SignIn,
    responses(
        (status = 200, body = Session, headers(("Set-Cookie" = String)),
            description = "The cookie lasts for 12 hours without a request, and until the daemon ends"),
        (status = 503, response = hawser_http::describe::NotStored),
        Refused, ReadsBody,
    ),
)]
pub(super) async fn sign_in(
    State(daemon): State<Daemon>,
    request: Request,
) -> Result<Response, Response> {
    let (parts, body) = request.into_parts();
    let body: SignIn = read_json(body, MAX_BODY)
        .await
        .map_err(|error| JsonError::from(error).into_response())?;
    let token = body.token.trim();
    let shown = by_token(&daemon, &parts, token);
    if shown.map_err(IntoResponse::into_response)? == Access::Refused {
        return Err(refused().into_response());
    }
    let (inner, token) = (&daemon.inner, TokenHash::of(token));
    let begun = inner.sessions.begin((), token, inner.began.elapsed());
    let cookie = begun.map_err(|reason| {
        JsonError(StatusCode::SERVICE_UNAVAILABLE, reason.to_owned()).into_response()
    })?;
    let cookie = set_session_cookie(COOKIE, Some(&cookie), is_tls(&parts.extensions));
    let answer = json(StatusCode::OK, &session());
    Ok(([(header::SET_COOKIE, cookie)], answer).into_response())
}

/// Whether one is signed in
#[utoipa::path(
    get, path = "/session", operation_id = "show_session",
    responses((status = 200, description = "One is", body = Session), Refused),
)]
pub(super) async fn show(_: Authorized) -> Response {
    json(StatusCode::OK, &session())
}

/// End the session of the page
#[utoipa::path(
    delete, path = "/session", operation_id = "sign_out",
    responses(
        (status = 204, description = "It has ended", headers(("Set-Cookie" = String))),
        Refused,
    ),
)]
pub(super) async fn sign_out(
    State(daemon): State<Daemon>,
    request: Request,
) -> Result<Response, Response> {
    let (mut parts, _) = request.into_parts();
    Authorized::from_request_parts(&mut parts, &daemon).await?;
    if let Some(cookie) = session_cookie(&parts.headers, COOKIE) {
        daemon.inner.sessions.end(cookie);
    }
    let gone = set_session_cookie(COOKIE, None, is_tls(&parts.extensions));
    let gone = [(header::SET_COOKIE, gone)];
    Ok((StatusCode::NO_CONTENT, gone).into_response())
}
