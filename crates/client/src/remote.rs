//! A client of the API of a daemon on this host, which is found by the folder of its state.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_file::PRIVATE;
use hawser_http::Token;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
pub use hyper::Method;
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, CONNECTION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The files with the address of the API and its token, in the folder of the state.
const ADDRESS: &str = "address";
const TOKEN: &str = "token";
/// Longest time for a request: the daemon writes to its disk before it answers.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes: ten thousand torrents with long names.
const MAX_ANSWER: usize = 64 << 20;

/// Why a request to a daemon has failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// There is none.
    #[error(
        "no daemon runs with the state in {0}: start one with `hawser daemon`, or name its folder with --state"
    )]
    NoDaemon(PathBuf),
    /// A file in the folder of its state cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It refuses the request.
    #[error("{reason}")]
    Refused {
        /// The status of its answer.
        status: u16,
        /// Its reason.
        reason: String,
    },
    /// It does not answer, or not as a daemon of this version.
    #[error("the daemon at {address} does not answer as it should: {reason}")]
    Broken {
        /// The address.
        address: SocketAddr,
        /// What is wrong.
        reason: String,
    },
}

/// The token in the folder of a state; one is made and kept there if there is none.
///
/// # Errors
/// [`RemoteError::File`].
pub fn own_token(state: &Path) -> Result<Token, RemoteError> {
    let path = state.join(TOKEN);
    let failed = |reason: &dyn fmt::Display| RemoteError::File {
        path: path.clone(),
        reason: reason.to_string(),
    };
    match fs::read_to_string(&path) {
        Ok(text) => Token::read(&text).map_err(|error| failed(&error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = Token::random().map_err(|error| failed(&error))?;
            let text = format!("{}\n", token.reveal());
            hawser_file::write(&path, text.as_bytes(), PRIVATE).map_err(|error| failed(&error))?;
            Ok(token)
        }
        Err(error) => Err(failed(&error)),
    }
}

/// Tells the commands of this host where the API is.
///
/// # Errors
/// The error of the system.
pub fn publish(state: &Path, address: SocketAddr) -> io::Result<()> {
    hawser_file::write(
        &state.join(ADDRESS),
        format!("{address}\n").as_bytes(),
        PRIVATE,
    )
}

/// Removes what [`publish`] has written.
///
/// # Errors
/// The error of the system.
pub fn withdraw(state: &Path) -> io::Result<()> {
    match fs::remove_file(state.join(ADDRESS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A daemon on this host.
#[derive(Debug)]
pub struct Remote {
    state: PathBuf,
    address: SocketAddr,
    token: Token,
}

impl Remote {
    /// The daemon whose state is in this folder.
    ///
    /// # Errors
    /// [`RemoteError::NoDaemon`] if none has published its address there, [`RemoteError::File`] if what is
    /// there cannot be read.
    pub fn find(state: &Path) -> Result<Self, RemoteError> {
        let read = |name: &str| {
            let path = state.join(name);
            fs::read_to_string(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => RemoteError::NoDaemon(state.to_owned()),
                _ => RemoteError::File {
                    path,
                    reason: error.to_string(),
                },
            })
        };
        let wrong = |name: &str, reason: String| RemoteError::File {
            path: state.join(name),
            reason,
        };
        let (address, token) = (read(ADDRESS)?, read(TOKEN)?);
        let address = address.trim().parse();
        let token = Token::read(&token);
        Ok(Self {
            state: state.to_owned(),
            address: address.map_err(|_| wrong(ADDRESS, "it is not an address".to_owned()))?,
            token: token.map_err(|error| wrong(TOKEN, error.to_owned()))?,
        })
    }

    /// The daemon whose state is in this folder, which must answer.
    ///
    /// # Errors
    /// As [`Remote::find`], and [`RemoteError::Broken`] if it does not answer.
    pub async fn connect(state: &Path) -> Result<Self, RemoteError> {
        let remote = Self::find(state)?;
        remote.order(Method::GET, "/api/v1/daemon").await?;
        Ok(remote)
    }

    /// Makes a request without a body.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
    ) -> Result<T, RemoteError> {
        let body = self.exchange(method, path, Vec::new()).await?;
        self.read(&body)
    }

    /// Makes a request with a body.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, RemoteError> {
        let body = serde_json::to_vec(body).map_err(|error| self.broken(&error))?;
        let body = self.exchange(method, path, body).await?;
        self.read(&body)
    }

    /// Makes a request without a body, whose answer has none.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn order(&self, method: Method, path: &str) -> Result<(), RemoteError> {
        self.exchange(method, path, Vec::new()).await.map(drop)
    }

    fn broken(&self, reason: &dyn fmt::Display) -> RemoteError {
        RemoteError::Broken {
            address: self.address,
            reason: reason.to_string(),
        }
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, RemoteError> {
        serde_json::from_slice(body).map_err(|error| self.broken(&error))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, RemoteError> {
        let answered = timeout(TIMEOUT, self.exchange_at_last(method, path, body)).await;
        let late = || self.broken(&format!("nothing came within {} s", TIMEOUT.as_secs()));
        answered.unwrap_or_else(|_| Err(late()))
    }

    async fn exchange_at_last(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, RemoteError> {
        // One that was killed has left its address.
        let stream =
            TcpStream::connect(self.address)
                .await
                .map_err(|error| match error.kind() {
                    io::ErrorKind::ConnectionRefused => RemoteError::NoDaemon(self.state.clone()),
                    _ => self.broken(&error),
                })?;
        let made = handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = made.map_err(|error| self.broken(&error))?;
        // It ends with the answer, or when the sender is dropped; the request shows its errors.
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(CONNECTION, "close")
            .header(AUTHORIZATION, format!("Bearer {}", self.token.reveal()))
            .body(Full::<Bytes>::from(body))
            .map_err(|error| self.broken(&error))?;
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| self.broken(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        task.abort();
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => self.broken(&format!("the answer is longer than {MAX_ANSWER} bytes")),
            false => self.broken(&error),
        })?;
        let body = body.to_bytes();
        match status.is_success() {
            true => Ok(body),
            false => Err(refusal(status, &body)),
        }
    }
}

/// Why the daemon refuses.
fn refusal(status: StatusCode, body: &[u8]) -> RemoteError {
    #[derive(Deserialize)]
    struct Said {
        error: String,
    }
    let said = serde_json::from_slice::<Said>(body).map(|said| said.error);
    let reason = said.unwrap_or_else(|_| status.to_string());
    RemoteError::Refused {
        status: status.as_u16(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_found_by_what_it_has_published() {
        let dir = tempfile::tempdir().unwrap();
        let none = || matches!(Remote::find(dir.path()), Err(RemoteError::NoDaemon(_)));
        assert!(none());
        let token = own_token(dir.path()).unwrap();
        assert_eq!(own_token(dir.path()).unwrap(), token);
        assert!(none());
        publish(dir.path(), "127.0.0.1:1".parse().unwrap()).unwrap();
        let remote = Remote::find(dir.path()).unwrap();
        assert_eq!((remote.address.port(), &remote.token), (1, &token));
        withdraw(dir.path()).unwrap();
        withdraw(dir.path()).unwrap();
        assert!(none());
        fs::write(dir.path().join(ADDRESS), "x").unwrap();
        assert!(matches!(
            Remote::find(dir.path()),
            Err(RemoteError::File { .. })
        ));
    }

    #[tokio::test]
    async fn one_that_was_killed_is_no_daemon() {
        let dir = tempfile::tempdir().unwrap();
        own_token(dir.path()).unwrap();
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        publish(dir.path(), free.local_addr().unwrap()).unwrap();
        drop(free);
        let remote = Remote::find(dir.path()).unwrap();
        let error = remote.order(Method::GET, "/").await.unwrap_err();
        assert!(error.to_string().contains("hawser daemon"), "{error}");
    }

    mod fuzz {
        use super::*;

        #[test]
        fn refusals() {
            let valid = [br#"{"error":"why"}"#.to_vec()];
            hawser_fuzz::fuzz(&valid, |input| {
                let error = refusal(StatusCode::BAD_REQUEST, input);
                assert!(matches!(error, RemoteError::Refused { status: 400, .. }));
            });
        }
    }
}
