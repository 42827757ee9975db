//! Counters of the router.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::reason::Reason;

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

/// Packets not passed on, by reason.
#[derive(Default)]
pub(crate) struct Drops([u64; Reason::ALL.len()]);

impl Drops {
    #[inline]
    pub fn add(&mut self, reason: Reason, packets: u64) {
        self.0[reason as usize] += packets;
    }

    pub fn by_name(&self) -> BTreeMap<String, u64> {
        Reason::ALL
            .iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.name().to_owned(), count))
            .collect()
    }
}
