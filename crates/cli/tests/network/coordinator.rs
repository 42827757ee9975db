//! ASes that join from archives, and follow their coordinator.

mod alone;
mod as_links;
mod away;
pub mod bed;
mod emulation;
mod moving;
mod site;
mod trust;

use std::time::Instant;

use serde_json::{Value, json};

use self::bed::{Bed, POINTS, USERS, ases};
use crate::support::eventually;

/// The one test: bringing the network up takes longer than all that is tried in it.
#[test]
fn ases_join_from_archives_and_follow_their_coordinator() {
    let begun = Instant::now();
    let Some(mut bed) = Bed::new() else {
        return;
    };
    let disciplines = bed.disciplines(POINTS[USERS[alone::GONE].1]);
    let links = bed.fill();
    for isd_as in POINTS {
        let archive = bed.archive(isd_as, None);
        bed.join(isd_as, &archive);
    }
    for ((isd_as, _), (token, _)) in USERS.into_iter().zip(&links) {
        let archive = bed.archive(isd_as, Some(token));
        bed.join(isd_as, &archive);
    }
    for isd_as in ases() {
        bed.wait_ready(isd_as);
    }
    let time = begun.elapsed().as_secs_f64();
    println!("{} ASes were up after {time:.1} s", ases().count());
    each_reaches_another(&bed);
    adding_an_as_interrupts_no_other(&bed);
    a_limit_comes_into_force(&bed, &links[0]);
    an_attachment_point_that_was_off_catches_up(&mut bed, &links[2]);
    another_link_gives_another_path(&bed);
    alone::failures_of_three_are_theirs_alone(&mut bed);
    trust::each_end_of_trust_counts_at_once(&mut bed);
    alone::a_machine_without_a_device_leaves_no_limits(&mut bed, &disciplines);
    println!("all of it took {:.1} s", begun.elapsed().as_secs_f64());
}

fn each_reaches_another(bed: &Bed) {
    let all: Vec<_> = ases().collect();
    for (at, from) in all.iter().enumerate() {
        // The next one, and one some places on: at each attachment point.
        for to in [1, 4].map(|on| all[(at + on) % all.len()]) {
            eventually(&format!("{from} reaches {to}"), || {
                let host = format!("{to},127.0.0.1");
                bed.hawser(from, &["ping", &host, "-c", "1"])
                    .status
                    .success()
            });
        }
    }
    // Directly between the attachment points, and by way of the third.
    eventually("there are both paths", || {
        let paths = bed.hawser(USERS[0].0, &["paths", USERS[4].0, "--json"]);
        let paths: Value = serde_json::from_slice(&paths.stdout).unwrap_or_default();
        paths["paths"]
            .as_array()
            .is_some_and(|paths| paths.len() == 2)
    });
}

/// While an AS and its link are added and removed, the attachment point's other ASes lose no packet.
fn adding_an_as_interrupts_no_other(bed: &Bed) {
    let (from, to, point) = (USERS[0].0, USERS[1].0, POINTS[0]);
    let host = format!("{to},127.0.0.1");
    let args = [
        "ping",
        &host,
        "-c",
        "1000",
        "--interval",
        "10ms",
        "--timeout",
        "5s",
    ];
    let output = std::thread::scope(|scope| {
        let lab = &bed.lab;
        let pinging = scope.spawn(move || lab.hawser(from, &args));
        let path = format!("/api/v1/attachment-points/{point}");
        let deployed = || {
            eventually("the attachment point has gone over", || {
                let shown = bed.admin("GET", &path, &Value::Null);
                shown["host"]["deployed"] == shown["host"]["version"]
            });
        };
        for _ in 0..2 {
            let new = json!({"isd_as": "1-ff00:0:99", "label": "new", "addresses": ["10.0.99.1"]});
            bed.admin("POST", "/api/v1/ases", &new);
            let link = json!({"attachment_point": point, "user_as": "1-ff00:0:99"});
            bed.admin("POST", "/api/v1/links", &link);
            deployed();
            bed.admin("DELETE", "/api/v1/ases/1-ff00:0:99", &Value::Null);
            deployed();
        }
        assert!(!pinging.is_finished(), "the pings ended before the changes");
        pinging.join().unwrap()
    });
    let text = String::from_utf8(output.stdout).unwrap();
    let summary = text
        .lines()
        .find(|line| line.contains("packets transmitted"));
    println!(
        "while an AS was added twice: {}",
        summary.unwrap_or_default()
    );
    assert!(
        text.contains("1000 packets transmitted, 1000 received"),
        "{text}"
    );
}

