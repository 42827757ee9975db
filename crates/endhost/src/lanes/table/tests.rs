use std::collections::HashSet;
use std::net::Ipv4Addr;

use hawser_path::{Interface, Metadata};
use proptest::prelude::*;
use sciparse::identifier::isd_asn::IsdAsn;

use super::*;
use crate::path::Path;

fn isd_as() -> IsdAsn {
    "1-ff00:0:1".parse().unwrap()
}

/// Headers of packets to the remote with this number.
fn headers(remote: u32) -> Headers {
    let local = ScionAddr::new(isd_as(), "10.0.0.1:1".parse().unwrap());
    let host = (Ipv4Addr::from(0x0a01_0000 + remote), 2).into();
    let path = Path::within(isd_as(), 1472);
    Headers::new(local, ScionAddr::new(isd_as(), host), &path).unwrap()
}

/// Handles a packet from the remote with this number.
fn packet(flows: &Flows, remote: u32, key: &[u8]) -> FlowId {
    let mut table = flows.lock();
    if let Some(flow) = table.by_key(key) {
        return flow;
    }
    let flow = table.flow(headers(remote), &[], 1).id;
    table.consider(flow, key, headers(remote), 1);
    flow
}

fn sizes(flows: &Flows) -> (usize, usize, usize, usize) {
    let table = flows.lock();
    let (all, idle) = (table.flows.len(), table.idle.len());
    (all, idle, table.by_path.len(), table.by_key.len())
}

#[test]
fn a_flow_has_one_number() {
    let flows = Arc::new(Flows::default());
    let used = flows.open(headers(1), &[], 1);
    let id = used.flow.id;
    assert_eq!(packet(&flows, 1, b"key"), id);
    assert_eq!(packet(&flows, 1, b"another"), id);
    assert_eq!(flows.open(headers(1), &[], 1).flow.id, id);
    assert_ne!(
        flows.open(headers(1), &[1, 2], 1).flow.id,
        id,
        "another path"
    );
    assert_ne!(flows.open(headers(2), &[], 1).flow.id, id, "another remote");
    assert_eq!(flows.find(id).unwrap().remote, headers(1).remote);
    assert!(flows.find(FlowId(0)).is_none());
}

#[test]
fn only_unused_flows_are_removed() {
    let flows = Arc::new(Flows::default());
    let used = flows.open(headers(0), &[], 1);
    let first = packet(&flows, 1, &1u32.to_be_bytes());
    for remote in 2..5 * IDLE as u32 {
        for key in 0..3 * KEYS as u32 {
            packet(&flows, remote, &(remote << 8 | key).to_be_bytes());
        }
    }
    let (all, idle, by_path, by_key) = sizes(&flows);
    assert_eq!((all, idle, by_path), (IDLE + 1, IDLE, IDLE + 1));
    assert_eq!(by_key, IDLE * KEYS);
    assert!(flows.find(first).is_none(), "the oldest is gone");
    assert!(flows.find(used.flow.id).is_some());
    // A flow that returns has a new number.
    assert_ne!(packet(&flows, 1, &1u32.to_be_bytes()), first);
}

#[test]
fn opening_a_lane_replaces_the_headers() {
    let flows = Arc::new(Flows::default());
    let used = flows.open(headers(1), &[], 5);
    let again = flows.open(headers(1), &[], 9);
    assert_eq!(used.flow.expiry(), 9);
    used.flow.refresh(headers(1), 12);
    assert_eq!(again.flow.expiry(), 12);
}

/// Headers over a path of two hops, the second of which has this MAC.
fn headers_over(mac: u8) -> Headers {
    let (src, dst): (IsdAsn, IsdAsn) = (isd_as(), "1-ff00:0:2".parse().unwrap());
    let mut raw = (2u32 << 12).to_be_bytes().to_vec();
    raw.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    for (ingress, egress, mac) in [(0, 1, 0), (1, 0, mac)] {
        raw.extend_from_slice(&[0, 63, 0, ingress, 0, egress]);
        raw.extend_from_slice(&[mac; 6]);
    }
    let interfaces = [src, dst].map(|isd_as| Interface { isd_as, id: 1 });
    let info = hawser_path::Path::new(src, dst, interfaces.into(), Metadata::default()).unwrap();
    let path = Path::new(info, raw, Some("10.0.0.9:1".parse().unwrap())).unwrap();
    let local = ScionAddr::new(src, "10.0.0.1:1".parse().unwrap());
    Headers::new(
        local,
        ScionAddr::new(dst, "10.0.0.2:2".parse().unwrap()),
        &path,
    )
    .unwrap()
}

