use std::collections::BTreeMap;

use hawser_limit::{Direction, LinkCounters};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::coordinator::NewUserAs;
use crate::coordinator::tests::{attachment_point, isd_as, network};
use crate::link::LinkUsage;
use crate::user::Role;

const PARENT: &str = "1-ff00:0:111";
const CHILD: &str = "1-ff00:0:112";

struct Bed {
    folder: TempDir,
    coordinator: Coordinator,
    program: Actor,
}

impl Bed {
    /// An attachment point, a user AS with a link to it, and two without any, one of them of another ISD.
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        network(&coordinator);
        let program = Actor::program();
        for (user_as, address) in [(CHILD, "10.0.0.3"), ("2-ff00:0:211", "10.0.0.4")] {
            let new = json!({"isd_as": user_as, "label": user_as, "addresses": [address]});
            let new: NewUserAs = serde_json::from_value(new).unwrap();
            coordinator.add_user_as(&program, new).unwrap();
        }
        Self {
            folder,
            coordinator,
            program,
        }
    }

    fn add(&self, kind: &str, ends: [&str; 2]) -> Result<AsLink, ChangeError> {
        let limit = json!({"egress": 8_000_000, "ingress": 2_000_000});
        let new = json!({
            "kind": kind, "ends": ends, "limit": limit, "queue_us": 9000, "delay_us": 5000,
        });
        let new = serde_json::from_value(new).unwrap();
        self.coordinator.add_as_link(&self.program, &new)
    }

    fn refused(&self, kind: &str, ends: [&str; 2]) -> String {
        self.add(kind, ends).unwrap_err().to_string()
    }
}

#[test]
fn only_ases_that_fit_have_links_of_a_kind() {
    let bed = Bed::new();
    let point = "1-ff00:0:110";
    for (kind, ends, text) in [
        ("child", [PARENT, point], "is a core AS"),
        ("child", [point, CHILD], "`/api/v1/links`"),
        ("child", [PARENT, "2-ff00:0:211"], "another ISD"),
        ("child", [PARENT, PARENT], "cannot be both"),
        ("peer", [PARENT, "1-ff00:0:999"], "there is no AS"),
    ] {
        let refused = bed.refused(kind, ends);
        assert!(refused.contains(text), "{kind} {ends:?}: {refused}");
    }
    assert!(bed.coordinator.state().as_links.is_empty());
    bed.add("child", [PARENT, CHILD]).unwrap();
    let refused = bed.refused("child", [CHILD, PARENT]);
    assert!(refused.contains("which is below it"), "{refused}");
    bed.add("peer", [CHILD, "2-ff00:0:211"]).unwrap();
    bed.add("peer", [point, "2-ff00:0:211"]).unwrap();
    bed.add("peer", [CHILD, point]).unwrap();

    let alice = bed.coordinator.add_user(&bed.program, "alice", Role::User);
    let alice = Actor::of(&alice.unwrap().0);
    let new = json!({"kind": "peer", "ends": [PARENT, CHILD]});
    let new = serde_json::from_value(new).unwrap();
    let denied = bed.coordinator.add_as_link(&alice, &new);
    assert!(matches!(denied, Err(ChangeError::Denied(_))));
}

#[test]
fn each_end_limits_what_it_sends_at_an_interface_and_port_of_its_own() {
    let bed = Bed::new();
    let first = bed.add("child", [PARENT, CHILD]).unwrap();
    let second = bed.add("peer", [PARENT, CHILD]).unwrap();
    // The parent has an interface already.
    let interfaces = |link: &AsLink| link.ends.map(|end| end.interface.unwrap());
    assert_eq!(interfaces(&first), [2, 1]);
    assert_eq!(interfaces(&second), [3, 2]);
    let at = |link: &AsLink| link.ends.map(|end| end.underlay().unwrap().to_string());
    assert_eq!(at(&first), ["10.0.0.2:50001", "10.0.0.3:50000"]);
    assert_eq!(at(&second), ["10.0.0.2:50002", "10.0.0.3:50001"]);
    let state = bed.coordinator.state();
    for (here, far, rate) in [(PARENT, 1, 8_000_000), (CHILD, 0, 2_000_000)] {
        let enforced = state.enforced(isd_as(here));
        assert_eq!(enforced.len(), 2);
        for (enforced, link) in enforced.iter().zip([&first, &second]) {
            let far = link.ends[far];
            assert_eq!((Some(enforced.ip), enforced.port), (far.ip, far.port));
            assert_eq!(enforced.user_as, far.isd_as);
            let limits = (enforced.limits.egress, enforced.limits.ingress);
            assert_eq!(limits, (Some(rate), None));
            assert_eq!(enforced.queue, Some(std::time::Duration::from_micros(9000)));
        }
    }
}

