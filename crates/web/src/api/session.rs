//! Logging in by a page, and who one is.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::User;
use hawser_http::{JsonError, Peer, Unauthorized, by_token, json, read_json, set_session_cookie};
use serde::Deserialize;
use serde_json::{Value, json as value};

use crate::answers::MAX_BODY;
use crate::app::App;
use crate::auth::{Caller, Refusal, check_page};

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
    let wrong = || Unauthorized::Refused("The token is wrong".to_owned());
    let token = user.token.ok_or_else(wrong)?;
    let begun = app.sessions().begin(user.id, token, app.now());
    let cookie =
        begun.map_err(|reason| JsonError(StatusCode::SERVICE_UNAVAILABLE, reason.to_owned()))?;
    let peer = parts.extensions.get::<Peer>();
    let secure = peer.is_some_and(|peer| app.is_secure(peer.tls));
    let cookie = set_session_cookie(Some(&cookie), secure);
    let answer = json(StatusCode::OK, &me(&app, &user));
    Ok(([(header::SET_COOKIE, cookie)], answer).into_response())
}

fn me(app: &App, user: &User) -> Value {
    value!({ "id": user.id, "name": user.name, "role": user.role, "title": app.title(),
             "archives": app.configurations().is_some() })
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
    let gone = [(header::SET_COOKIE, set_session_cookie(None, secure))];
    Ok((StatusCode::NO_CONTENT, gone).into_response())
}
