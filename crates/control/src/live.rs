//! Changes to a running control service: one JSON line each way over the Unix socket of the AS's
//! folder.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_topology::{IsdAsn, Shape};
use serde::{Deserialize, Serialize};

/// What a control service can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Take a link of the network down or up, and say what it behaves like.
    SetLink {
        /// Either end of the link: an AS and its interface.
        a: (IsdAsn, u16),
        /// Whether packets pass. Segments over a link that is down are withdrawn, and come back
        /// with it.
        up: bool,
        /// Rate and delay, which path metadata then announces.
        shape: Shape,
    },
    /// Say how it goes.
    Status,
    /// End.
    Stop,
}

/// What a control service answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Status`].
    Status(Status),
    /// The change was made.
    Done,
    /// The request was refused.
    Error {
        /// Why.
        message: String,
    },
}

/// How a control service goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The AS it serves.
    pub isd_as: IsdAsn,
    /// Where it serves the daemon API.
    pub daemon: SocketAddr,
    /// Where it serves segment lookups.
    pub control: Vec<SocketAddr>,
    /// The links that are down, each by the end `a` of the topology.
    pub down: Vec<(IsdAsn, u16)>,
}

/// Why a running control service could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// Nothing listens, or it hung up.
    #[error("no control service answers on {socket}: {source}; is the lab up?", socket = socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What came back is no reply.
    #[error("what answers on {socket} is no control service: {reason}", socket = socket.display())]
    Protocol {
        /// The socket.
        socket: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A service answers at once; this is for one that hangs.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the control service that listens on `socket`, and waits for its reply, for 5 s at most.
///
/// # Errors
/// When nothing answers, or what answers is no control service.
pub fn call(socket: &Path, request: &Request) -> Result<Reply, LiveError> {
    let protocol = |e: serde_json::Error| LiveError::Protocol {
        socket: socket.to_owned(),
        reason: e.to_string(),
    };
    let mut line = serde_json::to_vec(request).map_err(protocol)?;
    line.push(b'\n');
    let answer = exchange(socket, &line).map_err(|source| LiveError::Unreachable {
        socket: socket.to_owned(),
        source,
    })?;
    serde_json::from_str(&answer).map_err(protocol)
}

fn exchange(socket: &Path, line: &[u8]) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(line)?;
    let mut answer = String::new();
    if BufReader::new(stream).read_line(&mut answer)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer)
}
