//! Reports of connections that are relayed.

use std::net::{Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::traffic::Traffic;
use crate::address::Slot;
use crate::choice::CarrierKind;
use crate::protocol::Role;

/// A connection that is relayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// A number that no other connection of the holder has had.
    pub id: u64,
    /// The other host's shim, a SCION address; as long as the carrier knows the session.
    #[serde(default)]
    pub peer: Option<String>,
    /// The other host, as this one's kernel sees it.
    pub address: Ipv6Addr,
    /// This host's side: a client's program is on this host.
    pub role: Role,
    /// What carries it.
    pub carrier: CarrierKind,
    /// The program's address.
    pub source: SocketAddr,
    /// What it connected to.
    pub destination: SocketAddr,
    /// Milliseconds for which it has existed.
    pub age_ms: u64,
    /// Payload bytes.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Payload bytes sent again over another subflow.
    pub reinjected_bytes: u64,
    /// The subflows.
    pub subflows: Vec<SubflowReport>,
    /// Why bytes and subflows are unknown, if they are.
    pub error: Option<String>,
}

/// A subflow of a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubflowReport {
    /// A number that no other subflow of the connection has had.
    pub id: u32,
    /// The slot.
    pub slot: Option<Slot>,
    /// The beginning of the fingerprint of the path under the slot, if there is one.
    #[serde(default)]
    pub path: Option<String>,
    /// The state of its TCP connection.
    pub state: SubflowState,
    /// Smoothed round-trip time, in milliseconds.
    pub rtt_ms: f64,
    /// Congestion window, in bytes.
    pub congestion_window_bytes: u64,
    /// Payload bytes.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Segments sent again.
    pub retransmits: u32,
}

/// The state of a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubflowState {
    /// It is being set up.
    Opening,
    /// It carries data.
    Open,
    /// One of its ends sends no more. The first subflow of a connection stays so for a while when
    /// its path has died.
    Closing,
}

impl SubflowState {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Open => "open",
            Self::Closing => "closing",
        }
    }
}
