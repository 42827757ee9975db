//! What the connections of a session have carried.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::address::Slot;

/// What the connections of one session have carried since it began, ended ones included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Connections.
    pub connections: u64,
    /// Payload bytes that the other host has acknowledged.
    pub sent_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Payload bytes sent again over another subflow.
    pub reinjected_bytes: u64,
    /// Segments that TCP has sent again, by slot. What a subflow sent again between the last reading
    /// and its end is missing.
    pub retransmits: BTreeMap<Slot, u64>,
}
