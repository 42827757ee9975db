//! Connections to servers of this host, for programs of others.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use tokio::net::TcpStream;

use super::copy;
use crate::protocol::preamble::PreambleError;
use crate::protocol::{Preamble, Status};
use crate::served::{self, Served};

/// Why a connection of another host ends.
#[derive(Debug, Error)]
pub(crate) enum IncomingError {
    #[error("it does not come from another shim")]
    NotAShim,
    #[error(transparent)]
    Preamble(#[from] PreambleError),
    #[error("it does not say what it connects to")]
    Silent,
    #[error("{destination} is not served here")]
    NotServed { destination: SocketAddr },
    #[error("cannot connect to the server at {server}: {source}")]
    Server {
        server: SocketAddr,
        source: io::Error,
    },
    #[error("{destination} is no longer served here")]
    NoLongerServed { destination: SocketAddr },
    #[error("it fell back to plain TCP")]
    PlainTcp,
    /// What it needs has ended, in words.
    #[error("{0}")]
    Ended(String),
    #[error("it broke: {0}")]
    Broken(#[from] io::Error),
}

impl IncomingError {
    /// The status to send to the other side, if it waits for one.
    pub(crate) fn status(&self) -> Option<Status> {
        match self {
            Self::NotServed { .. } => Some(Status::NotServed),
            Self::PlainTcp => Some(Status::FellBack),
            Self::Server { source, .. } => Some(match source.kind() {
                io::ErrorKind::ConnectionRefused => Status::Refused,
                _ => Status::Unreachable,
            }),
            _ => None,
        }
    }
}

/// Connects to the server for a program's connection, and sends it the header that it wants.
///
/// # Errors
/// When that is not served, or the server cannot be reached.
pub(crate) async fn connect_server(
    served: &Served,
    ends: &Preamble,
) -> Result<TcpStream, IncomingError> {
    let destination = ends.destination;
    let found = served::find(served, destination);
    let (server, header) = found.ok_or(IncomingError::NotServed { destination })?;
    let failed = |source| IncomingError::Server { server, source };
    let connection = copy::connect(server).await.map_err(failed)?;
    if let Some(header) = header {
        copy::write_all(&connection, &header.encode(ends)).await?;
    }
    Ok(connection)
}
