//! Why a tracker did not answer.

use std::io;
use std::time::Duration;

use hawser_http_client::HttpError;
use hawser_tracker::UrlError;
use hawser_tracker::message::http::AnswerError;
use hawser_tracker::message::udp::UdpAnswerError;
use hawser_tracker::message::{Retry, TrackerError};
use thiserror::Error;

/// Why an announce or a scrape has failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnnounceError {
    /// The URL is not one of a tracker.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The tracker refuses.
    #[error("the tracker refuses: {reason}")]
    Refused {
        /// Its reason, in its words.
        reason: String,
        /// When it may be asked again.
        retry: Retry,
    },
    /// The name of the tracker's host has no address.
    #[error("the host {host} is not found: {error}")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        error: io::Error,
    },
    /// There is no connection to the tracker, or it broke.
    #[error("cannot reach {host}: {error}")]
    Reach {
        /// The tracker.
        host: String,
        /// Why.
        error: io::Error,
    },
    /// The tracker's certificate is not trusted, or TLS failed.
    #[error("TLS with {host} failed: {error}")]
    Tls {
        /// The tracker.
        host: String,
        /// Why.
        error: String,
    },
    /// What the tracker sends is not HTTP.
    #[error("HTTP with {host} failed: {error}")]
    Http {
        /// The tracker.
        host: String,
        /// Why.
        error: String,
    },
    /// The tracker answers with another status than success.
    #[error("{host} answers with HTTP status {status}")]
    Status {
        /// The tracker.
        host: String,
        /// The status.
        status: u16,
    },
    /// The tracker redirects too often, or to where no tracker can be.
    #[error("{host} redirects to {to}, which is not followed: {reason}")]
    Redirect {
        /// The tracker.
        host: String,
        /// Where to.
        to: String,
        /// Why not.
        reason: &'static str,
    },
    /// The tracker's answer over HTTP cannot be read.
    #[error(transparent)]
    Answer(AnswerError),
    /// The tracker's answer over UDP cannot be read.
    #[error(transparent)]
    Packet(#[from] UdpAnswerError),
    /// The tracker answers something else than it was asked.
    #[error("{host} answers another question")]
    OtherAnswer {
        /// The tracker.
        host: String,
    },
    /// The tracker does not answer in time.
    #[error("{host} did not answer within {} s", .after.as_secs())]
    TimedOut {
        /// The tracker.
        host: String,
        /// The time it had.
        after: Duration,
    },
    /// The tracker is in a SCION network, and there is no socket for it.
    #[error("{host} is in a SCION network, and there is no connection to one here")]
    NoScion {
        /// The tracker.
        host: String,
    },
    /// The tracker has no URL for scrapes.
    #[error("the tracker {0} cannot be scraped: its path does not end in /announce")]
    NoScrape(String),
}

impl From<AnswerError> for AnnounceError {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Refused { reason, retry } => Self::Refused { reason, retry },
            other => Self::Answer(other),
        }
    }
}

impl From<HttpError> for AnnounceError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Resolve { host, error } => Self::Resolve { host, error },
            HttpError::Reach { host, error } => Self::Reach { host, error },
            HttpError::Tls { host, error } => Self::Tls { host, error },
            HttpError::Protocol { host, error } => Self::Http { host, error },
            HttpError::Redirect { host, to, reason } => Self::Redirect { host, to, reason },
            HttpError::Long { .. } => Self::Answer(AnswerError::Long),
        }
    }
}

impl From<&AnnounceError> for TrackerError {
    fn from(error: &AnnounceError) -> Self {
        match error {
            AnnounceError::Refused { reason, retry } => Self::Refused {
                reason: reason.clone(),
                retry: *retry,
            },
            other => Self::Failed(other.to_string()),
        }
    }
}
