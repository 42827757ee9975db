//! What was carried, in both directions: parts of the reports of paths, connections and subflows.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Bytes, and the rates between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes sent: of a path from the SCION/UDP payload on; of a connection or subflow the payload that the
    /// other host has acknowledged.
    pub sent_bytes: u64,
    /// Bytes received, as much of each packet.
    pub received_bytes: u64,
    /// The rate of sent bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub sent_mbit: Option<f64>,
    /// The rate of received bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub received_mbit: Option<f64>,
}

/// Packets of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketCounts {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that this host dropped for want of room.
    pub dropped_packets: u64,
    /// Packets received and refused: forged, received before, or too old.
    pub rejected_packets: u64,
}

impl Traffic {
    /// Bytes without rates.
    pub(crate) fn of(sent_bytes: u64, received_bytes: u64) -> Self {
        Self {
            sent_bytes,
            received_bytes,
            sent_mbit: None,
            received_mbit: None,
        }
    }

    /// Adds the bytes of another one, without its rates.
    pub(crate) fn add_bytes(&mut self, other: &Self) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
    }

    /// Sets the rates since `before`, which was read `millis` milliseconds earlier.
    pub(crate) fn set_rates(&mut self, before: &Self, millis: u64) {
        self.sent_mbit = rate(before.sent_bytes, self.sent_bytes, millis);
        self.received_mbit = rate(before.received_bytes, self.received_bytes, millis);
    }
}

impl AddAssign for PacketCounts {
    fn add_assign(&mut self, other: Self) {
        self.sent_packets += other.sent_packets;
        self.received_packets += other.received_packets;
        self.dropped_packets += other.dropped_packets;
        self.rejected_packets += other.rejected_packets;
    }
}

/// The rate at which a counter of bytes has risen, in Mbit/s; `None` without a time, and if it has
/// not risen from there.
fn rate(before: u64, now: u64, millis: u64) -> Option<f64> {
    let bytes = now.checked_sub(before).filter(|_| millis > 0)?;
    Some(bytes as f64 * 8.0 / (millis as f64 * 1e3))
}
