//! The status as metrics of Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use hawser_http::{Metric, MetricKind, Metrics};

use super::StatusReport;
use crate::address::Slot;
use crate::protocol::Role;
use crate::report::{PacketCounts, PathState, SessionReport, Totals, Traffic};

/// A session's labels: the other host without its port, and this host's side. Sessions with the same
/// ones are added up.
type Peer<'a> = (&'a str, Role);

/// The name of a metric, its type, its description, and its value for one set of labels.
type Family<T> = (&'static str, MetricKind, &'static str, fn(&T) -> u64);

/// The metrics of one shim in Prometheus' text format (version 0.0.4). There is a series for each
/// peer and for each of its slots, none for a connection: their number is bounded by the number of
/// hosts that may connect.
pub fn metrics(status: &StatusReport) -> String {
    let mut text = Metrics::default();
    let up = u64::from(status.up);
    add(&mut text, "up", GAUGE, "Whether the carrier runs.").value(&[], up);
    let open = status.connections.len() as u64;
    add(
        &mut text,
        "connections",
        GAUGE,
        "Connections that are open.",
    )
    .value(&[], open);
    let begun = open + status.connections_ended;
    add(
        &mut text,
        "connections_total",
        COUNTER,
        "Connections relayed.",
    )
    .value(&[], begun);
    let subflows = status.connections.iter().map(|one| one.subflows.len());
    let subflows = subflows.sum::<usize>() as u64;
    add(
        &mut text,
        "subflows",
        GAUGE,
        "Subflows of open connections.",
    )
    .value(&[], subflows);
    add(
        &mut text,
        "setups_failed_total",
        COUNTER,
        "Connections that could not be set up.",
    )
    .value(&[], status.setups_failed);
    peers(status, &mut text);
    slots(status, &mut text);
    text.into_text()
}

fn peers(status: &StatusReport, text: &mut Metrics) {
    let mut peers: BTreeMap<Peer<'_>, OfPeer> = BTreeMap::new();
    for session in &status.sessions {
        let peer = peers.entry(peer(session)).or_default();
        let up = session
            .paths
            .iter()
            .filter(|path| path.state == PathState::Up);
        peer.lanes_up += up.count() as u64;
        peer.connections += status.connections_of(session).count() as u64;
        peer.failovers += session.failovers.count;
        peer.unsent_packets += session.unsent_packets;
        if let Some(totals) = &session.totals {
            peer.totals.push(totals);
        }
    }
    let all: [Family<OfPeer<'_>>; 7] = [
        ("lanes_up", GAUGE, "Paths that deliver.", |one| one.lanes_up),
        (
            "peer_connections",
            GAUGE,
            "Connections with the peer that are open.",
            |one| one.connections,
        ),
        (
            "failovers_total",
            COUNTER,
            "Paths that worked and failed under connections.",
            |one| one.failovers,
        ),
        (
            "relay_unsent_packets_total",
            COUNTER,
            "UDP datagrams and echo requests of the peer's programs that could not be sent on.",
            |one| one.unsent_packets,
        ),
        (
            "payload_sent_bytes_total",
            COUNTER,
            "Bytes of programs that the peer has acknowledged.",
            |one| one.sum(|totals| totals.sent_bytes),
        ),
        (
            "payload_received_bytes_total",
            COUNTER,
            "Bytes of programs received.",
            |one| one.sum(|totals| totals.received_bytes),
        ),
        (
            "payload_reinjected_bytes_total",
            COUNTER,
            "Bytes of programs sent again over another subflow.",
            |one| one.sum(|totals| totals.reinjected_bytes),
        ),
    ];
    for (name, kind, help, value) in all {
        let mut metric = add(text, name, kind, help);
        for (peer, counted) in &peers {
            metric.value(&[("peer", &peer.0), role(peer)], value(counted));
        }
    }
}

#[derive(Default)]
struct OfPeer<'a> {
    lanes_up: u64,
    connections: u64,
    failovers: u64,
    unsent_packets: u64,
    totals: Vec<&'a Totals>,
}

