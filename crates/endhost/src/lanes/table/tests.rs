use std::collections::HashSet;
use std::net::Ipv4Addr;

use hawser_address::IsdAsn;
use hawser_path::{Interface, Metadata};
use proptest::prelude::*;

use super::*;
use crate::path::Path;

fn isd_as() -> IsdAsn {
    "1-ff00:0:1".parse().unwrap()
}

/// The router that packets come from.
fn router() -> SocketAddr {
    "10.0.0.9:1".parse().unwrap()
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
    if let Some(seen) = table.by_key(key, router()) {
        return seen.flow;
    }
    let flow = table.flow(headers(remote), &[], 1).id;
    table.consider(flow, key, headers(remote), 1).flow
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
    for remote in 2..5 * MAX_UNUSED_FLOWS as u32 {
        for key in 0..3 * KEYS as u32 {
            packet(&flows, remote, &(remote << 8 | key).to_be_bytes());
        }
    }
    let (all, idle, by_path, by_key) = sizes(&flows);
    assert_eq!(
        (all, idle, by_path),
        (MAX_UNUSED_FLOWS + 1, MAX_UNUSED_FLOWS, MAX_UNUSED_FLOWS + 1)
    );
    assert_eq!(by_key, MAX_UNUSED_FLOWS * KEYS);
    assert!(flows.find(first).is_none(), "the oldest is gone");
    assert!(flows.find(used.flow.id).is_some());
    // A flow that returns has a new number.
    assert_ne!(packet(&flows, 1, &1u32.to_be_bytes()), first);
}

#[test]
fn a_use_may_end_while_a_batch_is_read() {
    let flows = Arc::new(Flows::default());
    let used = flows.open(headers(1), &[], 1);
    let id = used.flow.id;
    // As long as there is a batch, its thread has the table locked.
    let batch = flows.lock();
    drop(used);
    drop(batch);
    assert_eq!(sizes(&flows), (1, 1, 1, 0), "the flow rests");
    assert_eq!(flows.open(headers(1), &[], 1).flow.id, id);
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
    let path = Path::new(info, raw, Some(router())).unwrap();
    let local = ScionAddr::new(src, "10.0.0.1:1".parse().unwrap());
    Headers::new(
        local,
        ScionAddr::new(dst, "10.0.0.2:2".parse().unwrap()),
        &path,
    )
    .unwrap()
}

/// The MAC of the path that answers of `flow` take.
fn mac(flow: &Flow) -> u8 {
    flow.headers().path().last().copied().unwrap()
}

/// Handles a packet over the path with this MAC. The answer is a candidate, if the path is one.
fn packet_over(flows: &Flows, mac: u8, expiry: u64) -> Option<Arc<Candidate>> {
    let mut table = flows.lock();
    let flow = table.flow(headers_over(mac), &[1], expiry).id;
    let seen = table.consider(flow, &[mac], headers_over(mac), expiry);
    assert_eq!(seen.flow, flow);
    seen.candidate
}

#[test]
fn only_packets_that_open_change_the_path_of_answers() {
    let flows = Arc::new(Flows::default());
    let (soon, far) = (unix_now() + 10, unix_now() + 3600);
    let opened = |mac: u8, expiry: u64| {
        if let Some(candidate) = packet_over(&flows, mac, expiry) {
            flows.lock().adopt(&candidate);
        }
    };
    assert!(packet_over(&flows, 1, far).is_none(), "it is the path");
    let flow = flows.find(FlowId(1)).unwrap();
    // Without a lane every other path is a candidate, and changes nothing by itself.
    assert!(packet_over(&flows, 2, far + 1).is_some());
    assert_eq!((mac(&flow), flow.expiry()), (1, far));
    opened(3, far - 1);
    assert_eq!((mac(&flow), flow.expiry()), (3, far - 1));
    // A lane keeps its path while it lasts.
    let lane = flows.hold(flow.id, None).unwrap();
    assert!(packet_over(&flows, 4, far).is_none());
    // It expires soon.
    flow.refresh(headers_over(5), soon);
    let candidate = packet_over(&flows, 6, far).unwrap();
    assert_eq!(mac(&flow), 5);
    assert!(packet_over(&flows, 7, soon).is_none(), "it lasts no longer");
    opened(8, far - 10);
    assert_eq!((mac(&flow), flow.expiry()), (8, far - 10));
    // What was a candidate before is none now.
    flows.lock().adopt(&candidate);
    assert_eq!(mac(&flow), 8);
    drop(lane);
    // A path that this side chose is not replaced.
    let lane = flows.open(headers_over(9), &[1], soon);
    assert!(packet_over(&flows, 10, far).is_none());
    flows.lock().adopt(&candidate);
    assert_eq!((mac(&flow), lane.flow.id), (9, flow.id));
}

