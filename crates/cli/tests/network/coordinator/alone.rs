//! What fails at one AS is noticed by no other.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bed::{Bed, POINTS, SPARE, USERS, ases};
use crate::support::eventually;

/// The user ASes at which something fails: the address is wrong, the machine is off, the device of
/// the link is gone.
const WRONG: usize = 17;
const OFF: usize = 18;
pub const GONE: usize = 19;
/// Requests of each ping, and the time between two.
const PINGS: u32 = 60;
const INTERVAL: &str = "100ms";

/// While three user ASes fail, each in its own way, packets of all others pass, their limits stay in
/// force, and their machines report nothing.
pub fn failures_of_three_are_theirs_alone(bed: &mut Bed) {
    let failing = [WRONG, OFF, GONE].map(|at| USERS[at].0);
    let others: Vec<&str> = ases().filter(|one| !failing.contains(one)).collect();
    for one in &others {
        bed.node(one).events();
    }
    let links = bed.admin("GET", "/api/v1/links", &Value::Null);
    let of = |at: usize| {
        let mut links = links["links"].as_array().unwrap().iter();
        let link = links.find(|link| link["user_as"]["isd_as"] == USERS[at].0);
        link.unwrap()["id"].as_u64().unwrap()
    };
    let (wrong, gone) = (of(WRONG), of(GONE));
    let users = &others[POINTS.len()..];
    let pings: Vec<(String, Child)> = users
        .iter()
        .zip(users.iter().cycle().skip(1))
        .map(|(from, to)| (format!("{from} to {to}"), ping(bed, from, to)))
        .collect();
    thread::sleep(Duration::from_secs(1));

    let begun = Instant::now();
    bed.sh(POINTS[USERS[GONE].1], &format!("ip link del {SPARE}"));
    drop(bed.leave(USERS[OFF].0));
    let devices = r"ip -o link show type veth | sed 's/^[0-9]*: \([^@:]*\).*/\1/'";
    let down = format!("for device in $({devices}); do ip link set $device down; done");
    bed.sh(USERS[OFF].0, &down);
    // Of a network for documentation: no host has it.
    bed.admin("DELETE", &format!("/api/v1/links/{wrong}"), &Value::Null);
    let isd_as = USERS[WRONG].0;
    let before = bed.admin("GET", &format!("/api/v1/ases/{isd_as}"), &Value::Null);
    let changed = json!({"isd_as": isd_as, "label": isd_as, "owner": before["owner"]["id"],
                         "addresses": ["192.0.2.77"]});
    bed.admin("PUT", &format!("/api/v1/ases/{isd_as}"), &changed);
    let link = json!({"attachment_point": POINTS[USERS[WRONG].1], "user_as": isd_as});
    let wrong = bed.admin("POST", "/api/v1/links", &link)["id"]
        .as_u64()
        .unwrap();

    let link = |id: u64| bed.admin("GET", &format!("/api/v1/links/{id}"), &Value::Null);
    eventually("the link without its device says so", || {
        link(gone)["error"]
            .as_str()
            .is_some_and(|error| error.contains(SPARE))
    });
    bed.node(isd_as)
        .wait_for("the AS with the wrong address says so", |event| {
            let line = event["line"].as_str().unwrap_or_default();
            line.contains("192.0.2.77 is not an address of this host: take one of those")
        });
    println!(
        "three ASes had failed after {:.2} s",
        begun.elapsed().as_secs_f64()
    );

    for (of, ping) in pings {
        let output = ping.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let statistics = &report["statistics"];
        let (sent, received) = (&statistics["sent"], &statistics["received"]);
        assert_eq!(sent, received, "{of}: {report:#}");
    }
    println!(
        "{} pings of {PINGS} among {} user ASes lost nothing",
        users.len(),
        users.len()
    );
    for one in &others {
        let events = bed.node(one).events();
        let is_trouble = |event: &&Value| {
            let name = event["event"].as_str().unwrap_or_default();
            !matches!(name, "segments" | "ready" | "changed")
        };
        let trouble: Vec<&Value> = events.iter().filter(is_trouble).collect();
        // The attachment points of the failing links report these.
        let is_theirs = |event: &Value| {
            let failed = [gone, wrong].map(|id| id.to_string());
            POINTS.contains(one) && failed.iter().any(|id| event["link"] == **id)
        };
        assert!(
            trouble.iter().all(|event| is_theirs(event)),
            "{one}: {trouble:#?}"
        );
    }
    let links = bed.admin("GET", "/api/v1/links", &Value::Null);
    for link in links["links"].as_array().unwrap() {
        let id = link["id"].as_u64().unwrap();
        // A default route may lead to the wrong address.
        assert!(link["in_force"] == (id != gone) || id == wrong, "{link}");
    }
}

/// The attachment point that misses a device ends, and takes all its limits away: what it had there
/// before was `before`.
pub fn a_machine_without_a_device_leaves_no_limits(bed: &mut Bed, before: &str) {
    let point = POINTS[USERS[GONE].1];
    assert_ne!(bed.disciplines(point), before);
    bed.leave(point).terminate();
    assert_eq!(bed.disciplines(point), before);
}

fn ping(bed: &Bed, from: &str, to: &str) -> Child {
    let (host, count) = (format!("{to},127.0.0.1"), PINGS.to_string());
    bed.start(
        from,
        &[
            "ping",
            &host,
            "-c",
            &count,
            "--interval",
            INTERVAL,
            "--json",
        ],
    )
}
