//! Responses, as they arrive.

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, RETRY_AFTER};

use crate::error::HttpError;

/// A response of which the head is there. Dropping it ends its connection.
#[derive(Debug)]
pub struct Response {
    inner: hyper::Response<Incoming>,
    host: String,
}

/// Which bytes of a file a response has (RFC 9110, 14.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// The first byte.
    pub first: u64,
    /// The last byte.
    pub last: u64,
    /// Bytes of the whole file; `None` if the server does not know.
    pub total: Option<u64>,
}

impl ContentRange {
    /// Reads the value of the header: `bytes 0-9/100`, or `*` in place of the length. `None` if it is
    /// another one, or contradicts itself.
    pub fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.trim().split_once(' ')?;
        let (range, total) = rest.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| text.parse::<u64>().ok()).flatten()
        };
        let (first, last) = (number(first)?, number(last)?);
        let total = match total {
            "*" => None,
            digits => Some(number(digits)?),
        };
        let fits = first <= last && total.is_none_or(|total| last < total);
        (unit.eq_ignore_ascii_case("bytes") && fits).then_some(Self { first, last, total })
    }
}

impl Response {
    pub(crate) fn new(inner: hyper::Response<Incoming>, host: String) -> Self {
        Self { inner, host }
    }

    /// Its status, as 200 or 404.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Host and port of the server that sends it, after redirects.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Which bytes it has; `None` if it does not say so.
    pub fn content_range(&self) -> Option<ContentRange> {
        ContentRange::parse(self.text(CONTENT_RANGE)?)
    }

    /// Bytes of its body; `None` if it does not say so.
    pub fn content_length(&self) -> Option<u64> {
        self.text(CONTENT_LENGTH)?.trim().parse().ok()
    }

    /// Seconds after which the server may be asked again (RFC 9110, 10.2.3); `None` without, and for a
    /// date.
    pub fn retry_after(&self) -> Option<u64> {
        self.text(RETRY_AFTER)?.trim().parse().ok()
    }

    fn text(&self, name: hyper::header::HeaderName) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// Checks that the body is as the server has it.
    ///
    /// # Errors
    /// If it is compressed, which was not asked for.
    pub fn check_encoding(&self) -> Result<(), HttpError> {
        match self.inner.headers().get(CONTENT_ENCODING) {
            Some(encoding) if encoding != "identity" => Err(HttpError::Protocol {
                host: self.host.clone(),
                error: "the answer is compressed, which was not asked for".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The next bytes of the body; `None` at its end. May be cancelled.
    ///
    /// # Errors
    /// If the connection broke before the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.inner.body_mut().frame().await {
            let frame = frame.map_err(|error| HttpError::Protocol {
                host: self.host.clone(),
                error: error.to_string(),
            })?;
            // Trailers are no bytes of the body.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The whole body.
    ///
    /// # Errors
    /// If it is longer than `most` bytes, or the connection broke.
    pub async fn read(mut self, most: usize) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            if body.len() + bytes.len() > most {
                return Err(HttpError::Long {
                    host: self.host,
                    most,
                });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }
}
