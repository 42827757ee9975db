//! Sessions of browsers: a cookie in place of the token.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};

use crate::token::{Token, TokenHash};

/// How long a session lasts without a request.
const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Most sessions; the one longest without a request ends for another.
const MAX_SESSIONS: usize = 10_000;

/// Sessions of users with names `U`, by the hash of what their cookies say. They end with the process.
/// Times count from any beginning.
#[derive(Debug)]
pub struct Sessions<U>(Mutex<HashMap<[u8; 32], Session<U>>>);

/// The token that began the session of a request, `None` if that has ended: an extension of requests of the own
/// page, for parts of a server that have no sessions themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedIn(pub Option<TokenHash>);

#[derive(Debug, Clone, Copy)]
struct Session<U> {
    user: U,
    /// The token that began it: it ends when that is replaced or revoked.
    token: TokenHash,
    seen: Duration,
}

impl<U> Default for Sessions<U> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<U> Sessions<U> {
    /// Begins a session of a user who showed a token. Returns what its cookie says.
    ///
    /// # Errors
    /// Why there is no random number.
    pub fn begin(&self, user: U, token: TokenHash, now: Duration) -> Result<Token, &'static str> {
        let cookie = Token::random()?;
        let mut sessions = self.lock();
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, session| now < session.seen + LIFETIME);
            let oldest = sessions.iter().min_by_key(|(_, session)| session.seen);
            let oldest = oldest.map(|(key, _)| *key);
            if let Some(oldest) = oldest.filter(|_| sessions.len() >= MAX_SESSIONS) {
                sessions.remove(&oldest);
            }
        }
        let session = Session {
            user,
            token,
            seen: now,
        };
        sessions.insert(cookie.hash().0, session);
        Ok(cookie)
    }

    /// The user of a session that goes on, as `find` finds the user whose token this still is; the
    /// session ends if there is none.
    pub fn user<T>(
        &self,
        cookie: &str,
        now: Duration,
        find: impl FnOnce(&U, TokenHash) -> Option<T>,
    ) -> Option<T> {
        let key = TokenHash::of(cookie).0;
        let mut sessions = self.lock();
        let session = sessions.get_mut(&key)?;
        let goes_on = now < session.seen + LIFETIME;
        let user = find(&session.user, session.token).filter(|_| goes_on);
        match &user {
            Some(_) => session.seen = now,
            None => drop(sessions.remove(&key)),
        }
        user
    }

    /// Whether a session goes on. Does not count as a request of it.
    pub fn is_open(&self, cookie: &str, now: Duration) -> bool {
        let sessions = self.lock();
        let session = sessions.get(&TokenHash::of(cookie).0);
        session.is_some_and(|session| now < session.seen + LIFETIME)
    }

    /// Ends a session.
    pub fn end(&self, cookie: &str) {
        self.lock().remove(&TokenHash::of(cookie).0);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session<U>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the session's cookie of a request says, if it has one. Each kind of server has a `name` for it of its
/// own: browsers send a cookie to all ports of a host.
#[must_use]
pub fn session_cookie<'a>(request: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = request.get_all(header::COOKIE).iter();
    let mut pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (of, value) = pair.trim().split_once('=')?;
        (of == name).then_some(value)
    })
}

/// The `Set-Cookie` with which a browser keeps a session under `name`, or forgets it for `None`; `secure` if it
/// reaches the service by TLS.
#[must_use]
pub fn set_session_cookie(name: &str, cookie: Option<&Token>, secure: bool) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let (text, seconds) = match cookie {
        Some(cookie) => (cookie.reveal(), LIFETIME.as_secs()),
        None => ("", 0),
    };
    let text =
        format!("{name}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_time_with_its_token_or_when_it_is_ended() {
        let sessions = Sessions::default();
        let token = TokenHash::of("bob");
        let at = |hours: u64| Duration::from_secs(hours * 3600);
        let begin = |hours| sessions.begin("bob", token, at(hours)).unwrap();
        let user = |cookie: &Token, hours, valid: TokenHash| {
            let find = |user: &&'static str, token| (token == valid).then_some(*user);
            sessions.user(cookie.reveal(), at(hours), find)
        };
        let first = begin(0);
        // Each request prolongs it.
        assert_eq!(user(&first, 11, token), Some("bob"));
        assert_eq!(user(&first, 22, token), Some("bob"));
        assert!(sessions.is_open(first.reveal(), at(33)));
        assert_eq!(user(&first, 34, token), None);
        let second = begin(0);
        assert_eq!(user(&second, 1, TokenHash::of("another")), None);
        assert_eq!(user(&second, 1, token), None);
        let third = begin(0);
        sessions.end(third.reveal());
        assert!(!sessions.is_open(third.reveal(), at(0)));
        assert_eq!(user(&third, 0, token), None);
    }

    #[test]
    fn the_session_longest_without_a_request_makes_room() {
        let sessions = Sessions::default();
        let token = TokenHash::of("bob");
        let seconds = Duration::from_secs;
        let first = sessions.begin(0, token, seconds(0)).unwrap();
        let second = sessions.begin(1, token, seconds(1)).unwrap();
        for user in 2..=MAX_SESSIONS {
            sessions.begin(user, token, seconds(2)).unwrap();
        }
        assert!(!sessions.is_open(first.reveal(), seconds(3)));
        assert!(sessions.is_open(second.reveal(), seconds(3)));
    }

    #[test]
    fn a_browser_sends_the_cookie_that_it_was_given() {
        let token = Token::random().unwrap();
        let set = set_session_cookie("one", Some(&token), true);
        let text = set.to_str().unwrap();
        assert!(text.ends_with("; Secure") && text.contains("HttpOnly; SameSite=Strict"));
        let pair = text.split(';').next().unwrap();
        let cookies = format!("theme=dark; {pair}; other=1");
        let request = HeaderMap::from_iter([(header::COOKIE, cookies.parse().unwrap())]);
        assert_eq!(session_cookie(&request, "one"), Some(token.reveal()));
        assert_eq!(session_cookie(&request, "other"), Some("1"));
        assert_eq!(session_cookie(&HeaderMap::new(), "one"), None);
        let gone = set_session_cookie("one", None, false);
        assert!(gone.to_str().unwrap().contains("Max-Age=0"));
    }
}
