//! A socket on which metrics alone are served.

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::answer::{JsonError, prometheus};
use crate::listener::Listener;

impl Listener {
    /// Serves metrics alone, at `/metrics`: the text that `read` gives, or 503 with why it gives none.
    /// Requests from web pages are refused. Dropping the future ends all connections.
    pub async fn serve_metrics<R>(self, read: impl Fn() -> R + Clone + Send + Sync + 'static)
    where
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let metrics = move || {
            let text = read();
            async move {
                match text.await {
                    Ok(text) => prometheus(text),
                    Err(reason) => {
                        JsonError(StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
                    }
                }
            }
        };
        let router = Router::new().route("/metrics", get(metrics));
        self.serve_alone(router, "only /metrics is served here")
            .await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::watch;

    use super::*;

    #[tokio::test]
    async fn metrics_are_served_alone() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None);
        let listener = listener.await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_there, reader) = watch::channel(true);
        let read = move || {
            let is_there = *reader.borrow();
            async move {
                match is_there {
                    true => Ok("a_total 1\n".to_owned()),
                    false => Err("gone".to_owned()),
                }
            }
        };
        tokio::spawn(listener.serve_metrics(read));
        let ask = async |path, head| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{head}\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = ask("/metrics", "").await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\na_total 1\n"));
        assert!(ask("/", "").await.starts_with("HTTP/1.1 404 "));
        let answer = ask("/metrics", "Origin: http://a\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        is_there.send_replace(false);
        let answer = ask("/metrics", "").await;
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("gone"));
    }
}
