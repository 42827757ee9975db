//! Protection against requests that a page in a browser makes in its user's name (CSRF).

use std::mem;
use std::time::Duration;

use fastrand::Rng;

use crate::limits::RPC_VERSION;

/// The header that carries a session's id, in requests and in the answer to one without it.
pub const SESSION_ID_HEADER: &str = "X-Transmission-Session-Id";

/// The header of a challenge that tells a client the version of the RPC: one that knows JSON-RPC
/// takes to it.
pub const RPC_VERSION_HEADER: &str = "X-Transmission-Rpc-Version";

/// How long an id is the current one.
const ID_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Characters of an id, as many as Transmission's have.
const ID_LENGTH: usize = 48;

/// The ids that requests must carry. A page of another origin cannot read them.
#[derive(Debug)]
pub struct Session {
    current: String,
    /// The one before, so that a client does not get two challenges within moments.
    previous: Option<String>,
    /// When the current one was made.
    since: Duration,
}

impl Session {
    /// A session that begins at `now`, a time since any fixed start. The seed of `rng` must be
    /// secret: the ids depend on nothing else.
    pub fn new(now: Duration, rng: &mut Rng) -> Self {
        Self {
            current: random(rng),
            previous: None,
            since: now,
        }
    }

    /// Checks the value of [`SESSION_ID_HEADER`] in a request, for every method of HTTP, before
    /// anything of the request but its password has an effect.
    ///
    /// An id is the current one for an hour, and valid for another one.
    ///
    /// # Errors
    /// What to answer if the header is missing or has another value.
    pub fn check(
        &mut self,
        header: Option<&str>,
        now: Duration,
        rng: &mut Rng,
    ) -> Result<(), Challenge> {
        self.renew(now, rng);
        let is = |id: &str| header.is_some_and(|header| equal(header.trim(), id));
        if is(&self.current) || self.previous.as_deref().is_some_and(is) {
            return Ok(());
        }
        Err(Challenge {
            session_id: self.current.clone(),
        })
    }

    /// The current id, which `session-get` tells.
    pub fn id(&self) -> &str {
        &self.current
    }

    fn renew(&mut self, now: Duration, rng: &mut Rng) {
        let age = now.saturating_sub(self.since);
        if age < ID_LIFETIME {
            return;
        }
        let previous = mem::replace(&mut self.current, random(rng));
        self.previous = (age < 2 * ID_LIFETIME).then_some(previous);
        self.since = now;
    }
}

/// The answer to a request without a valid id: status 409, these headers and this body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    session_id: String,
}

impl Challenge {
    /// Its status of HTTP.
    pub const STATUS: u16 = 409;

    /// The id with which to send the request again.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Its headers.
    pub fn headers(&self) -> [(&'static str, &str); 3] {
        [
            (SESSION_ID_HEADER, &self.session_id),
            (RPC_VERSION_HEADER, RPC_VERSION),
            ("Content-Type", "text/html; charset=utf-8"),
        ]
    }

    /// Its body. There are clients that look for the id in it.
    pub fn body(&self) -> String {
        let id = &self.session_id;
        format!(
            "<h1>409: Conflict</h1><p>This request has no valid session id. Send it again with this \
             header:</p><p><code>{SESSION_ID_HEADER}: {id}</code></p>"
        )
    }
}

fn random(rng: &mut Rng) -> String {
    (0..ID_LENGTH).map(|_| rng.alphanumeric()).collect()
}

/// Compares in a time that does not depend on where two texts differ.
fn equal(a: &str, b: &str) -> bool {
    let differences = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = ID_LIFETIME;

    #[test]
    fn a_request_needs_the_id_that_a_challenge_tells() {
        let mut rng = Rng::with_seed(1);
        let mut session = Session::new(HOUR, &mut rng);
        let challenge = session.check(None, HOUR, &mut rng).unwrap_err();
        let id = challenge.session_id().to_owned();
        assert_eq!(id.len(), 48);
        assert_eq!(challenge.headers()[0], ("X-Transmission-Session-Id", &*id));
        let code = format!("X-Transmission-Session-Id: {id}");
        assert!(challenge.body().contains(&code));
        assert_eq!(session.check(Some(&id), HOUR, &mut rng), Ok(()));
        for wrong in ["", "x", &id[1..], &format!("{id}x"), &id.to_lowercase()] {
            assert_eq!(
                session.check(Some(wrong), HOUR, &mut rng),
                Err(challenge.clone())
            );
        }
    }

    #[test]
    fn an_id_is_valid_for_an_hour_after_the_next_one() {
        let mut rng = Rng::with_seed(2);
        let mut session = Session::new(Duration::ZERO, &mut rng);
        let first = session.id().to_owned();
        let last_moment = HOUR - Duration::from_nanos(1);
        assert_eq!(session.check(Some(&first), last_moment, &mut rng), Ok(()));
        assert_eq!(session.id(), first);
        assert_eq!(session.check(Some(&first), HOUR, &mut rng), Ok(()));
        let second = session.id().to_owned();
        assert_ne!(second, first);
        assert_eq!(session.check(Some(&second), HOUR, &mut rng), Ok(()));
        let third_hour = HOUR + last_moment;
        assert_eq!(session.check(Some(&first), third_hour, &mut rng), Ok(()));
        assert!(session.check(Some(&first), 2 * HOUR, &mut rng).is_err());
        assert_eq!(session.check(Some(&second), 2 * HOUR, &mut rng), Ok(()));
        // Nothing was asked for long: the last id is as old as any.
        assert!(session.check(Some(&second), 5 * HOUR, &mut rng).is_err());
        // A clock that steps back renews nothing.
        let current = session.id().to_owned();
        assert_eq!(session.check(Some(&current), HOUR, &mut rng), Ok(()));
    }
}
