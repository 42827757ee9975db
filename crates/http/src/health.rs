//! A socket on which a process says whether it is alive, and whether it does its work: for the probes of
//! Kubernetes and others.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use serde::Serialize;

use crate::answer::json;
use crate::listener::Listener;

/// The answer to `/live`.
#[derive(Serialize)]
struct Alive {
    alive: bool,
}

impl Listener {
    /// Answers 200 to `/live`, which needs nothing but this task; and to `/ready` what `read` gives as
    /// JSON, with 200 if that is ready and with 503 if not. Requests from web pages are refused. Dropping
    /// the future ends all connections.
    pub async fn serve_health<T, R>(self, read: impl Fn() -> R + Clone + Send + Sync + 'static)
    where
        T: Serialize,
        R: Future<Output = (bool, T)> + Send + 'static,
    {
        let live = || async { json(StatusCode::OK, &Alive { alive: true }) };
        let ready = move || {
            let report = read();
            async move {
                let (is_ready, report) = report.await;
                let status = match is_ready {
                    true => StatusCode::OK,
                    false => StatusCode::SERVICE_UNAVAILABLE,
                };
                json(status, &report)
            }
        };
        let router = Router::new()
            .route("/live", get(live))
            .route("/ready", get(ready));
        self.serve_alone(router, "only /live and /ready are served here")
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
    async fn a_process_is_alive_before_it_is_ready() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None);
        let listener = listener.await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_ready, reader) = watch::channel(false);
        let read = move || {
            let is_ready = *reader.borrow();
            async move { (is_ready, ["a reason"]) }
        };
        tokio::spawn(listener.serve_health(read));
        let ask = async |path, head| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{head}\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = ask("/live", "").await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{\"alive\":true}\n"));
        let answer = ask("/ready", "").await;
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("[\"a reason\"]\n"));
        is_ready.send_replace(true);
        assert!(ask("/ready", "").await.starts_with("HTTP/1.1 200 "));
        assert!(ask("/", "").await.starts_with("HTTP/1.1 404 "));
        let answer = ask("/ready", "Origin: http://a\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
}
