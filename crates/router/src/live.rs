//! Asking a running router, and changing its links.
//!
//! Over a Unix stream socket, one JSON value a line each way. An AS's only router has it at
//! [`AsDir::router_socket`], each of several at [`AsDir::router_socket_of`] its name.
//!
//! [`AsDir::router_socket`]: hawser_topology::AsDir::router_socket
//! [`AsDir::router_socket_of`]: hawser_topology::AsDir::router_socket_of

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_topology::LinkState;
use serde::{Deserialize, Serialize};

use crate::counters::Counters;

/// How long to wait for a router, which answers at once unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest line either way, in bytes: counters of thousands of interfaces.
pub(crate) const MAX_LINE: usize = 1 << 20;

/// What a router can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Request {
    /// All counters.
    Counters,
    /// Make an external interface behave as `state` says, from now on. The router does not write it
    /// down.
    SetLink {
        /// The interface.
        id: u16,
        /// Up or down, and its delay, jitter, loss and rate.
        state: LinkState,
    },
    /// End.
    Stop,
}

/// What a router says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reply {
    /// To [`Request::Counters`].
    Counters(Counters),
    /// It has been done.
    Done,
    /// It has not been done.
    Error {
        /// Why.
        message: String,
    },
}

/// A router that cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// No connection to its socket.
    #[error("no router answers at {socket} ({source}): is it running?", socket = socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The connection broke, or nothing came within 5 seconds.
    #[error("the router at {socket} did not answer: {source}", socket = socket.display())]
    Broken {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The reply was none.
    #[error("the router at {socket} answered with something else than a reply: {reason}", socket = socket.display())]
    Reply {
        /// The socket.
        socket: PathBuf,
        /// What was wrong.
        reason: String,
    },
}

/// Asks the router at `socket`, and waits for its reply.
///
/// # Errors
/// When no router listens there, or it does not reply within 5 seconds.
pub fn call(socket: &Path, request: &Request) -> Result<Reply, LiveError> {
    let broken = |source| LiveError::Broken {
        socket: socket.to_owned(),
        source,
    };
    let mut stream = UnixStream::connect(socket).map_err(|source| LiveError::Connect {
        socket: socket.to_owned(),
        source,
    })?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
    let mut line = serde_json::to_vec(request).map_err(|error| LiveError::Reply {
        socket: socket.to_owned(),
        reason: error.to_string(),
    })?;
    line.push(b'\n');
    stream.write_all(&line).map_err(broken)?;
    let mut reply = String::new();
    BufReader::new(stream.take(MAX_LINE as u64))
        .read_line(&mut reply)
        .map_err(broken)?;
    serde_json::from_str(&reply).map_err(|error| LiveError::Reply {
        socket: socket.to_owned(),
        reason: error.to_string(),
    })
}
