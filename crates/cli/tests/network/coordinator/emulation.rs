//! A link of a coordinator that gets a delay while its ends run.

use serde_json::{Value, json};

use super::site::{Site, wait_changed};
use crate::machine::{Machine, can_run, end_pings};
use crate::support::eventually;

const POINT: &str = "1-ff00:0:110";
const NEAR: &str = "1-ff00:0:111";
const FAR: &str = "1-ff00:0:112";
/// In each direction, in microseconds.
const DELAY: u64 = 150_000;

/// The round-trip time to the attachment point in milliseconds, if it answers.
fn round_trip(machine: &Machine) -> Option<f64> {
    let host = format!("{POINT},127.0.0.1");
    let pinged = machine.hawser(&["ping", &host, "-c", "1", "--timeout", "60s", "--json"]);
    let report: Value = serde_json::from_slice(&pinged.stdout).ok()?;
    report["replies"][0]["round_trip_time"].as_f64()
}

#[test]
fn a_delay_is_made_at_both_ends_and_interrupts_no_other_link() {
    if !can_run() {
        return;
    }
    let site = Site::new();
    let mut point = site.machine(10, POINT, "attachment-points");
    let mut near = site.machine(11, NEAR, "ases");
    let mut far = site.machine(12, FAR, "ases");
    let add = |user| {
        let link = json!({"attachment_point": POINT, "user_as": user});
        let link = site.ask("POST", "/api/v1/links", &link);
        let link: Value = serde_json::from_slice(&link).unwrap();
        format!("/api/v1/links/{}", link["id"])
    };
    let links = [NEAR, FAR].map(add);
    let archives = [POINT, NEAR, FAR].map(|isd_as| site.archive(isd_as));
    let machines = [&mut point, &mut near, &mut far];
    for (machine, archive) in machines.into_iter().zip(&archives) {
        site.join(machine, archive, &[]);
    }
    for machine in [&point, &near, &far] {
        machine.wait_ready();
    }
    near.assert_reaches(POINT);
    far.assert_reaches(POINT);
    // What came at the start is done with.
    for machine in [&point, &far] {
        machine.joined.as_ref().unwrap().events();
    }

    let pings = near.start_pings(POINT);
    let delayed = 2.0 * DELAY as f64 / 1000.0;
    for (delay, is_delayed) in [(DELAY, true), (0, false)] {
        site.ask("PATCH", &links[1], &json!({"delay_us": delay}));
        for machine in [&point, &far] {
            wait_changed(machine, "both ends go over");
        }
        let text = format!("a delay of {delay} microseconds");
        eventually(&text, || {
            round_trip(&far).is_some_and(|time| (time >= delayed) == is_delayed)
        });
    }
    let (answered, lost) = end_pings(pings);
    assert!(
        answered > 10 && lost == 0,
        "{answered} answered, {lost} lost"
    );
}
