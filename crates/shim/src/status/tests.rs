use super::*;
use crate::address::{Block, Slot};
use crate::choice::CarrierKind;
use crate::protocol::Role;
use crate::report::{
    Failover, Failovers, PacketCounts, PathState, SessionTotals, StreamsReport, SubflowState,
    Traffic,
};

fn address() -> std::net::Ipv6Addr {
    Block::of(&hawser_keys::PeerKey([7; 32]), 0).address(0)
}

fn path(lane: u64, slot: Slot, bytes: u64) -> PathReport {
    PathReport {
        lane,
        slot: Some(slot),
        fingerprint: Some(format!("0000000{lane}")),
        plain_ip: None,
        interfaces: vec![
            "1-ff00:0:1#1".parse().unwrap(),
            "1-ff00:0:2#4".parse().unwrap(),
        ],
        state: PathState::Up,
        rtt_ms: Some(20.5),
        datagram_bytes: 1392,
        stream_bytes: 0,
        traffic: Traffic::of(bytes, bytes / 10),
        packets: PacketCounts {
            sent_packets: bytes / 1000,
            received_packets: bytes / 2000,
            dropped_packets: 1,
            rejected_packets: 2,
        },
        retransmits: 0,
    }
}

fn connection(id: u64, bytes: u64) -> ConnectionReport {
    let subflow = |id, slot, sent_bytes| SubflowReport {
        id,
        slot: Some(slot),
        path: None,
        state: SubflowState::Open,
        rtt_ms: 21.0,
        congestion_window_bytes: 14_000,
        traffic: Traffic::of(sent_bytes, 0),
        retransmits: 3,
    };
    ConnectionReport {
        id,
        peer: None,
        address: address(),
        role: Role::Client,
        carrier: CarrierKind::Mptcp,
        source: "10.0.1.1:40000".parse().unwrap(),
        destination: "10.1.0.1:443".parse().unwrap(),
        age_ms: 12_000,
        traffic: Traffic::of(bytes, 0),
        reinjected_bytes: 0,
        subflows: vec![subflow(0, 1, bytes / 2), subflow(1, 2, bytes / 2)],
        error: None,
    }
}

fn held(uptime_ms: u64, bytes: u64) -> HolderReport {
    HolderReport {
        uptime_ms,
        attached: true,
        connections: vec![connection(4, bytes)],
        connections_ended: 3,
        setups_failed: 2,
        failures: Vec::new(),
        sessions: vec![SessionTotals {
            address: address(),
            role: Role::Client,
            totals: Totals {
                connections: 4,
                sent_bytes: bytes,
                received_bytes: 0,
                reinjected_bytes: 9,
                retransmits: [(1, 5)].into(),
            },
        }],
        problem: None,
    }
}

fn carrier(uptime_ms: u64, bytes: u64) -> CarrierReport {
    CarrierReport {
        uptime_ms,
        sessions: vec![SessionReport {
            peer: "1-ff00:0:4,10.0.4.1:31800".into(),
            key: Some("SHA256:abc".into()),
            role: Role::Client,
            address: Some(address()),
            carrier: "mptcp".into(),
            streams: StreamsReport::default(),
            paths: vec![path(8, 2, bytes), path(9, 1, bytes)],
            shared: Vec::new(),
            lost: Vec::new(),
            failovers: Failovers {
                count: 1,
                latest: Some(Failover {
                    at_ms: 1,
                    slot: 1,
                    fingerprint: None,
                    reason: "link down".into(),
                }),
            },
            unsent_packets: 0,
            decisions: Vec::new(),
            error: None,
            totals: None,
        }],
    }
}

#[test]
fn holder_and_carrier_are_joined() {
    let status = StatusReport::new(held(1000, 0), Some(carrier(500, 0)));
    let session = &status.sessions[0];
    assert_eq!(session.totals.as_ref().unwrap().connections, 4);
    let slots: Vec<_> = session
        .paths
        .iter()
        .map(|one| (one.slot, one.retransmits))
        .collect();
    assert_eq!(slots, [(Some(1), 5), (Some(2), 0)]);
    let connection = &status.connections[0];
    assert_eq!(connection.peer.as_ref(), Some(&session.peer));
    let paths = connection.subflows.iter().map(|one| one.path.as_deref());
    assert_eq!(
        paths.collect::<Vec<_>>(),
        [Some("00000009"), Some("00000008")]
    );
    assert_eq!(status.connections_of(session).count(), 1);
    let alone = StatusReport::new(held(1000, 0), None);
    assert!(!alone.up && alone.sessions.is_empty() && alone.connections[0].peer.is_none());
}

