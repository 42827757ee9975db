//! Requests to a running control service, over its live socket: the Unix socket in the AS's folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_kernel::rpc::{RpcError, Service};
use hawser_topology::{IsdAsn, Shape};
use serde::{Deserialize, Serialize};

/// A request to a control service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Sets the state, rate and delay of a link of the network.
    SetLink {
        /// Either end of the link: an AS and its interface.
        a: (IsdAsn, u16),
        /// Whether the link is up. Segments over the link are withdrawn while it is down.
        up: bool,
        /// Rate and delay, which path metadata announces.
        shape: Shape,
    },
    /// Reads the files of the AS, and of its lab if it is in one, again: requests from then on are
    /// answered from them. If they cannot be used nothing changes.
    Reload,
    /// Takes the underlay addresses of links from the topology in another folder. Nothing else of it is
    /// read: a neighbour has moved.
    Links {
        /// The folder.
        folder: PathBuf,
    },
    /// Requests the addresses, and the links that are down.
    Status,
    /// Stops the control service.
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
    /// The address of the daemon API.
    pub daemon: SocketAddr,
    /// The addresses of segment lookups.
    pub control: Vec<SocketAddr>,
    /// The addresses of the bootstrap server, which gives hosts what they need to join the AS.
    #[serde(default)]
    pub bootstrap: Vec<SocketAddr>,
    /// The links that are down, each identified by its end `a`.
    pub down: Vec<(IsdAsn, u16)>,
}

/// Sends a request to the control service that listens on `socket`, and waits for its reply.
///
/// # Errors
/// When no control service listens there, or it does not reply within 5 seconds.
pub fn call(socket: &Path, request: &Request) -> Result<Reply, RpcError> {
    const CONTROL: Service = Service {
        name: "control service",
        // A running service replies at once.
        timeout: Duration::from_secs(5),
    };
    CONTROL.call(socket, request)
}
