//! Holder status reports.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use hawser_mptcp::{Info, InfoError, State};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use crate::address::{Block, Slot};
use crate::choice::CarrierKind;
use crate::link::Role;
use crate::status::Totals;

/// The connections that are relayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HolderReport {
    /// Milliseconds since the holder began.
    pub uptime_ms: u64,
    /// Whether a carrier works with the holder.
    pub attached: bool,
    /// The connections.
    pub connections: Vec<ConnectionReport>,
    /// Connections that have ended since the holder began.
    pub connections_ended: u64,
    /// Connections that could not be set up since the holder began.
    pub setups_failed: u64,
    /// The latest connections that failed, oldest first.
    pub failures: Vec<FailureReport>,
    /// What each session's connections have carried.
    pub sessions: Vec<SessionTotals>,
    /// Why no connection gets further subflows at present, if so.
    #[serde(default)]
    pub problem: Option<String>,
}

/// A connection that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureReport {
    /// When: milliseconds since 1970.
    pub at_ms: u64,
    /// Which connection, and why.
    pub text: String,
}

/// What the connections of one session have carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTotals {
    /// The other host, as this one's kernel sees it.
    pub address: Ipv6Addr,
    /// This host's side.
    pub role: Role,
    /// What was counted.
    pub totals: Totals,
}

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
    /// Payload bytes that the other host has acknowledged.
    pub sent_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Payload bytes sent again over another subflow.
    pub reinjected_bytes: u64,
    /// The rate of sent bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub sent_mbit: Option<f64>,
    /// The rate of received bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub received_mbit: Option<f64>,
    /// The subflows.
    pub subflows: Vec<SubflowReport>,
    /// Why bytes and subflows are unknown, if they are.
    pub error: Option<String>,
}

/// What happens to the connections of programs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// A program has connected.
    Began {
        /// What it connects to.
        destination: SocketAddr,
        /// The other host, as this one's kernel sees it; `None` if the connection goes over IP.
        peer: Option<Ipv6Addr>,
    },
    /// A connection failed, for this reason.
    Failed(String),
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
    /// Payload bytes that the other host has acknowledged.
    pub sent_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// The rate of sent bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub sent_mbit: Option<f64>,
    /// The rate of received bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub received_mbit: Option<f64>,
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

/// What a connection carries.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub sent: u64,
    pub received: u64,
    pub reinjected: u64,
    pub subflows: Vec<SubflowReport>,
}

/// What the connection to the other holder carries.
pub(super) fn carried(peer: &TcpStream) -> Result<Carried, InfoError> {
    let info = Info::read(peer)?;
    let slot = |address: SocketAddr| match address {
        SocketAddr::V6(address) => Block::split(*address.ip()).map(|(_, slot)| slot),
        SocketAddr::V4(_) => None,
    };
    let subflows = info.subflows.iter().map(|one| SubflowReport {
        id: one.number,
        slot: slot(one.local).max(slot(one.remote)),
        path: None,
        state: match one.state {
            State::Opening => SubflowState::Opening,
            State::Established => SubflowState::Open,
            _ => SubflowState::Closing,
        },
        rtt_ms: one.rtt.as_secs_f64() * 1e3,
        congestion_window_bytes: u64::from(one.congestion_window) * u64::from(one.segment),
        sent_bytes: one.bytes_acknowledged,
        received_bytes: one.bytes_received,
        sent_mbit: None,
        received_mbit: None,
        retransmits: one.retransmits,
    });
    Ok(Carried {
        sent: info.bytes_acknowledged,
        received: info.bytes_received,
        reinjected: info.bytes_retransmitted,
        subflows: subflows.collect(),
    })
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
