//! Session status reports.

use std::sync::atomic::{AtomicU64, Ordering};

use hawser_endhost::{Path, ScionAddr, on_plain_ip};
use hawser_path::{Decision, Fingerprint};

use crate::plane::lane::SealedLane;
use crate::report::{
    DecisionReport, Failover, Failovers, PacketCounts, PathReport, PathState, Traffic, now_ms,
};

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
pub(crate) struct RetiredPaths(Vec<PathReport>);

impl RetiredPaths {
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
        self.traffic.add_bytes(&other.traffic);
        self.packets += other.packets;
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
            traffic: Traffic::of(count(&counters.sent_bytes), count(&counters.received_bytes)),
            packets: PacketCounts {
                sent_packets: count(&counters.sent_packets),
                received_packets: count(&counters.received_packets),
                dropped_packets: count(&counters.dropped),
                rejected_packets: lane.opener().rejections().total(),
            },
            retransmits: 0,
        }
    }
}
