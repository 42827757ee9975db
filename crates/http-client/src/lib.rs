//! Requests to servers of others over HTTP/1.1 and HTTPS: [`HttpClient::get`] asks for a page or a range
//! of its bytes, follows redirects, and returns the [`Response`] as soon as its head is there;
//! [`HttpClient::post`] sends it a body.
//!
//! Each request has a connection of its own, which ends with the response. Certificates of the system are
//! trusted, or the ones that browsers trust where the system has none. Trackers and web seeds are asked
//! over it.

mod client;
mod error;
mod resolve;
mod response;
#[cfg(test)]
mod tests;
mod tls;
mod url;

pub use self::client::{HttpClient, MAX_REDIRECTS};
pub use self::error::HttpError;
pub use self::resolve::resolve;
pub use self::response::{ContentRange, Response};
pub use self::url::{Host, HttpUrl, HttpUrlError};
