//! A daemon that is killed again and again. `HAWSER_KILL_ROUNDS` is how many times (by default 5), and
//! `HAWSER_KILL_SEED` of which random times.

use std::collections::BTreeSet;
use std::env;

use super::*;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// The info-hashes of all torrents.
fn known(files: &Files) -> BTreeSet<String> {
    let list = object(files, &["list"]);
    let torrents = list["torrents"].as_array().unwrap().iter();
    torrents
        .map(|torrent| text(torrent, "info_hash").to_owned())
        .collect()
}

/// Number of bytes verified of a torrent.
fn verified(files: &Files, hash: &str) -> u64 {
    let list = object(files, &["list"]);
    let torrents = list["torrents"].as_array().unwrap();
    let torrent = torrents.iter().find(|it| it["info_hash"] == hash);
    torrent.unwrap()["content"]["verified_bytes"]
        .as_u64()
        .unwrap()
}

#[test]
fn random_kills_lose_nothing_verified_and_no_torrent() {
    let rounds = number("HAWSER_KILL_ROUNDS").unwrap_or(5);
    let seed = number("HAWSER_KILL_SEED").unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    println!("HAWSER_KILL_SEED={seed}");
    let files = Files::new();
    let (_seeder, ready) = files.seed("127.0.0.1:0");
    let relay = Relay::start(text(&ready, "listening_tcp"), 0);
    let (mut running, _) = daemon(&files);
    let torrent = files.name("data.torrent");
    let added = object(&files, &["add", &torrent, "--peer", &relay.address]);
    let hash = text(&added, "info_hash").to_owned();
    let mut accepted = BTreeSet::from([hash.clone()]);
    for round in 0..rounds {
        // Half of the content passes until the last kill.
        let allowed = SIZE / 2 * (round + 1) / rounds;
        relay.allowed.store(allowed, Ordering::SeqCst);
        let name = files.name(&format!("small{round}"));
        fs::write(&name, format!("{seed} {round}")).unwrap();
        let made = format!("{name}.torrent");
        let output = command(&["torrent", "create", &name, "-o", &made]).output();
        assert!(output.unwrap().status.success());
        let added = object(&files, &["add", &made]);
        accepted.insert(text(&added, "info_hash").to_owned());
        // At any time of what it does then.
        thread::sleep(Duration::from_millis(random.u64(0..500)));
        let before = verified(&files, &hash);
        running.signal("KILL");
        assert_eq!(running.code(), None);
        // Nothing more comes, so that all that is verified is what was.
        relay.allowed.store(0, Ordering::SeqCst);
        running = daemon(&files).0;
        assert_eq!(known(&files), accepted, "in round {round}");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let after = verified(&files, &hash);
            if after >= before {
                break;
            }
            let late = Instant::now() >= deadline;
            assert!(
                !late,
                "in round {round}, {after} of {before} bytes are left"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
    relay.allowed.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(object(&files, &["wait", &hash])["status"], "seeding");
    assert!(files.same("downloads"));
    assert_eq!(known(&files), accepted);
    running.signal("TERM");
    assert_eq!(running.code(), Some(0), "{}", running.log());
}
