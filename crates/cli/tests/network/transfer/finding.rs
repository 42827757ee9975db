//! Peers found by a tracker in a SCION network.

use super::*;

#[test]
fn a_scion_peer_is_found_by_a_tracker_over_scion() {
    let Some(lab) = As::default().up("fig4", "tracker") else {
        return;
    };
    let files = Files::new(&[("data", 4 << 20)]);
    let folder = files.folder.path();
    let state = folder.join("tracker").to_str().unwrap().to_owned();
    let args = [
        "tracker",
        "--listen",
        "10.0.2.1:0",
        "--json",
        "--state",
        &state,
    ];
    let mut tracker = Running::start(&lab, B, &args.map(str::to_owned));
    let mut out = BufReader::new(tracker.0.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let url = ready["announce"][0].as_str().unwrap();
    assert!(url.starts_with("udp://[1-ff00:0:111,10.0.2.1]:"), "{url}");

    let torrent = files.torrent();
    let mut create = Command::new(env!("CARGO_BIN_EXE_hawser"));
    create.args(["torrent", "create", "--force", "-a", url, "-o"]);
    let output = create.arg(&torrent).arg(files.content()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut magnet = Command::new(env!("CARGO_BIN_EXE_hawser"));
    let output = magnet
        .args(["torrent", "magnet"])
        .arg(&torrent)
        .output()
        .unwrap();
    let link = String::from_utf8(output.stdout).unwrap().trim().to_owned();

    let (_seeder, peer) = Running::seed(&lab, B, &torrent, &files.content());
    let torrent = torrent.to_str().unwrap();
    for (what, into) in [(torrent, "by-file"), (&link, "by-link")] {
        let into = folder.join(into);
        // Where the seeder announces itself later than this asks, it is found a minute later.
        let args = ["get", what, "-o", into.to_str().unwrap(), "--json"];
        let output = lab.hawser(A, &args);
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let paths = report["paths"].as_array().unwrap();
        let used = paths.iter().filter(|path| path["bytes"].as_u64() > Some(0));
        assert!(used.clone().count() > 0, "{report}");
        assert!(
            used.clone().all(|path| path["peer"] == peer.as_str()),
            "{report}"
        );
        assert!(fs::read(into.join("data")).unwrap() == fs::read(files.content()).unwrap());
    }
}
