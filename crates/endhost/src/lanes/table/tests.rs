use std::collections::HashSet;
use std::net::Ipv4Addr;

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
    table.remember(flow, key);
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
