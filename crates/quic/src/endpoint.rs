//! An endpoint: one socket, many connections.

use std::net::SocketAddr;

use hawser_endhost::{Endhost, Path, ScionAddr};
use thiserror::Error;

use crate::config::Config;
use crate::connection::{CloseReason, Connection};

/// One socket, many connections, in and out. Cloning shares it.
#[derive(Clone)]
pub struct Endpoint {}

/// Why an endpoint could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
}

/// Why a connection could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The path does not lead to the peer's AS.
    #[error("the path leads to {leads_to}, the peer {peer} is elsewhere")]
    WrongPath {
        /// Where the path ends.
        leads_to: hawser_endhost::IsdAsn,
        /// Who was to be reached.
        peer: ScionAddr,
    },
    /// The path takes no packets as large as QUIC needs.
    #[error("the path takes SCION packets of {mtu} bytes: QUIC needs {needed} on it")]
    MtuTooSmall {
        /// The path's MTU, in bytes.
        mtu: u16,
        /// What 1200 bytes of QUIC need on this path, in bytes.
        needed: u16,
    },
    /// Nobody answered.
    #[error("no answer from {peer} within {timeout:?}")]
    TimedOut {
        /// Who was to be reached.
        peer: ScionAddr,
        /// How long was waited.
        timeout: std::time::Duration,
    },
    /// The connection ended before it was set up.
    #[error("cannot connect to {peer}: {reason}")]
    Closed {
        /// Who was to be reached.
        peer: ScionAddr,
        /// Why.
        reason: CloseReason,
    },
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

impl Endpoint {
    /// Binds a socket, at a free dispatched port of this host's address unless `listen` says where.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the socket or the endpoint's certificate cannot be made.
    pub fn bind(
        _host: Endhost,
        _listen: Option<SocketAddr>,
        _config: Config,
    ) -> Result<Self, BindError> {
        unimplemented!()
    }

    /// Where peers reach this endpoint.
    pub fn local_addr(&self) -> ScionAddr {
        unimplemented!()
    }

    /// Connects to `peer` over `path`, and only over it.
    ///
    /// # Errors
    /// When the path does not fit, nobody answers, or the path is down.
    pub async fn connect(&self, _peer: ScionAddr, _path: Path) -> Result<Connection, ConnectError> {
        unimplemented!()
    }

    /// Waits for the next connection a peer has set up; `None` once the endpoint is closed.
    pub async fn accept(&self) -> Option<Connection> {
        unimplemented!()
    }

    /// Closes all connections and waits until peers were told.
    pub async fn close(&self) {
        unimplemented!()
    }
}