#[test]
fn answers_keep_their_path_while_it_lasts() {
    let flows = Arc::new(Flows::default());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let far = now.as_secs() + 3600;
    // A packet over the path with this MAC; returns the MAC in answers after it.
    let packet = |mac: u8, expiry: u64| {
        let mut table = flows.lock();
        let flow = Arc::clone(table.flow(headers_over(mac), &[1], expiry));
        table.consider(flow.id, &[mac], headers_over(mac), expiry);
        let answer = flow.headers().path().last().copied().unwrap();
        (answer, flow.expiry(), flow.id)
    };
    let (answer, _, id) = packet(1, far);
    assert_eq!(answer, 1);
    // A copy with another path that lasts as long, or less.
    assert_eq!(packet(2, far).0, 1);
    assert_eq!(packet(3, far - 1).0, 1);
    // A lane keeps its path; without one, a path that lasts longer replaces it.
    let lane = flows.hold(id).unwrap();
    assert_eq!(packet(4, far + 1).0, 1);
    drop(lane);
    assert_eq!(packet(4, far + 1).0, 4);
    // A lane's path that expires soon is replaced by one that lasts longer.
    let lane = flows.hold(id).unwrap();
    lane.flow.refresh(headers_over(5), now.as_secs() + 10);
    assert_eq!(packet(6, now.as_secs() + 9).0, 5);
    assert_eq!(packet(6, far).0, 6);
    drop(lane);
    // A path that this side chose is not replaced.
    let lane = flows.open(headers_over(7), &[1], now.as_secs() + 10);
    assert_eq!(packet(8, far), (7, now.as_secs() + 10, id));
    drop(lane);
    assert_eq!(packet(8, far).0, 8);
}

#[test]
fn packets_over_another_path_are_considered_again() {
    let flows = Arc::new(Flows::default());
    let mut table = flows.lock();
    let id = table.flow(headers_over(1), &[1], 100).id;
    table.consider(id, b"first", headers_over(1), 100);
    table.consider(id, b"other", headers_over(2), 100);
    assert_eq!(table.by_key(b"other"), Some(id));
    table.by_key.get_mut(&b"other"[..]).unwrap().again = Some(Instant::now());
    assert_eq!(table.by_key(b"other"), None);
    assert_eq!(table.by_key(b"first"), Some(id));
    table.consider(id, b"other", headers_over(2), 101);
    assert!(table.by_key[&b"other"[..]].again.is_none());
    assert_eq!(table.flows[&id].keys.len(), 2);
}

#[derive(Debug, Clone)]
enum Step {
    Packet(u32, u8),
    Open(u32),
    Hold(u32),
    Release(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3000u32, any::<u8>()).prop_map(|(remote, key)| Step::Packet(remote, key)),
        (0..50u32).prop_map(Step::Open),
        (0..50u32).prop_map(Step::Hold),
        any::<prop::sample::Index>().prop_map(Step::Release),
    ]
}

proptest! {
    #[test]
    fn flows_in_use_stay_and_numbers_are_never_reused(steps in prop::collection::vec(step(), 1..300)) {
        let flows = Arc::new(Flows::default());
        let mut used: Vec<FlowUse> = Vec::new();
        let mut remotes: HashMap<FlowId, ScionAddr> = HashMap::new();
        for step in steps {
            let id = match step {
                Step::Packet(remote, key) => {
                    Some(packet(&flows, remote, &[&remote.to_be_bytes()[..], &[key]].concat()))
                }
                Step::Open(remote) => {
                    used.push(flows.open(headers(remote), &[], 1));
                    used.last().map(|used| used.flow.id)
                }
                Step::Hold(remote) => {
                    let id = packet(&flows, remote, &remote.to_be_bytes());
                    used.extend(flows.hold(id));
                    Some(id)
                }
                Step::Release(_) if used.is_empty() => None,
                Step::Release(which) => {
                    used.swap_remove(which.index(used.len()));
                    None
                }
            };
            if let Some(id) = id {
                let remote = flows.find(id).unwrap().remote;
                prop_assert_eq!(*remotes.entry(id).or_insert(remote), remote);
            }
            for used in &used {
                prop_assert!(flows.find(used.flow.id).is_some());
            }
            let (all, idle, by_path, _) = sizes(&flows);
            let in_use: HashSet<_> = used.iter().map(|used| used.flow.id).collect();
            prop_assert_eq!((all, by_path), (idle + in_use.len(), all));
            prop_assert!(idle <= IDLE);
        }
    }
}
