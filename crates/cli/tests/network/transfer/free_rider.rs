//! A leecher that sends nothing, among leechers whose uplinks have limits.

use super::*;

/// Where leechers are, and the number of those that send what they have.
const A_HOST: &str = "10.0.1.1";
const HONEST: usize = 3;

/// Bytes of the content: about two minutes, so that every peer has had its turns.
const SIZE: usize = 24 << 20;

/// Where a leecher listens; the last one is the free rider.
fn listen(number: usize) -> String {
    format!("{A_HOST}:{}", 31_600 + number)
}

/// Starts a leecher that knows the seeder and all others.
fn leecher(lab: &TestLab, files: &Files, number: usize, seeder: &str, more: &[&str]) -> Running {
    let torrent = files.torrent();
    let into = files.folder.path().join(format!("get{number}"));
    let listens = listen(number);
    let mut args = vec!["get", torrent.to_str().unwrap()];
    args.extend(["-o", into.to_str().unwrap(), "--json"]);
    args.extend(["--listen", &listens, "--peer", seeder]);
    args.extend(more);
    let mut args: Vec<String> = args.into_iter().map(str::to_owned).collect();
    let others = (0..=HONEST).filter(|other| *other != number);
    others.for_each(|other| args.extend(["--peer".into(), format!("{A},{}", listen(other))]));
    Running::start(lab, A, &args)
}

/// Bytes that a download got from the peer at an address.
fn from(report: &Value, peer: &str) -> u64 {
    let paths = report["paths"].as_array().unwrap().iter();
    let of_peer = paths.filter(|path| path["peer"] == peer);
    of_peer.filter_map(|path| path["bytes"].as_u64()).sum()
}

#[test]
#[ignore = "takes minutes: turns last half a minute"]
fn a_free_rider_gets_at_most_its_share_of_the_optimistic_slots() {
    let Some(lab) = As::default().up("fig4", "free-rider") else {
        return;
    };
    let files = Files::new(&[("data", SIZE)]);
    let limit = ["--limit-up", "4mbit"];
    let (_seeder, seeder) = Running::seed_with(&lab, B, &files.torrent(), &files.content(), &limit);
    // One of two slots is earned.
    let honest = ["--limit-up", "1mbit", "--slots", "2"];
    let rider = leecher(&lab, &files, HONEST, &seeder, &["--limit-up", "1kbit"]);
    let others = (0..HONEST).map(|number| leecher(&lab, &files, number, &seeder, &honest));
    let others: Vec<Running> = others.collect();
    let sent: Vec<u64> = others
        .into_iter()
        .map(|other| other.end().0["uploaded_bytes"].as_u64().unwrap())
        .collect();
    let report = rider.end().0;
    let got: Vec<u64> = (0..HONEST)
        .map(|number| from(&report, &format!("{A},{}", listen(number))))
        .collect();
    println!("the others sent {sent:?} bytes in all, of which the free rider got {got:?}");
    let (sent, got): (u64, u64) = (sent.iter().sum(), got.iter().sum());
    assert!(sent > 0 && 2 * got <= sent, "{got} of {sent}");
}
