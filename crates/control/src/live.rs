//! Requests to a running control service, over the Unix socket in the AS's folder.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hawser_kernel::rpc::{RpcError, Service};
use hawser_topology::{IsdAsn, Shape};
use serde::{Deserialize, Serialize};

/// A request to a control service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Take a link of the network down or up, and set its rate and delay.
    SetLink {
        /// Either end of the link: an AS and its interface.
        a: (IsdAsn, u16),
        /// Whether packets pass. Segments over a link that is down are withdrawn, and come back
        /// with it.
        up: bool,
        /// Rate and delay, which path metadata then announces.
        shape: Shape,
    },
    /// Report the addresses, and the links that are down.
    Status,
    /// End the control service.
    Stop,
}

/// A control service's reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Status`].
    Status(Status),
    /// The request was carried out.
    Done,
    /// The request was refused.
    Error {
        /// Why.
        message: String,
    },
}

/// The state of a control service.
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

/// Sends a request to the control service that listens on `socket`, and waits for its reply.
///
/// # Errors
/// When none listens there, or it does not reply within 5 seconds.
pub fn call(socket: &Path, request: &Request) -> Result<Reply, RpcError> {
    const CONTROL: Service = Service {
        name: "control service",
        // It replies at once unless its process is stopped.
        timeout: Duration::from_secs(5),
    };
    CONTROL.call(socket, request)
}
