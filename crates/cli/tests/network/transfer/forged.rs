//! Forged SCMP errors against a seeder.

use super::*;
use crate::flood::{self, FOUR_LINKS, Flood, KINDS};

/// The link from the attacker to the seeder.
const FLOODED: usize = 4;

/// Starts floods of all kinds against `victim`.
fn floods(lab: &TestLab, rate: u32, victim: &str) -> Vec<Running> {
    let attack = |(kind, isd_as): (&str, &str)| {
        let name = "transfer::forged::attacker";
        let mut command = flood::this_program(&["--exact", name, "--ignored", "--nocapture"]);
        let links = &[1, 2, 3, 4];
        let flood = Flood {
            kind,
            rate,
            links,
            victim,
        };
        flood.plan(&mut command);
        Running(flood::start(&command, |words| lab.exec(isd_as, words)))
    };
    KINDS.map(attack).into()
}

#[test]
#[ignore = "not a test but a process that tests start"]
fn attacker() {
    flood::attack_if_planned();
}

#[test]
fn a_flood_of_forged_errors_ends_no_connection_and_hides_no_genuine_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = crate::support::topology(folder.path(), FOUR_LINKS);
    let Some(lab) = As::default().up(&file, "forged") else {
        return;
    };
    for link in 1..=4 {
        lab.set(&format!("{A}#{link}"), &["--rate", "10mbit"]);
    }
    let files = Files::new(&[("data", 20 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let _floods = floods(&lab, 250, &peer);
    let flooded = || sent(&lab)[FLOODED];
    let before = flooded();
    eventually("the floods flow", || flooded() > before + (100 << 10));
    let mut args = files.get_args(&peer);
    args.extend(["--paths", "4"].map(str::to_owned));
    let leecher = Running::start_with(&lab, A, &["RUST_LOG=hawser_torrent=debug"], &args);
    let start = sent(&lab);
    eventually("all four links carry the file", || {
        let now = sent(&lab);
        (0..4).all(|link| now[link] > start[link] + (2 << 20))
    });
    assert!(
        flooded() > start[FLOODED] + (100 << 10),
        "the floods are over"
    );
    // A genuine report takes effect among thousands of forged ones.
    lab.set(&format!("{A}#1"), &["--down"]);
    let (report, log) = leecher.end();
    assert_eq!(report["fetched_bytes"], 20 << 20);
    assert!(files.same("data"));
    let ended = log.lines().filter(|line| line.contains("connection ended"));
    let reasons: Vec<bool> = ended
        .map(|line| line.contains("the path is down"))
        .collect();
    assert_eq!(reasons, [true], "{log}");
}
