//! What a holder reports.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::connection::ConnectionReport;
use super::totals::Totals;
use crate::protocol::Role;

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
