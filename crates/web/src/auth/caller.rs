//! The user that a request comes from.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::{Actor, User};
use hawser_http::{JsonError, Peer};

use super::sessions::COOKIE;
use crate::app::App;

/// The header that our own page sends with each request. Pages of others cannot send it: a browser
/// asks us first, and gets no answer.
const PAGE_HEADER: &str = "x-hawser-page";

/// The user that a request comes from.
#[derive(Clone)]
pub(crate) struct Caller {
    pub user: User,
    /// What the session's cookie says, if it came by one.
    pub cookie: Option<String>,
}

impl Caller {
    pub fn actor(&self) -> Actor {
        Actor::of(&self.user)
    }
}

impl Caller {
    /// Whether what the request has shown still stands for the same user in the same role: the user
    /// was not removed or given another role, the token not replaced or revoked, and the session not
    /// ended.
    pub fn is_still(&self, app: &App) -> bool {
        let state = app.coordinator().state();
        let same = |user: &User| (user.token, user.role) == (self.user.token, self.user.role);
        let mut cookies = self.cookie.iter();
        state.users.get(&self.user.id).is_some_and(same)
            && cookies.all(|cookie| app.sessions().is_open(cookie, app.now()))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        if let Some(value) = parts.headers.get(header::AUTHORIZATION) {
            let token = value.to_str().ok().and_then(|value| {
                let (scheme, token) = value.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
            });
            let user = by_token(app, parts, token.unwrap_or_default())?;
            return Ok(Self { user, cookie: None });
        }
        let Some(cookie) = cookie(&parts.headers) else {
            return Err(Refusal::Unauthorized(
                "A token is needed: Authorization: Bearer TOKEN",
            ));
        };
        let state = app.coordinator().state();
        let user = app.sessions().user(cookie, &state, app.now());
        let user = user.ok_or(Refusal::Unauthorized("The session has ended: log in again"))?;
        // A cookie is sent by the browser whoever made the request.
        if parts.method != Method::GET && parts.method != Method::HEAD {
            check_page(app, parts)?;
        }
        let cookie = Some(cookie.to_owned());
        Ok(Self { user, cookie })
    }
}

/// Why it is not known who a request comes from.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing, or the wrong thing, says who it is.
    Unauthorized(&'static str),
    /// The address sent too many wrong tokens, and has to wait.
    TooMany(Duration),
    /// Something else is wrong.
    Other(JsonError),
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        Self::Other(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthorized(reason) => {
                JsonError(StatusCode::UNAUTHORIZED, reason.to_owned()).into_response()
            }
            Self::TooMany(wait) => {
                let seconds = wait.as_secs().max(1);
                let reason = format!("Too many wrong tokens from this address: wait {seconds} s");
                let answer = JsonError(StatusCode::TOO_MANY_REQUESTS, reason);
                ([(header::RETRY_AFTER, seconds.to_string())], answer).into_response()
            }
            Self::Other(error) => error.into_response(),
        }
    }
}

/// The user whose token this is; wrong ones are counted.
pub(crate) fn by_token(app: &App, parts: &Parts, token: &str) -> Result<User, Refusal> {
    let user = app.coordinator().user_of(token);
    user.ok_or_else(|| refuse(app, parts, "The token is wrong"))
}

/// Refuses a request with a wrong secret, and counts it against its address. Right ones are never
/// counted nor delayed: others behind the same address may send wrong ones.
pub(crate) fn refuse(app: &App, parts: &Parts, reason: &'static str) -> Refusal {
    let Some(peer) = parts.extensions.get::<Peer>() else {
        return Refusal::Unauthorized(reason);
    };
    let (address, now) = (app.client(peer.address, &parts.headers), app.now());
    if let Some(wait) = app.attempts().wait(address, now) {
        return Refusal::TooMany(wait);
    }
    app.attempts().wrong(address, now);
    Refusal::Unauthorized(reason)
}

/// Refuses a request that a page of another origin made.
pub(crate) fn check_page(app: &App, parts: &Parts) -> Result<(), JsonError> {
    let headers = &parts.headers;
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let tls = parts.extensions.get::<Peer>().is_some_and(|peer| peer.tls);
    let origin = text(header::ORIGIN);
    let is_own = origin.is_some_and(|origin| app.is_own(origin, text(header::HOST), tls));
    match is_own && headers.contains_key(PAGE_HEADER) {
        true => Ok(()),
        false => Err(JsonError(
            StatusCode::FORBIDDEN,
            "Only the page itself makes changes by a session: send a token instead".to_owned(),
        )),
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE).then_some(value)
    })
}