/// The user of a link limits it, and what the AS receives goes down to that.
fn a_limit_comes_into_force(bed: &Bed, (token, link): &(String, u64)) {
    const LIMIT: f64 = 1_000_000.0;
    let (user, point) = (USERS[0].0, POINTS[0]);
    let _flood = bed.flood(point, user);
    eventually("packets pass unlimited", || bed.rate(user) > 4.0 * LIMIT);
    let begun = Instant::now();
    let path = format!("/api/v1/links/{link}");
    let body = json!({"limit": {"egress": LIMIT as u64}});
    let (status, answer) = bed.ask("PATCH", &path, token, &body);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
    // Other packets than those of the link also arrive: of BFD, and of the coordinator.
    eventually("the limit is in force", || bed.rate(user) < 1.2 * LIMIT);
    let time = begun.elapsed().as_secs_f64();
    println!("the limit was in force on the wire within {time:.2} s (promised: 2 s)");
    // A busy machine may send less for a while.
    eventually("the limit is reached", || {
        (0.8 * LIMIT..1.2 * LIMIT).contains(&bed.rate(user))
    });
    // Not above the maximum, and not the link of another.
    let above = json!({"limit": {"egress": 200_000_000}});
    assert_eq!(bed.ask("PATCH", &path, token, &above).0, 400);
    let other = format!("/api/v1/links/{}", link + 1);
    assert_eq!(bed.ask("PATCH", &other, token, &body).0, 403);
    // What the links carried is reported.
    eventually("the use is reported", || {
        let usage = bed.admin("GET", "/api/v1/usage", &Value::Null);
        let mut links = usage["links"].as_array().unwrap().iter();
        links.any(|one| one["link"] == *link && one["bytes"].as_u64() > Some(100_000))
    });
}

/// A change while an attachment point is off is in force when it has started again.
fn an_attachment_point_that_was_off_catches_up(bed: &mut Bed, (token, link): &(String, u64)) {
    const LIMIT: f64 = 2_000_000.0;
    let (user, point) = (USERS[2].0, POINTS[1]);
    // The archive is that of before the change.
    let archive = bed.archive(point, None);
    bed.leave(point).terminate();
    let body = json!({"limit": {"egress": LIMIT as u64}});
    let (status, answer) = bed.ask("PATCH", &format!("/api/v1/links/{link}"), token, &body);
    assert!(
        matches!(status, 200 | 202),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    bed.join(point, &archive);
    let path = format!("/api/v1/attachment-points/{point}");
    eventually("the attachment point has caught up", || {
        let shown = bed.admin("GET", &path, &Value::Null);
        shown["host"]["deployed"] == shown["host"]["version"]
    });
    let flood = bed.flood(point, user);
    eventually("the limit is in force", || {
        let rate = bed.rate(user);
        (0.8 * LIMIT..1.2 * LIMIT).contains(&rate)
    });
    drop(flood);
    eventually("packets pass again", || {
        let host = format!("{},127.0.0.1", USERS[0].0);
        bed.hawser(user, &["ping", &host, "-c", "1"])
            .status
            .success()
    });
}

/// An AS with a second link has more paths: the routers of both ends, and the segments everywhere,
/// follow by themselves.
fn another_link_gives_another_path(bed: &Bed) {
    let (user, from) = (USERS[0].0, USERS[4].0);
    let link = json!({"attachment_point": POINTS[2], "user_as": user});
    bed.admin("POST", "/api/v1/links", &link);
    eventually("there are more paths", || {
        let paths = bed.hawser(from, &["paths", user, "--json"]);
        let paths: Value = serde_json::from_slice(&paths.stdout).unwrap_or_default();
        paths["paths"]
            .as_array()
            .is_some_and(|paths| paths.len() == 3)
    });
    let host = format!("{user},127.0.0.1");
    eventually("the shortest one works", || {
        bed.hawser(from, &["ping", &host, "-c", "1"])
            .status
            .success()
    });
}
