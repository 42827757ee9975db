//! The callers that may command the torrents, as servers of them know it.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use hawser_http::{Attempts, TokenHash};

/// What a user may do with the torrents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Command,
    /// Nothing.
    Refused,
}

/// The users of a daemon.
pub trait Callers: Send + Sync + 'static {
    /// What the user whose token this is may do; `None` if it is no user's.
    fn by_token(&self, token: &TokenHash) -> Option<Access>;

    /// What the user whose certificate has this subject may do; `None` if it is no user's.
    fn by_certificate(&self, subject: &str) -> Option<Access>;

    /// Counts a wrong token against an address. If there were too many, returns how long that has to wait
    /// instead.
    fn count_wrong(&self, from: IpAddr) -> Option<Duration>;
}

/// The owner of the daemon, and nobody else.
pub(super) struct OwnerAlone {
    token: TokenHash,
    attempts: Attempts,
    began: Instant,
}

impl OwnerAlone {
    pub fn new(token: TokenHash) -> Self {
        Self {
            token,
            attempts: Attempts::default(),
            began: Instant::now(),
        }
    }
}

impl Callers for OwnerAlone {
    fn by_token(&self, token: &TokenHash) -> Option<Access> {
        (*token == self.token).then_some(Access::Command)
    }

    fn by_certificate(&self, _: &str) -> Option<Access> {
        None
    }

    fn count_wrong(&self, from: IpAddr) -> Option<Duration> {
        self.attempts.count(from, self.began.elapsed())
    }
}
