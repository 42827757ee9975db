//! Torrents that are added while they are there already.

use super::*;

#[test]
fn a_torrent_that_is_added_again_asks_the_peers_that_are_new() {
    let files = Files::new();
    let (_seeder, ready) = files.seed("127.0.0.1:0");
    let (mut daemon, _) = daemon(&files);
    let file = files.name("data.torrent");
    let added = object(&files, &["add", &file]);
    assert_eq!(added["merged"], Value::Null);
    let add = ["add", &file, "--peer", text(&ready, "listening_tcp")];
    for (peers, says) in [
        (1, "was given 1 peer and 0 trackers that it did not have"),
        (0, "stays as it is"),
    ] {
        let output = torrent(&files, &add);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && stderr.contains(says), "{stderr}");
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        let merged = serde_json::json!({"peers": peers, "trackers": 0});
        assert_eq!(again["merged"], merged);
    }
    let settled = object(&files, &["wait", text(&added, "info_hash")]);
    assert_eq!(settled["status"], "seeding", "{settled}");
    assert!(files.same("downloads"));
    daemon.signal("TERM");
    assert_eq!(daemon.code(), Some(0), "{}", daemon.log());
}
