//! Authorization of requests: they must carry the token of a user that may command the torrents, the cookie of
//! a page that did, or come over a connection with the certificate of one.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use hawser_http::{
    AuthError, JsonError, Peer, TokenHash, Users, by_bearer, by_token, is_own_page, session_cookie,
};

use super::access::Access;
use super::{Daemon, RPC, is_tls};

/// The name of the session's cookie.
pub(super) const COOKIE: &str = "hawser_daemon";

/// A request of a user that may command the torrents.
pub(super) struct Authorized;

impl Users for Daemon {
    type User = Access;

    fn by_token(&self, token: &str) -> Option<Access> {
        self.inner.callers.by_token(&TokenHash::of(token))
    }

    fn count_wrong(&self, request: &Parts) -> Option<Duration> {
        let peer = request.extensions.get::<Peer>()?;
        self.inner.callers.count_wrong(peer.address.ip())
    }
}

/// What one that is known and may not command the torrents is answered.
pub(super) fn refused() -> JsonError {
    let reason = "This user does not command torrents: `torrents = true` in the user's section of the \
         daemon's configuration allows it";
    JsonError(StatusCode::FORBIDDEN, reason.to_owned())
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
fn by_session(daemon: &Daemon, request: &Parts, cookie: &str) -> Result<Access, AuthError> {
    let is_look = request.method == Method::GET || request.method == Method::HEAD;
    if !is_look && !is_own_page(&request.headers, is_tls(&request.extensions)) {
        let reason = "Only the page itself makes changes by a session: send a token instead";
        return Err(AuthError::Refused(reason.to_owned()));
    }
    let inner = &daemon.inner;
    let access = |(): &(), token| inner.callers.by_token(&token);
    let found = inner.sessions.user(cookie, inner.began.elapsed(), access);
    let ended = || AuthError::Refused("The session has ended: sign in again".to_owned());
    found.ok_or_else(ended)
}

/// What the sender of a request may do, by the first of these that it shows: a token, the cookie of a session, a
/// certificate.
fn access(daemon: &Daemon, request: &Parts) -> Result<Access, AuthError> {
    if let Some(password) = password(request) {
        return by_token(daemon, request, &password);
    }
    if let Some(found) = by_bearer(daemon, request) {
        return found;
    }
    if let Some(cookie) = session_cookie(&request.headers, COOKIE) {
        return by_session(daemon, request, cookie);
    }
    let peer = request.extensions.get::<Peer>();
    let subject = peer.and_then(|peer| peer.certificate.as_deref());
    let subject = subject.ok_or_else(AuthError::missing)?;
    let unknown = || AuthError::Refused(format!("No user has the certificate {subject}"));
    daemon
        .inner
        .callers
        .by_certificate(subject)
        .ok_or_else(unknown)
}

impl FromRequestParts<Daemon> for Authorized {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, daemon: &Daemon) -> Result<Self, Response> {
        let found = match access(daemon, parts) {
            Ok(Access::Refused) => return Err(refused().into_response()),
            found => found,
        };
        found.map(|_| Self).map_err(|error| {
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
