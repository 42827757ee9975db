//! Session status reports.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_endhost::{Path, ScionAddr, on_plain_ip};
use hawser_path::{Decision, Fingerprint, Interface};
use serde::{Deserialize, Serialize};

use super::lane::SealedLane;
use crate::address::Slot;
use crate::holder::ConnectionReport;
use crate::link::Role;
use crate::status::Totals;

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
    /// Bytes sent, from the SCION/UDP payload on.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that this host dropped for want of room.
    pub dropped_packets: u64,
    /// Packets received and refused: forged, received before, or too old.
    pub rejected_packets: u64,
    /// The rate of sent bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub sent_mbit: Option<f64>,
    /// The rate of received bytes between two readings, in Mbit/s.
    #[serde(default)]
    pub received_mbit: Option<f64>,
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

impl Failovers {
    /// Counts that `lane` over `path` fails, if it worked and is under a slot. Called before it is
    /// taken from there.
    pub(crate) fn record(&mut self, lane: &SealedLane, path: Option<&Path>, reason: &str) {
        let bound = lane.table.bound_of(lane.key);
        let Some(bound) = bound.filter(|_| lane.is_up()) else {
            return;
        };
        self.count += 1;
        self.latest = Some(Failover {
            at_ms: now_ms(),
            slot: bound.slot,
            fingerprint: path_of(lane, path).1.map(|one| one.short()),
            reason: reason.to_owned(),
        });
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// The other host's address, as people write it.
pub(super) fn peer(address: ScionAddr) -> String {
    match on_plain_ip(address) {
        Some(host) => format!("{host} on plain IP"),
        None => address.to_string(),
    }
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

/// The path of `lane`, which is `path` if that is known, and its fingerprint; none over plain IP.
fn path_of(lane: &SealedLane, path: Option<&Path>) -> (Option<Path>, Option<Fingerprint>) {
    if on_plain_ip(lane.remote).is_some() {
        return (None, None);
    }
    let path = path.cloned().or_else(|| lane.lane()?.path());
    let fingerprint = path.as_ref().map(Path::fingerprint);
    let fingerprint = fingerprint.or_else(|| Some(lane.lane()?.fingerprint()));
    (path, fingerprint)
}

/// What paths that are not in use any more have carried.
#[derive(Debug, Default)]
pub(crate) struct Lost(Vec<PathReport>);

impl Lost {
    /// Adds a lane that has ended.
    pub(crate) fn add(&mut self, report: PathReport) {
        let mut all = self.0.iter_mut();
        match all.find(|one| one.fingerprint == report.fingerprint) {
            Some(one) => one.add(&report),
            None => self.0.push(PathReport {
                slot: None,
                ..report
            }),
        }
    }

    pub(crate) fn to_reports(&self) -> Vec<PathReport> {
        self.0.clone()
    }
}

impl PathReport {
    /// Adds what another lane over the same path has carried.
    fn add(&mut self, other: &Self) {
        self.stream_bytes += other.stream_bytes;
        self.sent_bytes += other.sent_bytes;
        self.sent_packets += other.sent_packets;
        self.received_bytes += other.received_bytes;
        self.received_packets += other.received_packets;
        self.dropped_packets += other.dropped_packets;
        self.rejected_packets += other.rejected_packets;
    }

    pub(crate) fn of(lane: &SealedLane, path: Option<&Path>, stream_bytes: u64) -> Self {
        let counters = &lane.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (path, fingerprint) = path_of(lane, path);
        let state = match (lane.is_up(), lane.is_doubtful()) {
            (false, _) => PathState::Connecting,
            (true, false) => PathState::Up,
            (true, true) => PathState::Doubtful,
        };
        Self {
            lane: lane.key.0,
            slot: lane.table.bound_of(lane.key).map(|bound| bound.slot),
            fingerprint: fingerprint.map(|one| one.short()),
            plain_ip: on_plain_ip(lane.remote),
            interfaces: path.map_or_else(Vec::new, |path| path.info().interfaces.clone()),
            state,
            rtt_ms: lane.rtt().map(|rtt| rtt.as_secs_f64() * 1e3),
            datagram_bytes: lane.datagram(),
            stream_bytes,
            sent_bytes: count(&counters.sent_bytes),
            sent_packets: count(&counters.sent_packets),
            received_bytes: count(&counters.received_bytes),
            received_packets: count(&counters.received_packets),
            dropped_packets: count(&counters.dropped),
            rejected_packets: lane.opener().rejections().total(),
            sent_mbit: None,
            received_mbit: None,
            retransmits: 0,
        }
    }
}
