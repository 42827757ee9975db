//! Logging in by a page, and who one is.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::{Role, User};
use hawser_http::describe::{ErrorBody, Forbidden, NeedsUser, ReadsBody};
use hawser_http::{AuthError, JsonError, Peer, by_token, json, read_json, set_session_cookie};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answers::MAX_BODY;
use crate::app::App;
use crate::auth::{Caller, Refusal, SESSION_COOKIE, check_page};

/// The body of a login.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    token: String,
}

/// Who one is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Me<'a> {
    id: u64,
    name: &'a str,
    role: Role,
    /// What pages are headed.
    title: &'a str,
    /// Whether this server makes the archives of ASes: `hawser coordinator` does, `--limits-only`
    /// does not.
    archives: bool,
}

impl<'a> Me<'a> {
    fn new(app: &'a App, user: &'a User) -> Self {
        Self {
            id: user.id.0,
            name: &user.name,
            role: user.role,
            title: app.title(),
            archives: app.configurations().is_some(),
        }
    }
}

/// Log in by a page: a token for a cookie
///
/// Needs the headers `Origin` and `X-Hawser-Page`.
#[utoipa::path(
    post, path = "/api/v1/session", security(),
    request_body = Login,
    responses(
        (status = 200, body = Me, headers(("Set-Cookie" = String)),
            description = "The user; Set-Cookie has the session"),
        (status = 503, description = "There are too many sessions", body = ErrorBody),
        NeedsUser, ReadsBody,
        (status = 403, response = Forbidden),
    ),
)]
pub(crate) async fn log_in(State(app): State<App>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    check_page(&app, &parts)?;
    let login: Login = read_json(body, MAX_BODY).await.map_err(JsonError::from)?;
    let user = by_token(&app, &parts, login.token.trim())?;
    let wrong = || AuthError::Refused("The token is wrong".to_owned());
    let token = user.token.ok_or_else(wrong)?;
    let begun = app.sessions().begin(user.id, token, app.now());
    let cookie =
        begun.map_err(|reason| JsonError(StatusCode::SERVICE_UNAVAILABLE, reason.to_owned()))?;
    let peer = parts.extensions.get::<Peer>();
    let secure = peer.is_some_and(|peer| app.is_secure(peer.tls));
    let cookie = set_session_cookie(SESSION_COOKIE, Some(&cookie), secure);
    let answer = json(StatusCode::OK, &Me::new(&app, &user));
    Ok(([(header::SET_COOKIE, cookie)], answer).into_response())
}

/// Who one is
#[utoipa::path(
    get, path = "/api/v1/session", operation_id = "show_session",
    responses((status = 200, description = "The user", body = Me), NeedsUser),
)]
pub(crate) async fn show(State(app): State<App>, caller: Caller) -> Response {
    json(StatusCode::OK, &Me::new(&app, &caller.user))
}

/// End the session
#[utoipa::path(
    delete, path = "/api/v1/session",
    responses(
        (status = 204, description = "It has ended", headers(("Set-Cookie" = String))),
        NeedsUser,
        (status = 403, response = Forbidden),
    ),
)]
pub(crate) async fn log_out(State(app): State<App>, request: Request) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    let caller = Caller::from_request_parts(&mut parts, &app).await?;
    if let Some(cookie) = &caller.cookie {
        app.sessions().end(cookie);
    }
    let peer = parts.extensions.get::<Peer>();
    let secure = peer.is_some_and(|peer| app.is_secure(peer.tls));
    let gone = [(
        header::SET_COOKIE,
        set_session_cookie(SESSION_COOKIE, None, secure),
    )];
    Ok((StatusCode::NO_CONTENT, gone).into_response())
}
