//! Sessions of browsers: a cookie in place of the token.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hawser_coordinator::{State, User, UserId};
use hawser_http::{Token, TokenHash};

/// The name of the cookie.
pub(crate) const COOKIE: &str = "hawser_session";
/// How long a session lasts without a request.
pub(crate) const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Most sessions; the one longest without a request ends for another.
const SESSIONS: usize = 10_000;

/// Sessions, by the hash of what their cookies say. They end with the process.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

#[derive(Debug, Clone, Copy)]
struct Session {
    user: UserId,
    /// The token that began it: it ends when that is replaced or revoked.
    token: TokenHash,
    seen: Duration,
}

impl Sessions {
    /// Begins a session of a user who showed a token. Returns what its cookie says.
    pub fn begin(
        &self,
        user: UserId,
        token: TokenHash,
        now: Duration,
    ) -> Result<Token, &'static str> {
        let cookie = Token::random()?;
        let mut sessions = self.lock();
        if sessions.len() >= SESSIONS {
            sessions.retain(|_, session| now < session.seen + LIFETIME);
            let oldest = sessions.iter().min_by_key(|(_, session)| session.seen);
            let oldest = oldest.map(|(key, _)| *key);
            if let Some(oldest) = oldest.filter(|_| sessions.len() >= SESSIONS) {
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

    /// The user of a session that goes on.
    pub fn user(&self, cookie: &str, state: &State, now: Duration) -> Option<User> {
        let key = TokenHash::of(cookie).0;
        let mut sessions = self.lock();
        let session = sessions.get_mut(&key)?;
        let user = state.users.get(&session.user);
        let user = user.filter(|user| user.token == Some(session.token));
        match user.filter(|_| now < session.seen + LIFETIME) {
            Some(user) => {
                session.seen = now;
                Some(user.clone())
            }
            None => {
                sessions.remove(&key);
                None
            }
        }
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

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
