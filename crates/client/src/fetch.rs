//! Torrents that are named by a URL: the `.torrent` file is fetched from a web server.

use std::fmt;
use std::time::Duration;

use hawser_http_client::{HttpClient, HttpError, HttpUrl, HttpUrlError};
use hawser_torrent::metainfo::MAX_METAINFO_BYTES;
use thiserror::Error;
use tokio::time::timeout;

/// Longest time of a fetch, with all redirects.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no `.torrent` file at a URL. The texts name the host, and not the URL: what lets its user in
/// may be in that.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// It is not a URL of HTTP or HTTPS.
    #[error(transparent)]
    Url(#[from] HttpUrlError),
    /// There is no answer, or not all of it.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server refuses it.
    #[error("{host} answers with status {status} instead of a .torrent file")]
    Status {
        /// Host and port.
        host: String,
        /// The status.
        status: u16,
    },
    /// It takes too long.
    #[error("the .torrent file is not there after {} s", FETCH_TIMEOUT.as_secs())]
    Timeout,
}

/// Whether a text is a URL from which a `.torrent` file can be fetched: of HTTP or HTTPS.
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|it| it.eq_ignore_ascii_case("http") || it.eq_ignore_ascii_case("https"))
}

/// Fetches the bytes of a `.torrent` file, as a program that fetches one.
///
/// # Errors
/// [`FetchError`].
pub async fn fetch_torrent(url: &str) -> Result<Vec<u8>, FetchError> {
    fetch_metainfo(&HttpClient::default(), url, None).await
}

/// The value of a header `Cookie`, which lets its user in at a web server and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookies(String);

impl Cookies {
    /// Cookies as they are sent: `name=value`, several divided by semicolons.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookies(..)")
    }
}

/// Fetches the bytes of a `.torrent` file, which are not checked, and at most [`MAX_METAINFO_BYTES`]. A few
/// redirects are followed, none of which may leave HTTPS. Cookies are sent to the host of the URL alone.
///
/// # Errors
/// [`FetchError`].
pub(crate) async fn fetch_metainfo(
    client: &HttpClient,
    url: &str,
    cookies: Option<&Cookies>,
) -> Result<Vec<u8>, FetchError> {
    let url: HttpUrl = url.trim().parse()?;
    let fetched = timeout(FETCH_TIMEOUT, async {
        let cookies = cookies.map(|cookies| &*cookies.0);
        let response = client.get_with_cookies(&url, None, cookies).await?;
        let (host, status) = (response.host().to_owned(), response.status());
        if status != 200 {
            return Err(FetchError::Status { host, status });
        }
        response.check_encoding()?;
        Ok(response.read(MAX_METAINFO_BYTES).await?)
    });
    fetched.await.unwrap_or(Err(FetchError::Timeout))
}

/// A web server for tests.
#[cfg(test)]
pub(crate) mod testing {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server that answers each request for a path with these bytes, and its address.
    pub async fn server(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> SocketAddr {
        let of_path = move |head: &str| answer(head.split(' ').nth(1).unwrap_or_default());
        server_of_heads(of_path).await
    }

    /// The same, of the whole heads of requests.
    pub async fn server_of_heads(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.unwrap() > 0 {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                // The client may have had enough.
                let _ = stream.write_all(&answer(&head)).await;
            }
        });
        address
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpListener;

    use super::testing::server;
    use super::*;

    async fn fetch(address: SocketAddr, path: &str) -> Result<Vec<u8>, FetchError> {
        fetch_torrent(&format!("http://{address}{path}")).await
    }

    #[tokio::test]
    async fn a_file_is_fetched_over_redirects_and_within_bounds() {
        let address = server(|path| {
            let text: String = match path {
                "/a" => "HTTP/1.1 302 x\r\nLocation: /b?c=d\r\n\r\n".into(),
                "/b?c=d" => "HTTP/1.1 200 x\r\nContent-Length: 4\r\n\r\nd1:e".into(),
                "/loop" => "HTTP/1.1 302 x\r\nLocation: /loop\r\n\r\n".into(),
                "/file" => "HTTP/1.1 302 x\r\nLocation: file:///etc/passwd\r\n\r\n".into(),
                "/long" => format!(
                    "HTTP/1.1 200 x\r\nContent-Length: {}\r\n\r\n{}",
                    MAX_METAINFO_BYTES + 1,
                    "x".repeat(MAX_METAINFO_BYTES + 1)
                ),
                "/short" => "HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\nd".into(),
                "/gzip" => "HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\n\r\nx".into(),
                _ => "HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n".into(),
            };
            text.into_bytes()
        })
        .await;
        assert_eq!(fetch(address, "/a").await.unwrap(), b"d1:e");
        for path in ["/loop", "/file", "/long", "/short", "/gzip"] {
            let fetched = fetch(address, path).await;
            assert!(matches!(fetched, Err(FetchError::Http(_))), "{path}");
        }
        let refused = fetch(address, "/secret?passkey=1").await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("404") && !text.contains("passkey"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_not_waited_for_forever() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fetched = fetch(listener.local_addr().unwrap(), "/").await;
        assert!(matches!(fetched, Err(FetchError::Timeout)));
    }

    #[test]
    fn urls_are_told_from_files() {
        for (text, is) in [
            ("https://a.example/x.torrent", true),
            ("HTTP://a", true),
            ("ftp://a/x", false),
            ("http.torrent", false),
            ("magnet:?xt=http://a", false),
        ] {
            assert_eq!(is_url(text), is, "{text}");
        }
    }
}
