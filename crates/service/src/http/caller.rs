//! The user that a request comes from.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_http::Peer;

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

    /// The answer to a request that a web page makes in its visitor's name. Programs send none of
    /// these headers.
    pub fn refusal<B>(&self, request: &Request<B>) -> Option<Response> {
        let headers = request.headers();
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        let crossed = !matches!(site, None | Some(b"none" | b"same-origin"));
        // A page whose name was made to lead here sends its own name. Only without a token is
        // nothing else asked for.
        let foreign = self.may_be_anonymous && !names_this_host(headers);
        let from_page = crossed || headers.contains_key(header::ORIGIN) || foreign;
        let reason = "Requests from web pages are refused".to_owned();
        let path = request.uri().path();
        from_page.then(|| answer::error(path, StatusCode::FORBIDDEN, reason))
    }
}

/// Whether the request names this host by an address or as `localhost`.
fn names_this_host(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let ip = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || ip.parse::<std::net::IpAddr>().is_ok()
}

/// The user that a request comes from.
pub(super) struct Requester(pub User);

impl FromRequestParts<Service> for Requester {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Service,
    ) -> Result<Self, Self::Rejection> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.unwrap_or_default();
        let found = user(service, &caller, &parts.headers);
        found.map(Self).map_err(|(refusal, reason)| {
            let wait = match refusal {
                Refusal::Missing => None,
                Refusal::Wrong => caller.address.and_then(|from| service.wrong_token(from)),
            };
            let (status, reason) = match wait {
                None => (StatusCode::UNAUTHORIZED, reason),
                Some(seconds) => {
                    let reason =
                        format!("Too many wrong tokens from this address: wait {seconds} s");
                    (StatusCode::TOO_MANY_REQUESTS, reason)
                }
            };
            let answer = answer::error(parts.uri.path(), status, reason);
            match wait {
                None => answer,
                Some(seconds) => {
                    ([(header::RETRY_AFTER, seconds.to_string())], answer).into_response()
                }
            }
        })
    }
}

/// Why a request has no user.
enum Refusal {
    /// It names none.
    Missing,
    /// What it shows is wrong: that is counted against its address.
    Wrong,
}

fn user(
    service: &Service,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<User, (Refusal, String)> {
    let users = service.users();
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let token = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let user = token.and_then(|token| users.by_token(token));
        let wrong = || (Refusal::Wrong, "The token is wrong".to_owned());
        return user.cloned().ok_or_else(wrong);
    }
    if let Some(subject) = &caller.certificate {
        let user = users.by_certificate(subject);
        let unknown = format!("No user has the certificate {subject}");
        return user.cloned().ok_or((Refusal::Missing, unknown));
    }
    let user = users.anonymous().filter(|_| caller.may_be_anonymous);
    let needed = "A token is needed: Authorization: Bearer TOKEN";
    user.cloned()
        .ok_or_else(|| (Refusal::Missing, needed.to_owned()))
}