#[test]
fn they_are_kept_and_change_and_go_with_their_ases() {
    let bed = Bed::new();
    let link = bed.add("child", [PARENT, CHILD]).unwrap();
    let Bed {
        folder,
        coordinator,
        program,
    } = bed;
    drop(coordinator);
    let coordinator = Coordinator::open(folder.path()).unwrap();
    assert_eq!(coordinator.state().as_links[&link.id], link);
    let versions = || {
        let state = coordinator.state();
        let of = |text| state.host(isd_as(text)).unwrap().version;
        (of(PARENT), of(CHILD), of("1-ff00:0:110"))
    };
    let before = versions();
    let edit = LinkEdit {
        limits: vec![(Direction::Egress, Some(1_000_000))],
        queue_us: Some(None),
        ..LinkEdit::default()
    };
    let changed = coordinator.edit_as_link(&program, link.id, &edit).unwrap();
    let expected = Limits {
        egress: Some(1_000_000),
        ingress: Some(2_000_000),
    };
    assert_eq!((changed.limit, changed.queue_us), (expected, None));
    assert_eq!(changed.emulation.delay_us, 5000);
    let after = versions();
    assert!(after.0 > before.0 && after.1 > before.1 && after.2 == before.2);
    for edit in [
        LinkEdit {
            maxima: edit.limits.clone(),
            ..LinkEdit::default()
        },
        LinkEdit {
            limits: vec![(Direction::Ingress, Some(1))],
            ..LinkEdit::default()
        },
    ] {
        assert!(coordinator.edit_as_link(&program, link.id, &edit).is_err());
    }

    // What a machine finds, and where it goes, is followed.
    let mtus = BTreeMap::from([(1, 1300)]);
    coordinator.report_mtus(isd_as(CHILD), &mtus).unwrap();
    let [from, to] = ["10.0.0.3", "10.0.0.9"].map(|ip| ip.parse().unwrap());
    coordinator.report_address(isd_as(CHILD), from, to).unwrap();
    let moved = coordinator.state().as_links[&link.id].ends[1];
    assert_eq!(
        (moved.mtu, moved.ip, moved.port),
        (Some(1300), Some(to), link.ends[1].port)
    );

    coordinator.remove_user_as(&program, isd_as(CHILD)).unwrap();
    assert!(coordinator.state().as_links.is_empty());
    let gone = coordinator.remove_as_link(&program, link.id);
    assert!(matches!(gone, Err(ChangeError::Unknown(_))));
}

#[test]
fn each_end_reports_what_it_sent() {
    let bed = Bed::new();
    let link = bed.add("peer", [PARENT, CHILD]).unwrap().id;
    let counters = |bytes| {
        Some(LinkCounters {
            bytes,
            packets: 1,
            drops: 0,
            backlog: 0,
        })
    };
    let report = |bytes| {
        vec![LinkUsage {
            link,
            egress: counters(bytes),
            ingress: counters(77),
        }]
    };
    for (from, bytes) in [(PARENT, 10), (CHILD, 20)] {
        bed.coordinator.report_usage(isd_as(from), report(bytes));
    }
    bed.coordinator.report_usage(attachment_point(), report(30));
    let usage = bed.coordinator.usage();
    let of = |text| usage[&isd_as(text)].1.clone();
    let parent = of(PARENT)[0];
    assert_eq!((parent.egress, parent.ingress), (counters(10), None));
    let child = of(CHILD)[0];
    assert_eq!((child.egress, child.ingress), (None, counters(20)));
    assert!(of("1-ff00:0:110").is_empty());
}
