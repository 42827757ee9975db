//! What there is to see of the holder.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use hawser_mptcp::{Info, InfoError};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use crate::address::{Block, Slot};
use crate::link::Role;

/// The connections that are relayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HolderReport {
    /// Whether a carrier works with the holder.
    pub attached: bool,
    /// The connections.
    pub connections: Vec<ConnectionReport>,
    /// Connections that have ended since the holder began.
    pub ended: u64,
    /// The latest connections that failed, and why.
    pub failures: Vec<String>,
}

/// A connection that is relayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// The other host, as this one's kernel sees it.
    pub peer: Ipv6Addr,
    /// Whether the program is on this host.
    pub role: Role,
    /// The program's address.
    pub source: SocketAddr,
    /// What it connected to.
    pub destination: SocketAddr,
    /// How long it has existed.
    pub age: Duration,
    /// What it carries, or why that is unknown.
    pub carried: Result<Carried, String>,
}

/// What an MPTCP connection carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// Payload bytes that the other host has acknowledged.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Payload bytes sent again over another subflow.
    pub bytes_reinjected: u64,
    /// The subflows.
    pub subflows: Vec<SubflowReport>,
}

/// A subflow of a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubflowReport {
    /// The slot, which names the path.
    pub slot: Option<Slot>,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
    /// Payload bytes that the other host has acknowledged.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Segments sent again.
    pub retransmits: u32,
    /// The rate at which payload arrives at the other host, in bytes/s.
    pub delivery_rate: u64,
}

/// What the connection to the other holder carries.
pub(super) fn carried(peer: &TcpStream) -> Result<Carried, String> {
    let info = Info::read(peer).map_err(|error: InfoError| error.to_string())?;
    let slot = |address: SocketAddr| match address {
        SocketAddr::V6(address) => Block::split(*address.ip()).map(|(_, slot)| slot),
        SocketAddr::V4(_) => None,
    };
    let subflows = info.subflows.iter().map(|one| SubflowReport {
        slot: slot(one.local).max(slot(one.remote)),
        rtt: one.rtt,
        congestion_window: u64::from(one.congestion_window) * u64::from(one.segment),
        bytes_sent: one.bytes_acknowledged,
        bytes_received: one.bytes_received,
        retransmits: one.retransmits,
        delivery_rate: one.delivery_rate,
    });
    Ok(Carried {
        bytes_sent: info.bytes_acknowledged,
        bytes_received: info.bytes_received,
        bytes_reinjected: info.bytes_retransmitted,
        subflows: subflows.collect(),
    })
}
