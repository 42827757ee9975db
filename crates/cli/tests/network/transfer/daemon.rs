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
    // Slow enough for its paths to be seen: connections to a peer that is complete, too, are closed at the end.
    let limit = ["--limit-down", "8mbit"];
    let args = ["daemon", "--state", &state, "--download-dir", &downloads];
    let args = [&args[..], &limit].concat();
    let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
    let _daemon = Running::start(&lab, A, &args);
    let command = |args: &[&str]| {
        let args = [&["torrent"], args, &["--state", &state, "--json"]].concat();
        let output = lab.hawser(A, &args);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    command(&["add", &torrent, "--peer", &peer, "--wait"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = command(&["files", "data"]);
        let peers = shown["peers"].as_array().unwrap();
        let paths: BTreeSet<&str> = peers.iter().filter_map(|it| it["path"].as_str()).collect();
        assert!(
            peers.iter().all(|it| it["address"] == peer.as_str()),
            "{shown}"
        );
        if paths.len() > 1 {
            break;
        }
        assert!(Instant::now() < deadline, "{shown}");
    }
    let settled = command(&["wait", "data"]);
    assert_eq!(settled["status"], "seeding", "{settled}");
    let downloaded = fs::read(files.folder.path().join("downloads/data")).unwrap();
    assert!(downloaded == fs::read(files.content()).unwrap());
}
