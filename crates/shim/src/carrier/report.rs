//! What there is to see of sessions.

use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicU64, Ordering};

use hawser_endhost::Path;
use hawser_path::{Decision, Fingerprint};
use serde::{Deserialize, Serialize};

use super::lane::SealedLane;
use crate::address::Slot;
use crate::link::Role;

/// A session with another host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// The other host.
    pub peer: String,
    /// Its key, once a path is connected.
    pub key: Option<String>,
    /// This host's side.
    pub role: Role,
    /// The other host's address as this one's kernel sees it.
    pub address: Option<Ipv6Addr>,
    /// The lanes.
    pub lanes: Vec<LaneReport>,
    /// Which paths are taken, and why.
    pub decisions: Vec<DecisionReport>,
    /// What failed last.
    pub error: Option<String>,
}

/// A lane of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneReport {
    /// The slot that it carries, if any.
    pub slot: Option<Slot>,
    /// The beginning of its path's fingerprint.
    pub fingerprint: Option<String>,
    /// The path's interfaces; empty if they are unknown.
    pub hops: Vec<String>,
    /// Whether datagrams get through.
    pub up: bool,
    /// The round-trip time, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// The largest datagram, in bytes of SCION/UDP payload.
    pub datagram: usize,
    /// Bytes sent, from the SCION/UDP payload on.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that this host dropped for want of room.
    pub dropped: u64,
    /// Packets received and refused: forged, received before, or too old.
    pub rejected: u64,
}

/// A decision about a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionReport {
    /// The beginning of the path's fingerprint.
    pub fingerprint: String,
    /// Whether it is taken.
    pub verdict: String,
    /// Why.
    pub reason: String,
}

impl DecisionReport {
    pub(crate) fn new(path: Fingerprint, decision: &Decision) -> Self {
        Self {
            fingerprint: path.short(),
            verdict: decision.verdict.to_string(),
            reason: decision.reason.to_string(),
        }
    }
}

impl LaneReport {
    pub(crate) fn of(lane: &SealedLane, path: Option<&Path>) -> Self {
        let counters = &lane.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let path = path.cloned().or_else(|| lane.lane()?.path());
        let fingerprint = path.as_ref().map(Path::fingerprint);
        let fingerprint = fingerprint.or_else(|| Some(lane.lane()?.fingerprint()));
        let hops = path.iter().flat_map(|path| &path.info().interfaces);
        Self {
            slot: lane.table.bound_of(lane.key).map(|bound| bound.slot),
            fingerprint: fingerprint.map(|one| one.short()),
            hops: hops.map(ToString::to_string).collect(),
            up: lane.is_up(),
            rtt_ms: lane.rtt().map(|rtt| rtt.as_secs_f64() * 1e3),
            datagram: lane.datagram(),
            sent_bytes: count(&counters.sent_bytes),
            sent_packets: count(&counters.sent_packets),
            received_bytes: count(&counters.received_bytes),
            received_packets: count(&counters.received_packets),
            dropped: count(&counters.dropped),
            rejected: lane.opener().rejections().total(),
        }
    }
}
