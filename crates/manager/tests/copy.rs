//! A transfer on virtual time that obeys the path manager: it copies bytes over two paths, one of
//! which fails and then works again.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_manager::{Action, Carried, Failure, Order, PathOptions, PathSet, SubflowId};
use hawser_path::{Fingerprint, Interface, Metadata, Path};

const STEP: Duration = Duration::from_millis(10);

/// Bytes that a path carries in a step.
const RATE: u64 = 10_000;

/// A path of one link.
fn path(id: u16) -> Arc<Path> {
    let [src, dst] = ["1-ff00:0:1", "1-ff00:0:2"].map(|text| text.parse().unwrap());
    let interfaces = [src, dst].map(|isd_as| Interface { isd_as, id });
    Arc::new(Path::new(src, dst, interfaces.to_vec(), Metadata::default()).unwrap())
}

/// A subflow: its path, when it is connected, and whether it may be used.
struct Flow {
    path: Fingerprint,
    ready: Instant,
    connected: bool,
    held: bool,
    bytes: u64,
}

#[test]
fn a_copy_continues_when_a_path_fails_and_uses_it_again() {
    let (one, two) = (path(1), path(2));
    let begun = Instant::now();
    let at = |ms| begun + Duration::from_millis(ms);
    // The first path is down for three seconds.
    let is_down = |path, now| path == one.fingerprint() && (at(1000)..at(4000)).contains(&now);
    let mut set = PathSet::new(PathOptions::default());
    set.offer(&[Arc::clone(&one), Arc::clone(&two)], |_| Ok(()), begun);
    let mut flows: BTreeMap<SubflowId, Flow> = BTreeMap::new();
    let mut carried: BTreeMap<Fingerprint, Vec<(Instant, u64)>> = BTreeMap::new();
    let mut missing: u64 = 12_000_000;
    let mut now = begun;
    while missing > 0 {
        assert!(now < at(60_000), "{missing} bytes are still missing");
        for (&subflow, flow) in &mut flows {
            if !flow.connected && now >= flow.ready && !is_down(flow.path, now) {
                flow.connected = true;
                set.connected(subflow, Some(STEP), now);
            }
        }
        let lost = flows
            .iter()
            .filter(|(_, flow)| is_down(flow.path, now) && (flow.connected || now >= flow.ready));
        let lost: Vec<SubflowId> = lost.map(|(subflow, _)| *subflow).collect();
        for subflow in lost {
            let failure = match flows.remove(&subflow).unwrap().connected {
                true => Failure::Closed,
                false => Failure::Failed,
            };
            set.lost(subflow, failure, "the path is down".into(), now);
        }
        for flow in flows
            .values_mut()
            .filter(|flow| flow.connected && !flow.held)
        {
            let bytes = RATE.min(missing);
            missing -= bytes;
            flow.bytes += bytes;
            carried.entry(flow.path).or_default().push((now, bytes));
        }
        let of = |subflow: SubflowId| Carried {
            bytes: flows[&subflow].bytes,
            usable: missing > 0,
        };
        set.tick(of, now);
        for Order {
            subflow,
            path,
            action,
            ..
        } in set.orders(now)
        {
            match action {
                Action::Dial => {
                    let flow = Flow {
                        path,
                        ready: now + 2 * STEP,
                        connected: false,
                        held: false,
                        bytes: 0,
                    };
                    flows.insert(subflow, flow);
                }
                Action::Hold | Action::Resume => {
                    flows.get_mut(&subflow).unwrap().held = action == Action::Hold;
                }
                Action::Close { .. } => drop(flows.remove(&subflow)),
            }
        }
        now += STEP;
    }
    let first = &carried[&one.fingerprint()];
    let used = |from, to| {
        first
            .iter()
            .any(|(when, _)| (at(from)..at(to)).contains(when))
    };
    assert!(used(0, 1000) && !used(1000, 4000));
    // The longest pause is 4 s.
    assert!(used(4000, 9000), "it works again and is not used");
    let of_second: u64 = carried[&two.fingerprint()]
        .iter()
        .map(|(_, bytes)| bytes)
        .sum();
    let of_first: u64 = first.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(of_first + of_second, 12_000_000);
}
