//! Logging in by a page, and who one is.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::User;
use hawser_http::{JsonError, Peer, json, read_json};
use serde::Deserialize;
use serde_json::{Value, json as value};

use crate::answers::MAX_BODY;
use crate::app::App;
use crate::auth::{COOKIE, Caller, LIFETIME, Refusal, by_token, check_page};

/// The body of a login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

/// `POST /api/v1/session`: a token for a cookie.
pub(crate) async fn log_in(State(app): State<App>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    check_page(&app, &parts)?;
    let login: Login = read_json(body, MAX_BODY).await.map_err(JsonError::from)?;
    let user = by_token(&app, &parts, login.token.trim())?;
    let token = user
        .token
        .ok_or(Refusal::Unauthorized("The token is wrong"))?;
    let begun = app.sessions().begin(user.id, token, app.now());
    let cookie =
        begun.map_err(|reason| JsonError(StatusCode::SERVICE_UNAVAILABLE, reason.to_owned()))?;
    let peer = parts.extensions.get::<Peer>();
    let secure = peer.is_some_and(|peer| app.is_secure(peer.tls));
    let cookie = set_cookie(cookie.reveal(), LIFETIME.as_secs(), secure);
    let answer = json(StatusCode::OK, &me(&app, &user));
    Ok(([(header::SET_COOKIE, cookie)], answer).into_response())
}

fn me(app: &App, user: &User) -> Value {
    value!({ "id": user.id, "name": user.name, "role": user.role, "title": app.title(),
             "archives": app.configurations().is_some() })
}

fn set_cookie(text: &str, seconds: u64, secure: bool) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// `GET /api/v1/session`: who one is.
pub(crate) async fn show(State(app): State<App>, caller: Caller) -> Response {
    json(StatusCode::OK, &me(&app, &caller.user))
}

/// `DELETE /api/v1/session`: ends it.
pub(crate) async fn log_out(State(app): State<App>, request: Request) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    let caller = Caller::from_request_parts(&mut parts, &app).await?;
    if let Some(cookie) = &caller.cookie {
        app.sessions().end(cookie);
    }
    let peer = parts.extensions.get::<Peer>();
    let secure = peer.is_some_and(|peer| app.is_secure(peer.tls));
    let gone = [(header::SET_COOKIE, set_cookie("", 0, secure))];
    Ok((StatusCode::NO_CONTENT, gone).into_response())
}
