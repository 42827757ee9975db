//! The user that a request comes from.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use hawser_http::{AuthError, NO_PAGES, Peer, SignedIn, TokenHash, by_bearer, may_be_from_page};

use super::answer;
use crate::service::Service;
use crate::users::User;

/// What the connection of a request shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Caller {
    /// Where it comes from.
    address: Option<IpAddr>,
    /// The subject of its certificate.
    certificate: Option<String>,
    /// Whether it may do without a token, if there is a user for that.
    may_be_anonymous: bool,
}

impl Caller {
    /// Of a request from `peer`, to a socket where requests may do without a token, or may not.
    pub fn new(peer: Option<&Peer>, may_be_anonymous: bool) -> Self {
        Self {
            address: peer.map(|peer| peer.address.ip()),
            certificate: peer.and_then(|peer| peer.certificate.clone()),
            may_be_anonymous,
        }
    }

    /// The answer to a request that a web page makes in its visitor's name, but for the own page.
    pub fn refusal<B>(&self, request: &Request<B>) -> Option<Response> {
        // The own page says that it is that, which no other can.
        if request.extensions().get::<SignedIn>().is_some() {
            return None;
        }
        // Only without a token is nothing else asked for.
        let from_page = may_be_from_page(request.headers(), self.may_be_anonymous);
        let (path, reason) = (request.uri().path(), NO_PAGES.to_owned());
        from_page.then(|| answer::error(path, StatusCode::FORBIDDEN, reason))
    }
}

/// The user that a request comes from.
pub(super) struct Requester(pub User);

impl hawser_http::Users for Service {
    type User = User;

    fn by_token(&self, token: &str) -> Option<User> {
        self.users().by_token(&TokenHash::of(token)).cloned()
    }

    fn count_wrong(&self, request: &Parts) -> Option<Duration> {
        let caller = request.extensions.get::<Caller>()?;
        self.wrong_token(caller.address?)
    }
}

impl FromRequestParts<Service> for Requester {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Service,
    ) -> Result<Self, Self::Rejection> {
        let found = user(service, parts);
        let error = |status, reason| answer::error(parts.uri.path(), status, reason);
        found.map(Self).map_err(|refusal| refusal.answer(error))
    }
}

fn user(service: &Service, request: &Parts) -> Result<User, AuthError> {
    if let Some(user) = by_bearer(service, request) {
        return user;
    }
    let (users, caller) = (service.users(), request.extensions.get::<Caller>());
    if let Some(SignedIn(token)) = request.extensions.get() {
        let ended = || AuthError::Refused("The session has ended: sign in again".to_owned());
        let user = token.as_ref().and_then(|token| users.by_token(token));
        return user.cloned().ok_or_else(ended);
    }
    if let Some(subject) = caller.and_then(|caller| caller.certificate.as_ref()) {
        let user = users.by_certificate(subject);
        let unknown = || AuthError::Refused(format!("No user has the certificate {subject}"));
        return user.cloned().ok_or_else(unknown);
    }
    let may_be_anonymous = caller.is_some_and(|caller| caller.may_be_anonymous);
    let user = users.anonymous().filter(|_| may_be_anonymous);
    user.cloned().ok_or_else(AuthError::missing)
}
