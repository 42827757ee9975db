//! Authorization of requests: they must carry the token of the daemon, or the cookie of a page that did.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use hawser_http::{AuthError, Peer, Users, by_bearer, by_token, is_own_page, session_cookie};

use super::{Daemon, RPC};

/// The name of the session's cookie.
pub(super) const COOKIE: &str = "hawser_daemon";

/// A request with the token, or of a session.
pub(super) struct Authorized;

impl Users for Daemon {
    type User = ();

    fn by_token(&self, token: &str) -> Option<()> {
        (hawser_http::TokenHash::of(token) == self.inner.token).then_some(())
    }

    fn count_wrong(&self, request: &Parts) -> Option<Duration> {
        let peer = request.extensions.get::<Peer>()?;
        let attempts = &self.inner.attempts;
        attempts.count(peer.address.ip(), self.inner.began.elapsed())
    }
}

/// Programs for Transmission send user names and passwords (RFC 7617): the token is the password, of any
/// user.
fn password(request: &Parts) -> Option<String> {
    let value = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = BASE64.decode(encoded.trim().as_bytes()).unwrap_or_default();
    let text = String::from_utf8(decoded).unwrap_or_default();
    let password = text
        .split_once(':')
        .map(|(_, password)| password.to_owned());
    // A wrong form is a wrong token.
    Some(password.unwrap_or_default())
}

/// Looks for the cookie of a session. Browsers send it with requests of all pages: one from a page of another
/// site is refused before (`refuse_pages`), and one that changes something must be of the page itself.
fn by_session(daemon: &Daemon, request: &Parts) -> Result<(), AuthError> {
    let cookie = session_cookie(&request.headers, COOKIE).ok_or_else(AuthError::missing)?;
    let is_look = request.method == Method::GET || request.method == Method::HEAD;
    if !is_look && !is_own_page(&request.headers) {
        let reason = "Only the page itself makes changes by a session: send a token instead";
        return Err(AuthError::Refused(reason.to_owned()));
    }
    let inner = &daemon.inner;
    let is_it = |(): &(), token| (token == inner.token).then_some(());
    let found = inner.sessions.user(cookie, inner.began.elapsed(), is_it);
    let ended = || AuthError::Refused("The session has ended: sign in again".to_owned());
    found.ok_or_else(ended)
}

impl FromRequestParts<Daemon> for Authorized {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, daemon: &Daemon) -> Result<Self, Response> {
        let found = match password(parts) {
            Some(password) => by_token(daemon, parts, &password),
            None => by_bearer(daemon, parts).unwrap_or_else(|| by_session(daemon, parts)),
        };
        found.map(|()| Self).map_err(|error| {
            let mut answer = error.into_response();
            // Programs for Transmission send a password only where one is asked for.
            if parts.uri.path().starts_with(RPC) && answer.status() == StatusCode::UNAUTHORIZED {
                let scheme = HeaderValue::from_static("Basic realm=\"hawser\"");
                answer
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, scheme);
            }
            answer
        })
    }
}
