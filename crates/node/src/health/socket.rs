//! A socket in the folder of an AS, at which the process that runs the AS says whether it is alive and ready:
//! for probes that run a program in its container, and for commands.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hawser_kernel::rpc::{self, RpcError, Service, SocketFile};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Health, HealthReport};
use crate::error::InstallError;
use crate::folder::Folder;

/// The name of the socket in the folder.
const SOCKET: &str = "health.sock";
/// Most connections that are answered at a time.
const MAX_CONNECTIONS: usize = 8;
/// Longest time that a connection takes to send its request, or to take the answer.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait of [`is_alive`] and [`ask`] for the answer: several border routers may each take their time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest request in bytes.
const MAX_REQUEST: usize = 256;
/// Time for which no connection is accepted after that has failed.
const REST: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Request {
    Live,
    Ready,
}

#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    Live,
    Ready(HealthReport),
    Error { message: String },
}

/// The socket, bound.
#[derive(Debug)]
pub struct HealthSocket {
    listener: UnixListener,
    _file: SocketFile,
}

impl HealthSocket {
    /// Binds the socket in the folder of an AS. A socket that a killed process has left is replaced. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub fn bind(folder: &Folder) -> Result<Self, InstallError> {
        let path = socket(folder.path());
        let bound = rpc::listen(&path)
            .and_then(|(listener, file)| Ok((UnixListener::from_std(listener)?, file)));
        let (listener, _file) = bound.map_err(|source| InstallError::Io { path, source })?;
        Ok(Self { listener, _file })
    }

    /// Answers requests, without end. Dropping the future ends all connections.
    pub async fn serve(self, health: Health) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let health = health.clone();
                    connections.spawn(async move {
                        // A caller that has left needs no answer.
                        let _ = answer(stream, &health).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::debug!("no connection is accepted at {SOCKET}: {error}");
                    sleep(REST).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }
}

async fn answer(mut stream: UnixStream, health: &Health) -> io::Result<()> {
    let line = timeout(EXCHANGE_TIMEOUT, request(&mut stream)).await??;
    let reply = match rpc::request(&line) {
        Ok(Request::Live) => Reply::Live,
        Ok(Request::Ready) => Reply::Ready(health.read().await),
        Err(message) => Reply::Error { message },
    };
    let reply = rpc::line(&reply)?;
    timeout(EXCHANGE_TIMEOUT, stream.write_all(&reply)).await?
}

/// The bytes until the end of the line or of the connection; as many as are allowed of more.
async fn request(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while line.len() < MAX_REQUEST && !line.ends_with(b"\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await? == 0 {
            break;
        }
        line.push(byte[0]);
    }
    Ok(line)
}

/// Whether the process that runs the AS in `folder` answers.
///
/// # Errors
/// When none runs, or it does not answer.
pub fn is_alive(folder: &Path) -> Result<(), AskError> {
    match call(folder, Request::Live)? {
        Reply::Live => Ok(()),
        other => Err(other.unexpected()),
    }
}

/// Asks the process that runs the AS in `folder` whether the AS does its work.
///
/// # Errors
/// When none runs, or it does not answer.
pub fn ask(folder: &Path) -> Result<HealthReport, AskError> {
    match call(folder, Request::Ready)? {
        Reply::Ready(report) => Ok(report),
        other => Err(other.unexpected()),
    }
}

/// A process that runs an AS did not say how it does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// It did not answer.
    #[error(transparent)]
    Call(#[from] RpcError),
    /// It answered something else.
    #[error("the process that runs the AS sent another answer: {0}")]
    Unexpected(String),
}

impl Reply {
    fn unexpected(self) -> AskError {
        AskError::Unexpected(match self {
            Self::Error { message } => message,
            other => format!("{other:?}"),
        })
    }
}

fn call(folder: &Path, request: Request) -> Result<Reply, RpcError> {
    const AS: Service = Service {
        name: "AS",
        timeout: ANSWER_TIMEOUT,
    };
    AS.call(&socket(folder), &request)
}

fn socket(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as StdStream;

    use proptest::prelude::*;

    use super::super::{health, tests::facts};
    use super::*;
    use crate::run::testing::bundle;

    /// A folder whose AS answers as `health` does, while `work` asks.
    fn with_socket<T: Send + 'static>(
        is_reported: bool,
        work: impl FnOnce(PathBuf) -> T + Send + 'static,
    ) -> T {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("as");
        let (folder, _) = Folder::join(&path, &bundle(1, "a")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (reporter, health) = health();
            if is_reported {
                reporter.report(facts());
            }
            let socket = HealthSocket::bind(&folder).unwrap();
            let server = tokio::spawn(socket.serve(health));
            let done = tokio::task::spawn_blocking(move || work(path)).await;
            server.abort();
            done.unwrap()
        })
    }

    #[test]
    fn a_process_answers_that_it_is_alive_before_it_is_ready() {
        with_socket(false, |path| {
            is_alive(&path).unwrap();
            let report = ask(&path).unwrap();
            assert!(!report.ready && report.version.is_none());
            assert!(!report.reasons.is_empty());
        });
    }

    #[test]
    fn reports_arrive_whole() {
        with_socket(true, |path| {
            let report = ask(&path).unwrap();
            // There are no segments at the path of these facts.
            assert!(!report.ready && report.version.is_some());
        });
    }

    #[test]
    fn nobody_answers_for_an_as_that_does_not_run() {
        let temporary = tempfile::tempdir().unwrap();
        let error = is_alive(temporary.path()).unwrap_err().to_string();
        assert!(error.contains("no AS answers at"), "{error}");
        // A socket that a killed process has left is replaced.
        let path = temporary.path().join("as");
        let (folder, _) = Folder::join(&path, &bundle(1, "a")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(socket(&path)).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { drop(HealthSocket::bind(&folder).unwrap()) });
        assert!(!socket(&path).exists());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Whatever is sent, the next caller is answered.
        #[test]
        fn any_bytes_are_answered_or_refused(requests in prop::collection::vec(any::<Vec<u8>>(), 1..6)) {
            with_socket(false, move |path| {
                for bytes in &requests {
                    let mut stream = StdStream::connect(socket(&path)).unwrap();
                    // The server may have answered and left already.
                    let _ = stream.write_all(bytes);
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    let mut answer = Vec::new();
                    let _ = stream.read_to_end(&mut answer);
                }
                is_alive(&path).unwrap();
            });
        }
    }
}