#[test]
fn rates_are_differences() {
    let before = StatusReport::new(held(1000, 0), Some(carrier(500, 0)));
    let now = StatusReport::new(held(1500, 125_000), Some(carrier(1000, 250_000)));
    let now = now.with_rates(&before);
    let path = &now.sessions[0].paths[0].traffic;
    assert_eq!((path.sent_mbit, path.received_mbit), (Some(4.0), Some(0.4)));
    let connection = &now.connections[0];
    let traffic = &connection.traffic;
    assert_eq!(
        (traffic.sent_mbit, traffic.received_mbit),
        (Some(2.0), Some(0.0))
    );
    assert_eq!(connection.subflows[1].traffic.sent_mbit, Some(1.0));
    // Another carrier, another lane, another connection.
    let mut later = carrier(900, 1_000_000);
    let rates = |later: CarrierReport| {
        let status = StatusReport::new(held(1500, 0), Some(later)).with_rates(&now);
        status.sessions[0].paths[0].traffic.sent_mbit
    };
    assert_eq!(rates(later.clone()), None);
    later.uptime_ms = 2000;
    assert_eq!(rates(later.clone()), Some(6.0));
    later.sessions[0].paths[1].lane = 77;
    assert_eq!(rates(later), None);
}

#[test]
fn fields_have_the_names_of_the_documentation() {
    let before = StatusReport::new(held(1000, 0), Some(carrier(500, 0)));
    let now = StatusReport::new(held(1500, 10), Some(carrier(1000, 10))).with_rates(&before);
    let json = serde_json::to_value(&now).unwrap();
    let page = include_str!("../../../../docs/tcp-programs.md");
    let mut names = Vec::new();
    collect(&json, &mut names);
    for name in names {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not on the page"
        );
    }
    assert_eq!(serde_json::from_value::<StatusReport>(json).unwrap(), now);
}

/// All names of fields, without the keys of maps by slot.
fn collect(value: &serde_json::Value, names: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                if name.parse::<Slot>().is_err() {
                    names.push(name.clone());
                }
                collect(value, names);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|one| collect(one, names)),
        _ => {}
    }
}

#[test]
fn metrics_are_prometheus_text() {
    let mut both = carrier(500, 4000);
    // A second session with the same host, of another port: added up.
    let mut second = both.sessions[0].clone();
    second.peer = "1-ff00:0:4,10.0.4.1:31801".into();
    second.address = None;
    second.paths.truncate(1);
    both.sessions.push(second);
    let text = metrics(&StatusReport::new(held(1000, 70), Some(both)));
    let peer = "peer=\"1-ff00:0:4,10.0.4.1\",role=\"client\"";
    for line in [
        "# TYPE hawser_shim_connections_total counter".to_owned(),
        "hawser_shim_up 1".to_owned(),
        "hawser_shim_connections 1".to_owned(),
        "hawser_shim_connections_total 4".to_owned(),
        "hawser_shim_subflows 2".to_owned(),
        "hawser_shim_setups_failed_total 2".to_owned(),
        format!("hawser_shim_lanes_up{{{peer}}} 3"),
        format!("hawser_shim_peer_connections{{{peer}}} 1"),
        format!("hawser_shim_failovers_total{{{peer}}} 2"),
        format!("hawser_shim_payload_sent_bytes_total{{{peer}}} 70"),
        format!("hawser_shim_path_sent_bytes_total{{{peer},slot=\"2\"}} 8000"),
        format!("hawser_shim_retransmits_total{{{peer},slot=\"1\"}} 5"),
        format!("hawser_shim_path_rtt_seconds{{{peer},slot=\"1\"}} 0.0205"),
        format!("hawser_shim_path_info{{{peer},slot=\"1\",path=\"00000009\"}} 1"),
    ] {
        assert!(
            text.lines().any(|one| one == line),
            "{line} is missing in:\n{text}"
        );
    }
    // Each name has one head, and a page has all of them.
    let page = include_str!("../../../../docs/tcp-programs.md");
    let heads = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: Vec<&str> = heads.filter_map(|head| head.split(' ').next()).collect();
    let distinct: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len());
    for name in names {
        assert!(
            page.contains(&format!("`{name}")),
            "{name} is not on the page"
        );
    }
}
