//! What the users of a session share.

use super::{End, Session};

/// A session in use. Dropping it ends the session.
#[derive(Debug)]
pub(crate) struct User(Session);

impl User {
    pub(crate) fn new(session: Session) -> Self {
        Self(session)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.0.end(End::Dropped);
    }
}