impl OfPeer<'_> {
    fn sum(&self, of: fn(&Totals) -> u64) -> u64 {
        self.totals.iter().map(|totals| of(totals)).sum()
    }
}

/// What was counted under one slot.
#[derive(Default)]
struct OfSlot {
    traffic: Traffic,
    packets: PacketCounts,
    retransmits: u64,
    rtt_seconds: Option<f64>,
    paths: BTreeSet<String>,
}

fn slots(status: &StatusReport, text: &mut Metrics) {
    let mut slots: BTreeMap<(Peer<'_>, Slot), OfSlot> = BTreeMap::new();
    for session in &status.sessions {
        for path in &session.paths {
            let Some(slot) = path.slot else { continue };
            let one = slots.entry((peer(session), slot)).or_default();
            one.traffic.add_bytes(&path.traffic);
            one.packets += path.packets;
            one.retransmits += path.retransmits;
            let rtt = path.rtt_ms.map(|rtt| rtt / 1e3);
            one.rtt_seconds = one.rtt_seconds.into_iter().chain(rtt).reduce(f64::min);
            one.paths.extend(path.fingerprint.clone());
        }
    }
    let all: [Family<OfSlot>; 7] = [
        (
            "path_sent_bytes_total",
            COUNTER,
            "Bytes sent over the slot's path, from the SCION/UDP payload on.",
            |one| one.traffic.sent_bytes,
        ),
        (
            "path_received_bytes_total",
            COUNTER,
            "Bytes received.",
            |one| one.traffic.received_bytes,
        ),
        ("path_sent_packets_total", COUNTER, "Packets sent.", |one| {
            one.packets.sent_packets
        }),
        (
            "path_received_packets_total",
            COUNTER,
            "Packets received.",
            |one| one.packets.received_packets,
        ),
        (
            "path_dropped_packets_total",
            COUNTER,
            "Packets that this host had no room for.",
            |one| one.packets.dropped_packets,
        ),
        (
            "path_rejected_packets_total",
            COUNTER,
            "Packets refused: forged, received before, or too old.",
            |one| one.packets.rejected_packets,
        ),
        (
            "retransmits_total",
            COUNTER,
            "Segments that TCP has sent again over the slot.",
            |one| one.retransmits,
        ),
    ];
    for (name, kind, help, value) in all {
        let mut metric = add(text, name, kind, help);
        for ((peer, slot), counted) in &slots {
            metric.value(
                &[("peer", &peer.0), role(peer), ("slot", slot)],
                value(counted),
            );
        }
    }
    let mut rtt = add(text, "path_rtt_seconds", GAUGE, "The round-trip time.");
    for ((peer, slot), counted) in &slots {
        if let Some(seconds) = counted.rtt_seconds {
            rtt.value(&[("peer", &peer.0), role(peer), ("slot", slot)], seconds);
        }
    }
    let help = "The path under a slot, by its fingerprint; always 1.";
    let mut info = add(text, "path_info", GAUGE, help);
    for ((peer, slot), counted) in &slots {
        for path in &counted.paths {
            let labels: [(&str, &dyn Display); 4] = [
                ("peer", &peer.0),
                role(peer),
                ("slot", slot),
                ("path", path),
            ];
            info.value(&labels, 1);
        }
    }
}

fn peer(session: &SessionReport) -> Peer<'_> {
    // The port behind the host's address.
    let host = session.peer.rsplit_once(':').map(|(host, _)| host);
    (host.unwrap_or(&session.peer), session.role)
}

fn role<'a>(peer: &Peer<'_>) -> (&'static str, &'a dyn Display) {
    match peer.1 {
        Role::Client => ("role", &"client"),
        Role::Server => ("role", &"server"),
    }
}

const GAUGE: MetricKind = MetricKind::Gauge;
const COUNTER: MetricKind = MetricKind::Counter;

fn add<'a>(text: &'a mut Metrics, name: &str, kind: MetricKind, help: &str) -> Metric<'a> {
    text.add(format!("hawser_shim_{name}"), kind, help)
}
