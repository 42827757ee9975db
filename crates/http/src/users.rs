//! The user that a request comes from, by the token that it shows.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::answer::JsonError;

/// The users of a service.
pub trait Users {
    /// A user.
    type User;

    /// The user whose token this is.
    fn by_token(&self, token: &str) -> Option<Self::User>;

    /// Counts a wrong secret against the sender of a request ([`Attempts`](crate::Attempts)). If there
    /// were too many, returns how long that has to wait instead.
    fn count_wrong(&self, request: &Parts) -> Option<Duration>;
}

/// The user whose token a request has in its `Authorization` (RFC 6750, 2.1); `None` without that
/// header.
///
/// The token is looked at before anything else: valid ones are never counted nor delayed, whatever
/// others behind the same address have sent.
///
/// # Errors
/// [`AuthError`] if it is no user's.
pub fn by_bearer<U: Users>(users: &U, request: &Parts) -> Option<Result<U::User, AuthError>> {
    let value = request.headers.get(header::AUTHORIZATION)?;
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    Some(by_token(users, request, token.unwrap_or_default()))
}

/// The user whose token this is, which a request has shown elsewhere.
///
/// # Errors
/// [`AuthError`] if it is no user's.
pub fn by_token<U: Users>(users: &U, request: &Parts, token: &str) -> Result<U::User, AuthError> {
    let user = users.by_token(token);
    user.ok_or_else(|| AuthError::wrong(users, request, "The token is wrong"))
}

/// Why it is not known who a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthError {
    /// Nothing, or the wrong thing, says who it is.
    Refused(String),
    /// The address sent too many wrong tokens, and has to wait.
    TooMany(Duration),
}

impl AuthError {
    /// The request shows nothing: it needs a token.
    #[must_use]
    pub fn missing() -> Self {
        Self::Refused("A token is needed: Authorization: Bearer TOKEN".to_owned())
    }

    /// The request shows a wrong secret, which is counted against its address.
    pub fn wrong<U: Users>(users: &U, request: &Parts, reason: &str) -> Self {
        match users.count_wrong(request) {
            None => Self::Refused(reason.to_owned()),
            Some(wait) => Self::TooMany(wait),
        }
    }

    /// The answer, of which `error` makes the body from status and text.
    pub fn answer<R: IntoResponse>(self, error: impl FnOnce(StatusCode, String) -> R) -> Response {
        match self {
            Self::Refused(reason) => error(StatusCode::UNAUTHORIZED, reason).into_response(),
            Self::TooMany(wait) => {
                let seconds = wait.as_secs().max(1);
                let reason = format!("Too many wrong tokens from this address: wait {seconds} s");
                let answer = error(StatusCode::TOO_MANY_REQUESTS, reason);
                ([(header::RETRY_AFTER, seconds.to_string())], answer).into_response()
            }
        }
    }
}

impl IntoResponse for AuthError {
    fn into_response(self) -> Response {
        self.answer(JsonError)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::Attempts;

    #[derive(Default)]
    struct Bob(Attempts);

    impl Users for Bob {
        type User = &'static str;

        fn by_token(&self, token: &str) -> Option<&'static str> {
            (token == "right").then_some("bob")
        }

        fn count_wrong(&self, _: &Parts) -> Option<Duration> {
            self.0.count([10, 0, 0, 1].into(), Duration::ZERO)
        }
    }

    fn parts(authorization: Option<&str>) -> Parts {
        let mut request = Request::builder();
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn valid_tokens_do_not_wait_for_wrong_ones() {
        let bob = Bob::default();
        assert_eq!(by_bearer(&bob, &parts(None)), None);
        let right = ["Bearer right", "bearer  right "];
        let wrong = ["Bearer wrong", "right", "Basic right", "Bearer"];
        let mut refused = 0;
        for round in 0..20 {
            for value in right {
                let user = by_bearer(&bob, &parts(Some(value)));
                assert_eq!(user, Some(Ok("bob")), "round {round}");
            }
            for value in wrong {
                let user = by_bearer(&bob, &parts(Some(value))).unwrap();
                match user.unwrap_err() {
                    AuthError::Refused(_) => refused += 1,
                    AuthError::TooMany(wait) => assert!(!wait.is_zero()),
                }
            }
        }
        assert_eq!(refused, 10);
    }

    #[test]
    fn who_has_to_wait_reads_for_how_long() {
        let answer = AuthError::TooMany(Duration::from_millis(5300)).into_response();
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers()[header::RETRY_AFTER], "5");
        let answer = AuthError::missing().into_response();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
}
