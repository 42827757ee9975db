//! Why a request has failed.

use std::io;

use thiserror::Error;

/// Why there is no response, or not all of it. The texts name the host.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The name of the host has no address.
    #[error("the host {host} is not found: {error}")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        error: io::Error,
    },
    /// There is no connection to the host.
    #[error("cannot reach {host}: {error}")]
    Reach {
        /// Host and port.
        host: String,
        /// Why.
        error: io::Error,
    },
    /// The certificate of the host is not trusted, or TLS failed.
    #[error("TLS with {host} failed: {error}")]
    Tls {
        /// Host and port.
        host: String,
        /// Why.
        error: String,
    },
    /// What the host sends is not HTTP, is compressed, or the connection broke.
    #[error("HTTP with {host} failed: {error}")]
    Protocol {
        /// Host and port.
        host: String,
        /// Why.
        error: String,
    },
    /// The host redirects too often, or to where a request must not go.
    #[error("{host} redirects to {to}, which is not followed: {reason}")]
    Redirect {
        /// Host and port.
        host: String,
        /// Where to; at most 100 characters.
        to: String,
        /// Why not.
        reason: &'static str,
    },
    /// The body has more bytes than are read.
    #[error("{host} sends more than {most} bytes")]
    Long {
        /// Host and port.
        host: String,
        /// The most that is read.
        most: usize,
    },
}
