//! Machines that get other addresses while their ASes run.

use serde_json::{Value, json};

use super::site::{Site, set_address, wait_changed};
use crate::machine::{can_run, end_pings};
use crate::support::eventually;

const POINT: &str = "1-ff00:0:110";
const MOVES: &str = "1-ff00:0:111";
const STAYS: &str = "1-ff00:0:112";

#[test]
fn a_machine_with_another_address_is_found_by_its_neighbours() {
    if !can_run() {
        return;
    }
    let site = Site::new();
    let mut point = site.machine(10, POINT, "attachment-points");
    let mut moves = site.machine(11, MOVES, "ases");
    let mut stays = site.machine(12, STAYS, "ases");
    for user in [MOVES, STAYS] {
        let maximum = json!({"egress": 100_000_000, "ingress": 100_000_000});
        let link = json!({"attachment_point": POINT, "user_as": user, "maximum": maximum});
        site.ask("POST", "/api/v1/links", &link);
    }
    let archives = [POINT, MOVES, STAYS].map(|isd_as| site.archive(isd_as));
    for (machine, archive) in [&mut point, &mut moves, &mut stays]
        .into_iter()
        .zip(&archives)
    {
        site.join(machine, archive, &[]);
    }
    for machine in [&point, &moves, &stays] {
        machine.wait_ready();
    }
    moves.assert_reaches(STAYS);
    stays.assert_reaches(POINT);
    // What came at the start is done with.
    for machine in [&point, &moves] {
        machine.joined.as_ref().unwrap().events();
    }

    let pings = stays.start_pings(POINT);
    set_address(&moves, 11, 2);
    let joined = moves.joined.as_ref().unwrap();
    joined.wait_for("the machine notices", |event| {
        event["event"] == "moved" && event["from"] == "10.9.11.1" && event["to"] == "10.9.11.2"
    });
    wait_changed(&moves, "its router goes over");
    wait_changed(&point, "its neighbour goes over");
    moves.assert_reaches(POINT);
    moves.assert_reaches(STAYS);
    let (answered, lost) = end_pings(pings);
    assert!(
        answered > 10 && lost == 0,
        "{answered} answered, {lost} lost"
    );
    let of_coordinator = site.ask("GET", &format!("/api/v1/ases/{MOVES}"), &Value::Null);
    let known: Value = serde_json::from_slice(&of_coordinator).unwrap();
    assert_eq!(known["addresses"], json!(["10.9.11.2"]), "{known}");
    for machine in [&point, &moves, &stays] {
        let events = machine.joined.as_ref().unwrap().events();
        let is_trouble = |event: &&Value| {
            event["event"] == "ended" || (event["event"] == "changed" && event["restart"] == true)
        };
        let trouble: Vec<_> = events.iter().filter(is_trouble).collect();
        assert!(trouble.is_empty(), "{trouble:?}");
    }

    // A machine that was off meanwhile: it never had the address of its configuration.
    moves.joined.take().unwrap().terminate();
    set_address(&moves, 11, 3);
    site.join(&mut moves, &archives[1], &["--address", "auto"]);
    moves.wait_ready();
    moves.assert_reaches(STAYS);

    // What carries its link takes less: segments say so to an AS behind the next one.
    for (device, fits) in [(1400, 1372), (1500, 1472)] {
        moves.ip(&format!("link set eth0 mtu {device}"));
        eventually("paths over the link take what carries it", || {
            stays.mtus(MOVES) == [fits].into() && moves.mtus(STAYS) == [fits].into()
        });
    }
    moves.assert_reaches(STAYS);
}
