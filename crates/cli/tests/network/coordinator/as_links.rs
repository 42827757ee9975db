//! A user AS behind another one, which is the peer of a third one.

use serde_json::{Value, json};

use super::site::{Site, wait_limit};
use crate::machine::{Machine, can_run};
use crate::support::eventually;

const POINT: &str = "1-ff00:0:110";
const PARENT: &str = "1-ff00:0:111";
const CHILD: &str = "1-ff00:0:112";
const PEER: &str = "1-ff00:0:113";

/// How many paths a machine has to an AS.
fn count_paths(machine: &Machine, to: &str) -> usize {
    let paths = machine.hawser(&["paths", to, "--json"]);
    let paths: Value = serde_json::from_slice(&paths.stdout).unwrap_or_default();
    paths["paths"].as_array().map_or(0, Vec::len)
}

#[test]
fn packets_cross_user_ases_and_peering_links_which_have_limits() {
    if !can_run() {
        return;
    }
    let site = Site::new();
    let mut point = site.machine(10, POINT, "attachment-points");
    let mut parent = site.machine(11, PARENT, "ases");
    let mut child = site.machine(12, CHILD, "ases");
    let mut peer = site.machine(13, PEER, "ases");
    for user in [PARENT, PEER] {
        let link = json!({"attachment_point": POINT, "user_as": user});
        site.ask("POST", "/api/v1/links", &link);
    }
    let add = |kind: &str, ends: [&str; 2]| {
        let link = json!({"kind": kind, "ends": ends, "limit": {"egress": 20_000_000}});
        let link = site.ask("POST", "/api/v1/as-links", &link);
        let link: Value = serde_json::from_slice(&link).unwrap();
        link["id"].as_u64().unwrap()
    };
    let path = |link: u64| format!("/api/v1/as-links/{link}");
    let to_child = add("child", [PARENT, CHILD]);
    let machines = [&mut point, &mut parent, &mut child, &mut peer];
    for (machine, isd_as) in machines.into_iter().zip([POINT, PARENT, CHILD, PEER]) {
        site.join(machine, &site.archive(isd_as), &[]);
    }
    for machine in [&point, &parent, &child, &peer] {
        machine.wait_ready();
    }
    child.assert_reaches(POINT);
    child.assert_reaches(PEER);
    assert_eq!(count_paths(&child, PEER), 1);
    wait_limit(&parent, 20_000_000);
    site.ask(
        "PATCH",
        &path(to_child),
        &json!({"limit": {"egress": 10_000_000}}),
    );
    wait_limit(&parent, 10_000_000);

    // The child has had no limits until now.
    let peering = add("peer", [CHILD, PEER]);
    eventually("there is a path over the peering link", || {
        count_paths(&child, PEER) == 2 && count_paths(&peer, CHILD) == 2
    });
    wait_limit(&child, 20_000_000);
    child.assert_reaches(PEER);
    eventually("what was sent over the link to the child is known", || {
        let usage = site.ask("GET", "/api/v1/usage", &Value::Null);
        let usage: Value = serde_json::from_slice(&usage).unwrap();
        let mut links = usage["links"].as_array().unwrap().iter();
        links.any(|one| {
            one["link"] == to_child
                && one["direction"] == "egress"
                && one["bytes"].as_u64() > Some(0)
        })
    });
    site.ask("DELETE", &path(peering), &Value::Null);
    eventually("the path over the peering link is gone", || {
        count_paths(&child, PEER) == 1 && count_paths(&peer, CHILD) == 1
    });
    child.assert_reaches(PEER);
}
