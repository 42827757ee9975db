//! What a carrier reports of its sessions.

use std::net::{Ipv6Addr, SocketAddr};

use hawser_path::Interface;
use serde::{Deserialize, Serialize};

use super::connection::ConnectionReport;
use super::totals::Totals;
use super::traffic::{PacketCounts, Traffic};
use crate::address::Slot;
use crate::protocol::Role;

/// What a carrier does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CarrierReport {
    /// Milliseconds since it began.
    pub uptime_ms: u64,
    /// Its sessions.
    pub sessions: Vec<SessionReport>,
}

/// A session with another host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// The other host's shim: a SCION address.
    pub peer: String,
    /// Its key, once a path is connected.
    pub key: Option<String>,
    /// This host's side.
    pub role: Role,
    /// The other host's address as this one's kernel sees it.
    pub address: Option<Ipv6Addr>,
    /// What may carry its connections.
    pub carrier: String,
    /// Its connections that are streams; the others are the holder's. In the status of a shim they
    /// are among all others.
    #[serde(default, skip_serializing_if = "StreamsReport::is_empty")]
    pub streams: StreamsReport,
    /// The paths in use, by slot.
    pub paths: Vec<PathReport>,
    /// The interfaces that several of these paths share, on the side that dials: there the session
    /// gets a share for each of them, as congestion is controlled for each path by itself.
    #[serde(default)]
    pub shared: Vec<Interface>,
    /// What former paths have carried, one entry for each.
    #[serde(default)]
    pub lost: Vec<PathReport>,
    /// How often a path that worked failed under connections.
    pub failovers: Failovers,
    /// UDP datagrams and echo requests of the other host's programs that this host could not send on,
    /// but for ports at which nobody listens.
    #[serde(default)]
    pub unsent_packets: u64,
    /// Which paths are taken, and why; on the side that dials.
    pub decisions: Vec<DecisionReport>,
    /// What failed last, on the side that dials.
    pub error: Option<String>,
    /// What its connections have carried, as the holder counts.
    #[serde(default)]
    pub totals: Option<Totals>,
}

/// Connections that are streams.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamsReport {
    /// Those that are open.
    pub connections: Vec<ConnectionReport>,
    /// What all so far have carried.
    pub totals: Totals,
}

impl StreamsReport {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A path in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// A number that no other path of this process has had.
    pub lane: u64,
    /// The slot that it is under, if any.
    pub slot: Option<Slot>,
    /// The beginning of its fingerprint.
    pub fingerprint: Option<String>,
    /// Where the other host is, if the lane is over plain IP: then there is no path.
    pub plain_ip: Option<SocketAddr>,
    /// Its interfaces; empty if they are unknown.
    pub interfaces: Vec<Interface>,
    /// Whether it delivers.
    pub state: PathState,
    /// The round-trip time, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// The largest datagram, in bytes of SCION/UDP payload.
    pub datagram_bytes: usize,
    /// Bytes of streams sent over its connection, with those that were sent again.
    pub stream_bytes: u64,
    /// Bytes, from the SCION/UDP payload on.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Packets.
    #[serde(flatten)]
    pub packets: PacketCounts,
    /// Segments that TCP has sent again over the slot since the session began.
    #[serde(default)]
    pub retransmits: u64,
}

/// Whether a path delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathState {
    /// Datagrams get through.
    Up,
    /// None has got through yet; segments take the connection beside it.
    Connecting,
    /// An answer is overdue.
    Doubtful,
}

impl PathState {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Connecting => "connecting",
            Self::Doubtful => "doubtful",
        }
    }
}

/// A decision about a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionReport {
    /// The beginning of the path's fingerprint.
    pub fingerprint: String,
    /// `taken`, `waiting` or `left`.
    pub verdict: String,
    /// Why.
    pub reason: String,
}

/// How often a path that worked failed under connections, which went on over others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failovers {
    /// How often, since this process began the session.
    pub count: u64,
    /// The latest one.
    pub latest: Option<Failover>,
}

/// The failure of a path that worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failover {
    /// When: milliseconds since 1970.
    pub at_ms: u64,
    /// The slot that the path was under.
    pub slot: Slot,
    /// The beginning of the path's fingerprint.
    pub fingerprint: Option<String>,
    /// Why.
    pub reason: String,
}
