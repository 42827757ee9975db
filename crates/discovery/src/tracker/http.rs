//! Pages of trackers over HTTP and HTTPS.

use std::time::Duration;

use hawser_http_client::{HttpClient, HttpError, HttpUrl, Response};
use hawser_tracker::message::http::{AnswerError, MAX_ANSWER, read_answer};
use hawser_tracker::{TrackerUrl, UrlError};
use tokio::time::timeout;

use crate::error::AnnounceError;

/// Fetches pages.
pub(super) struct Fetcher {
    timeout: Duration,
    client: HttpClient,
}

impl Fetcher {
    pub fn new(timeout: Duration, roots: Vec<Vec<u8>>) -> Self {
        Self {
            timeout,
            client: HttpClient::new(roots),
        }
    }

    /// The body of the page at `url`.
    ///
    /// # Errors
    /// [`AnnounceError`] if there is none, it is longer than [`MAX_ANSWER`], or its status is not success;
    /// then the reason of the tracker, if the body has one.
    pub async fn fetch(&self, url: &str) -> Result<Vec<u8>, AnnounceError> {
        let tracker = url.parse::<TrackerUrl>()?;
        let (host, after) = (tracker.authority(), self.timeout);
        let url = tracker.to_string().parse::<HttpUrl>();
        let url = url.map_err(|_| UrlError::Scheme(tracker.to_string()))?;
        let fetched = timeout(after, async {
            let response = self.client.get(&url, None).await?;
            read(response).await
        });
        let fetched = fetched.await;
        fetched.unwrap_or(Err(AnnounceError::TimedOut { host, after }))
    }
}

async fn read(response: Response) -> Result<Vec<u8>, AnnounceError> {
    let (status, host) = (response.status(), response.host().to_owned());
    let encoding = response.check_encoding();
    let body = match response.read(MAX_ANSWER).await {
        Err(HttpError::Long { .. }) => return Err(AnswerError::Long.into()),
        body => body?,
    };
    if !(200..300).contains(&status) {
        return Err(match read_answer(&body) {
            Err(refused @ AnswerError::Refused { .. }) => refused.into(),
            _ => AnnounceError::Status { host, status },
        });
    }
    encoding?;
    Ok(body)
}
