//! The user that a request comes from.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::{Actor, User};
use hawser_http::{AuthError, JsonError, PAGE_HEADER, Peer, Users, by_bearer, session_cookie};

use crate::app::App;

/// The name of the session's cookie.
pub(crate) const SESSION_COOKIE: &str = "hawser_session";

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
        if let Some(user) = by_bearer(app, parts) {
            let (user, cookie) = (user?, None);
            return Ok(Self { user, cookie });
        }
        let cookie =
            session_cookie(&parts.headers, SESSION_COOKIE).ok_or_else(AuthError::missing)?;
        let state = app.coordinator().state();
        let user = app.sessions().user(cookie, app.now(), |user, token| {
            let user = state.users.get(user);
            user.filter(|user| user.token == Some(token)).cloned()
        });
        let ended = || AuthError::Refused("The session has ended: log in again".to_owned());
        let user = user.ok_or_else(ended)?;
        // The browser sends a cookie with the requests of other pages, too.
        if parts.method != Method::GET && parts.method != Method::HEAD {
            check_page(app, parts)?;
        }
        let cookie = Some(cookie.to_owned());
        Ok(Self { user, cookie })
    }
}

/// Why a request is refused before it is looked at.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It is not known who it comes from.
    Unauthorized(AuthError),
    /// Something else is wrong.
    Other(JsonError),
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        Self::Unauthorized(error)
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        Self::Other(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthorized(error) => error.into_response(),
            Self::Other(error) => error.into_response(),
        }
    }
}

impl Users for App {
    type User = User;

    fn by_token(&self, token: &str) -> Option<User> {
        self.coordinator().user_of(token)
    }

    fn count_wrong(&self, request: &Parts) -> Option<Duration> {
        let peer = request.extensions.get::<Peer>()?;
        let address = self.client(peer.address, &request.headers);
        self.attempts().count(address, self.now())
    }
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
