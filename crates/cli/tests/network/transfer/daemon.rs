//! The daemon in a SCION network.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_daemon_downloads_over_several_paths() {
    let Some(lab) = As::default().up("fig4", "daemon") else {
        return;
    };
    let files = Files::new(&[("data", 4 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let name = |name: &str| {
        let path = files.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    };
    let (state, downloads, torrent) = (name("state"), name("downloads"), name("data.torrent"));
    let args = ["daemon", "--state", &state, "--download-dir", &downloads];
    let _daemon = Running::start(&lab, A, &args.map(str::to_owned));
    let command = |args: &[&str]| {
        let args = [&["torrent"], args, &["--state", &state, "--json"]].concat();
        let output = lab.hawser(A, &args);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    command(&["add", &torrent, "--peer", &peer, "--wait"]);
    let settled = command(&["wait", "data"]);
    assert_eq!(settled["status"], "seeding", "{settled}");
    let downloaded = fs::read(files.folder.path().join("downloads/data")).unwrap();
    assert!(downloaded == fs::read(files.content()).unwrap());
    let shown = command(&["files", "data"]);
    let peers = shown["peers"].as_array().unwrap();
    let paths: BTreeSet<&str> = peers.iter().filter_map(|it| it["path"].as_str()).collect();
    assert!(paths.len() > 1, "{shown}");
    assert!(
        peers.iter().all(|it| it["address"] == peer.as_str()),
        "{shown}"
    );
}
