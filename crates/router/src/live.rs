//! Requests to a running router, and its counters, over its Unix socket: [`AsDir::router_socket`]
//! if it is the AS's only router, else [`AsDir::router_socket_of`] its name.
//!
//! [`AsDir::router_socket`]: hawser_topology::AsDir::router_socket
//! [`AsDir::router_socket_of`]: hawser_topology::AsDir::router_socket_of

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_kernel::rpc::{RpcError, Service};
use hawser_topology::LinkState;
use serde::{Deserialize, Serialize};

/// A request to a router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Request {
    /// Requests all counters.
    Counters,
    /// Sets the state of the link at an external interface. The router does not save it.
    SetLink {
        /// The interface.
        id: u16,
        /// Up or down, and its delay, jitter, loss and rate.
        state: LinkState,
    },
    /// Goes over to the topology of the AS in this folder. Interfaces that stay as they are lose no
    /// packets. If that is not possible nothing changes, and the router must be started again.
    Reload {
        /// The folder, which is laid out as the one that the router was started with.
        folder: PathBuf,
    },
    /// Stops the router.
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
    /// Dropped packets by reason; reasons with a count of 0 are left out.
    pub drops: BTreeMap<String, u64>,
    /// STUN requests of hosts that were answered.
    #[serde(default)]
    pub stun_answers: u64,
    /// Whether BFD finds each neighbour up: links by the number of their interface, other routers
    /// of the AS by name. Links without BFD are left out.
    #[serde(default)]
    pub bfd: BTreeMap<String, bool>,
    /// Links that have carried nothing for a while, so that BFD sends a packet a second there, by the
    /// number of their interface.
    #[serde(default)]
    pub at_rest: BTreeSet<String>,
}

impl Counters {
    /// Adds those of another thread of the router.
    pub(crate) fn add(&mut self, other: &Self) {
        for (id, more) in &other.interfaces {
            let sum = self.interfaces.entry(*id).or_default();
            sum.rx_packets += more.rx_packets;
            sum.rx_bytes += more.rx_bytes;
            sum.tx_packets += more.tx_packets;
            sum.tx_bytes += more.tx_bytes;
        }
        for (reason, more) in &other.drops {
            *self.drops.entry(reason.clone()).or_default() += more;
        }
        self.stun_answers += other.stun_answers;
        self.bfd.extend(other.bfd.clone());
        self.at_rest.extend(other.at_rest.iter().cloned());
    }
}

/// Sends `request` to the router at `socket`, and waits for its reply.
///
/// # Errors
/// When no router listens there, or it does not reply within 5 seconds.
pub fn call(socket: &Path, request: &Request) -> Result<Reply, RpcError> {
    const ROUTER: Service = Service {
        name: "router",
        // A running router answers at once.
        timeout: Duration::from_secs(5),
    };
    ROUTER.call(socket, request)
}
