//! What the users of the configuration may do with the torrents.

use std::net::IpAddr;
use std::time::Duration;

use hawser_client::http::{Access, Callers};
use hawser_http::TokenHash;
use hawser_service::{Service, User};

/// The users of the transfers, as those that command the torrents.
pub(crate) struct TorrentUsers(pub Service);

fn access(user: &User) -> Access {
    match user.torrents {
        true => Access::Command,
        false => Access::Refused,
    }
}

impl Callers for TorrentUsers {
    fn by_token(&self, token: &TokenHash) -> Option<Access> {
        self.0.users().by_token(token).map(access)
    }

    fn by_certificate(&self, subject: &str) -> Option<Access> {
        self.0.users().by_certificate(subject).map(access)
    }

    fn count_wrong(&self, from: IpAddr) -> Option<Duration> {
        self.0.wrong_token(from)
    }
}
