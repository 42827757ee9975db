//! Requests to a running router, and its counters, over its Unix socket:
//! [`AsDir::router_socket`] of an AS's only router, [`AsDir::router_socket_of`] its name where the
//! AS has several.
//!
//! [`AsDir::router_socket`]: hawser_topology::AsDir::router_socket
//! [`AsDir::router_socket_of`]: hawser_topology::AsDir::router_socket_of

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hawser_kernel::rpc::{RpcError, Service};
use hawser_topology::LinkState;
use serde::{Deserialize, Serialize};

/// A request to a router.
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
    /// End the router.
    Stop,
}

/// A router's reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reply {
    /// To [`Request::Counters`].
    Counters(Counters),
    /// The request was carried out.
    Done,
    /// The request was refused.
    Error {
        /// Why.
        message: String,
    },
}

/// Packets at an interface since the router started, without BFD packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// SCION packets received.
    pub rx_packets: u64,
    /// Their bytes, from the common header on.
    pub rx_bytes: u64,
    /// SCION packets sent.
    pub tx_packets: u64,
    /// Their bytes, from the common header on.
    pub tx_bytes: u64,
}

/// All counters of a router.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// By interface; 0 is the internal one.
    pub interfaces: BTreeMap<u16, InterfaceCounters>,
    /// Packets not passed on, by reason; only reasons that have occurred.
    pub drops: BTreeMap<String, u64>,
    /// Whether BFD finds them up: links by the number of their interface, other routers of the AS
    /// by name. Links without BFD are missing.
    #[serde(default)]
    pub bfd: BTreeMap<String, bool>,
}

/// Asks the router at `socket`, and waits for its reply.
///
/// # Errors
/// When no router listens there, or it does not reply within 5 seconds.
pub fn call(socket: &Path, request: &Request) -> Result<Reply, RpcError> {
    const ROUTER: Service = Service {
        name: "router",
        // It answers at once unless it is stopped.
        timeout: Duration::from_secs(5),
    };
    ROUTER.call(socket, request)
}
