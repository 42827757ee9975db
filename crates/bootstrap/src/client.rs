//! Requests to a bootstrap server.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONNECTION, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::JoinError;
use crate::server::Server;

/// Longest time until a connection is there.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest time until the answer is there.
const ANSWER: Duration = Duration::from_secs(10);
/// Largest body of an error that is read.
const MAX_REASON_BODY: usize = 4096;
/// Longest text of an error that is shown, in characters.
const MAX_REASON: usize = 200;

/// The error of a server that does not answer within `limit`.
pub(crate) fn timed_out(url: String, limit: Duration) -> JoinError {
    let reason = format!("nothing came within {} s", limit.as_secs());
    JoinError::Unreachable { url, reason }
}

/// What the server has under a route: at most `most` bytes.
pub(crate) async fn get(server: &Server, route: &str, most: usize) -> Result<Vec<u8>, JoinError> {
    let url = server.url(route);
    let unreachable = |error: &dyn fmt::Display| JoinError::Unreachable {
        url: url.clone(),
        reason: error.to_string(),
    };
    let connect = TcpStream::connect((server.host.as_str(), server.port));
    let stream = timeout(CONNECT, connect).await;
    let stream = stream
        .map_err(|_| timed_out(url.clone(), CONNECT))?
        .map_err(|error| unreachable(&error))?;
    let ask = async {
        let made = handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = made.map_err(|error| unreachable(&error))?;
        // It ends with the answer, or when the sender is dropped; the request shows its errors.
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        let request = Request::get(server.path(route))
            .header(HOST, server.authority())
            .header(CONNECTION, "close")
            .header(USER_AGENT, concat!("hawser/", env!("CARGO_PKG_VERSION")))
            .body(Empty::<Bytes>::new())
            .map_err(|error| unreachable(&error))?;
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        let status = answer.status();
        let is_good = status == StatusCode::OK;
        let most = if is_good { most } else { MAX_REASON_BODY };
        let body = Limited::new(answer.into_body(), most).collect().await;
        task.abort();
        match body {
            Ok(body) if is_good => Ok(body.to_bytes().to_vec()),
            Ok(body) => Err(refusal(url.clone(), status, &body.to_bytes())),
            Err(_) if !is_good => Err(refusal(url.clone(), status, b"")),
            Err(error) if error.is::<LengthLimitError>() => Err(JoinError::TooLarge {
                url: url.clone(),
                most,
            }),
            Err(error) => Err(unreachable(&error)),
        }
    };
    let answer = timeout(ANSWER, ask).await;
    answer.unwrap_or_else(|_| Err(timed_out(url.clone(), ANSWER)))
}

fn refusal(url: String, status: StatusCode, body: &[u8]) -> JoinError {
    #[derive(Deserialize)]
    struct Said {
        error: String,
    }
    let said = serde_json::from_slice::<Said>(body).map(|said| said.error);
    let said = said.unwrap_or_else(|_| {
        let reason = status.canonical_reason();
        reason.unwrap_or("no reason given").to_owned()
    });
    // It is printed on a terminal, on one line.
    let plain = said.chars().filter(|c| !c.is_control());
    JoinError::Status {
        url,
        status: status.as_u16(),
        reason: plain.take(MAX_REASON).collect(),
    }
}