#[test]
fn a_lane_takes_the_path_of_the_packet_it_answers() {
    let flows = Arc::new(Flows::default());
    let far = unix_now() + 3600;
    assert!(packet_over(&flows, 1, far).is_none());
    let shorter = packet_over(&flows, 2, far - 1).unwrap();
    let longer = packet_over(&flows, 3, far + 1).unwrap();
    let flow = flows.find(FlowId(1)).unwrap();
    let lane = flows.hold(flow.id, Some(&shorter)).unwrap();
    assert_eq!((mac(&flow), flow.expiry()), (2, far - 1));
    // Another lane needs it.
    let second = flows.hold(flow.id, Some(&longer)).unwrap();
    assert_eq!(mac(&flow), 2);
    // No lane needs a path that has expired.
    flow.refresh(headers_over(4), unix_now());
    let third = flows.hold(flow.id, Some(&longer)).unwrap();
    assert_eq!(mac(&flow), 3);
    drop((lane, second, third));
    // The candidate of another flow is none of this.
    assert!(packet(&flows, 1, b"key") != flow.id);
    flows.hold(FlowId(2), Some(&longer)).unwrap();
    assert_eq!(flows.find(FlowId(2)).unwrap().expiry(), 1);
}

#[test]
fn one_answer_takes_the_path_of_its_packet() {
    let flow = Flow::new(FlowId(1), headers_over(1), &[1], 10);
    let candidate = Candidate {
        flow: flow.id,
        headers: headers_over(2),
        expiry: 20,
    };
    let answer = flow.over(&candidate);
    assert_eq!((mac(&answer), answer.expiry(), answer.id), (2, 20, flow.id));
    assert_eq!((mac(&flow), flow.expiry()), (1, 10));
}

#[test]
fn packets_over_another_path_are_considered_again() {
    let flows = Arc::new(Flows::default());
    let far = unix_now() + 3600;
    packet_over(&flows, 1, far);
    let flow = flows.find(FlowId(1)).unwrap();
    let lane = flows.hold(flow.id, None).unwrap();
    assert!(packet_over(&flows, 2, far + 1).is_none());
    let mut table = flows.lock();
    let seen = |table: &Table, mac: u8| table.by_key(&[mac], router());
    assert!(seen(&table, 2).is_some_and(|seen| seen.candidate.is_none()));
    table.by_key.get_mut(&[2][..]).unwrap().again = Some(Instant::now());
    assert!(seen(&table, 2).is_none());
    assert_eq!(seen(&table, 1).unwrap().flow, flow.id);
    flow.refresh(headers_over(1), unix_now() + 10);
    let candidate = table.consider(flow.id, &[2], headers_over(2), far + 1);
    let candidate = candidate.candidate.unwrap();
    // All packets over the path show it, until it is adopted: but for those of another router.
    let shown = seen(&table, 2).unwrap().candidate.unwrap();
    assert!(Arc::ptr_eq(&shown, &candidate));
    let other = "10.0.0.8:1".parse().unwrap();
    assert!(table.by_key(&[2], other).is_none());
    table.adopt(&candidate);
    assert!(seen(&table, 1).is_none() && seen(&table, 2).is_none());
    table.consider(flow.id, &[2], headers_over(2), far + 1);
    assert!(table.by_key[&[2][..]].again.is_none());
    assert_eq!(table.flows[&flow.id].keys.len(), 2);
    drop(table);
    drop(lane);
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
                    used.extend(flows.hold(id, None));
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
            prop_assert!(idle <= MAX_UNUSED_FLOWS);
        }
    }
}
