//! A coordinator that is not there for a time: nothing stops, and what changes meanwhile waits for it.

use serde_json::{Value, json};

use super::site::{Site, set_address, wait_limit};
use crate::machine::{can_run, end_pings};
use crate::support::eventually;

const POINT: &str = "1-ff00:0:110";
const MOVES: &str = "1-ff00:0:111";
const STAYS: &str = "1-ff00:0:112";

#[test]
fn nothing_stops_without_the_coordinator_and_changes_wait_for_it() {
    if !can_run() {
        return;
    }
    let mut site = Site::new();
    let mut point = site.machine(10, POINT, "attachment-points");
    let mut moves = site.machine(11, MOVES, "ases");
    let mut stays = site.machine(12, STAYS, "ases");
    let mut links = Vec::new();
    for user in [MOVES, STAYS] {
        let maximum = json!({"egress": 20_000_000, "ingress": 20_000_000});
        let link = json!({"attachment_point": POINT, "user_as": user, "maximum": maximum});
        let link: Value =
            serde_json::from_slice(&site.ask("POST", "/api/v1/links", &link)).unwrap();
        links.push(link["id"].as_u64().unwrap());
    }
    let archives = [POINT, MOVES, STAYS].map(|isd_as| site.archive(isd_as));
    let machines = [&mut point, &mut moves, &mut stays];
    for (machine, archive) in machines.into_iter().zip(&archives) {
        site.join(machine, archive, &[]);
    }
    for machine in [&point, &moves, &stays] {
        machine.wait_ready();
    }
    moves.assert_reaches(STAYS);
    stays.assert_reaches(MOVES);
    let limit = |rate: u32| json!({"limit": {"egress": rate, "ingress": rate}});
    let of_link = format!("/api/v1/links/{}", links[1]);
    site.ask("PATCH", &of_link, &limit(10_000_000));
    wait_limit(&point, 10_000_000);

    let pings = stays.start_pings(POINT);
    site.kill();
    // An AS that starts meanwhile is what it was.
    moves.joined.take().unwrap().terminate();
    site.join(&mut moves, &archives[1], &[]);
    moves.wait_ready();
    moves.assert_reaches(STAYS);
    wait_limit(&point, 10_000_000);
    // One that gets another address reports it as soon as there is somebody to report it to.
    set_address(&moves, 11, 2);
    let joined = moves.joined.as_ref().unwrap();
    joined.wait_for("the machine notices", |event| event["event"] == "moved");
    stays.assert_reaches(POINT);

    site.start();
    eventually("the coordinator has the address", || {
        let known = site.ask("GET", &format!("/api/v1/ases/{MOVES}"), &Value::Null);
        let known: Value = serde_json::from_slice(&known).unwrap();
        known["addresses"] == json!(["10.9.11.2"])
    });
    moves.assert_reaches(STAYS);
    site.ask("PATCH", &of_link, &limit(5_000_000));
    wait_limit(&point, 5_000_000);
    let (answered, lost) = end_pings(pings);
    assert!(
        answered > 0 && lost == 0,
        "{answered} answered, {lost} lost"
    );
}
