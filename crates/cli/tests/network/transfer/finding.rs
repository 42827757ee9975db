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
        // Also of a peer that was found after the start.
        assert!(used.clone().all(|path| path["mtu"].is_u64()), "{report}");
        assert!(fs::read(into.join("data")).unwrap() == fs::read(files.content()).unwrap());
    }
}

/// An address at which no node answers.
const NOBODY: &str = "1-ff00:0:111,10.0.2.1:32000";

/// Downloads and seeders with a folder for the state of each, in which they keep nodes of the DHT.
struct Stage<'a> {
    lab: &'a TestLab,
    folder: tempfile::TempDir,
}

impl Stage<'_> {
    fn start(&self, isd_as: &str, state: &str, args: &[&str]) -> Running {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let state = format!(
            "XDG_STATE_HOME={}",
            self.folder.path().join(state).display()
        );
        Running::start_with(self.lab, isd_as, &[&state], &args)
    }

    /// Starts a seeder in B that begins with a node; returns the JSON that it prints once it listens.
    fn seed(&self, state: &str, files: &Files, node: &str, flags: &[&str]) -> (Running, Value) {
        let (torrent, content) = (files.torrent(), files.content());
        let args = ["seed", torrent.to_str().unwrap(), content.to_str().unwrap()];
        let more = ["--json", "--dht-node", node];
        let mut seeder = self.start(B, state, &[&args[..], &more, flags].concat());
        let mut line = String::new();
        let out = seeder.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        (seeder, serde_json::from_str(&line).unwrap())
    }

    /// Starts a download in A.
    fn get(&self, what: &str, into: &str, more: &[&str]) -> Running {
        let dir = self.folder.path().join(into);
        let args = ["get", what, "-o", dir.to_str().unwrap(), "--json"];
        self.start(A, &format!("{into}-state"), &[&args[..], more].concat())
    }
}

/// The SCION address of the node of the DHT that a seeder reports.
fn scion_node(ready: &Value) -> &str {
    let nodes = ready["dht"].as_array().unwrap().iter();
    let mut nodes = nodes.map(|node| node.as_str().unwrap());
    let scion = nodes.find(|node| node.contains(','));
    scion.unwrap_or_else(|| panic!("no node over SCION: {ready}"))
}

#[test]
fn a_scion_peer_is_found_by_the_dht_over_scion_alone() {
    let Some(lab) = As::default().up("fig4", "dht") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage { lab: &lab, folder };
    let files = Files::new(&[("data", 4 << 20)]);
    let other = Files::new(&[("data", 70_000)]);
    let (_router, router) = stage.seed("router", &other, NOBODY, &["--dht-port", "31500"]);
    let router = scion_node(&router);
    assert_eq!(router, "1-ff00:0:111,10.0.2.1:31501");
    let (_seeder, ready) = stage.seed("seeder", &files, router, &[]);
    let peer = ready["listening"].as_str().unwrap();

    let torrent = files.torrent();
    let mut magnet = Command::new(env!("CARGO_BIN_EXE_hawser"));
    let magnet = magnet.args(["torrent", "magnet"]).arg(&torrent).output();
    let link = String::from_utf8(magnet.unwrap().stdout).unwrap();
    for (what, into) in [(torrent.to_str().unwrap(), "file"), (link.trim(), "link")] {
        // Where the seeder is announced later than this asks, it is found some seconds later.
        let (report, _) = stage.get(what, into, &["--dht-node", router]).end();
        let paths = report["paths"].as_array().unwrap();
        let used = paths.iter().filter(|path| path["bytes"].as_u64() > Some(0));
        let used: Vec<&Value> = used.collect();
        assert!(!used.is_empty(), "{report}");
        assert!(used.iter().all(|path| path["peer"] == peer), "{report}");
        let got = stage.folder.path().join(into).join("data");
        assert!(fs::read(got).unwrap() == fs::read(files.content()).unwrap());
    }
    // Kept for the next run.
    let kept = stage.folder.path().join("file-state/hawser/dht/scion");
    assert!(kept.exists());
}

#[test]
fn daemons_find_each_other_by_the_dht_over_scion_alone() {
    let Some(lab) = As::default().up("fig4", "daemon-dht") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage { lab: &lab, folder };
    let files = Files::new(&[("data", 4 << 20)]);
    let other = Files::new(&[("data", 70_000)]);
    let (_router, router) = stage.seed("router", &other, NOBODY, &["--dht-port", "31500"]);
    let router = scion_node(&router);
    let name = |name: &str| stage.folder.path().join(name).to_str().unwrap().to_owned();
    let daemon = |isd_as: &str, state: &str, downloads: &str| {
        let args = ["daemon", "--state", state, "--download-dir", downloads];
        let more = [
            "--tcp",
            "none",
            "--listen",
            "127.0.0.1:0",
            "--dht-node",
            router,
        ];
        stage.start(isd_as, "unused", &[&args[..], &more].concat())
    };
    let command = |isd_as: &str, state: &str, args: &[&str]| {
        let args = [&["torrent"], args, &["--state", state, "--json"]].concat();
        let output = lab.hawser(isd_as, &args);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    // The first one has the content.
    let (first, there) = (name("first"), files.content());
    let there = there.parent().unwrap().to_str().unwrap();
    let _first = daemon(B, &first, there);
    let torrent = files.torrent();
    let torrent = torrent.to_str().unwrap();
    command(B, &first, &["add", torrent, "--wait"]);
    assert_eq!(command(B, &first, &["wait", "data"])["status"], "seeding");
    let mut magnet = Command::new(env!("CARGO_BIN_EXE_hawser"));
    let magnet = magnet.args(["torrent", "magnet", torrent]).output();
    let link = String::from_utf8(magnet.unwrap().stdout).unwrap();
    let (second, downloads) = (name("second"), name("downloads"));
    let _second = daemon(A, &second, &downloads);
    let added = command(A, &second, &["add", link.trim(), "--wait"]);
    let hash = added["info_hash"].as_str().unwrap();
    let settled = command(A, &second, &["wait", hash]);
    assert_eq!(settled["status"], "seeding", "{settled}");
    let got = stage.folder.path().join("downloads/data");
    assert!(fs::read(got).unwrap() == fs::read(files.content()).unwrap());
}

#[test]
fn the_node_of_a_connected_scion_peer_leads_to_the_dht_over_scion() {
    let Some(lab) = As::default().up("fig4", "dht-port") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage { lab: &lab, folder };
    let files = Files::new(&[("data", 1 << 20)]);
    let (_seeder, ready) = stage.seed("seeder", &files, NOBODY, &[]);
    let torrent = files.torrent();
    let torrent = torrent.to_str().unwrap();
    let peer = ["--peer", ready["listening"].as_str().unwrap(), "--seed"];
    let more = ["--dht-node", NOBODY];
    let _first = stage.get(torrent, "first", &[&peer[..], &more].concat());
    // The nodes of the seeder and of the first download know each other only if they were told, and each
    // announces its peer to the other.
    let second = stage.get(torrent, "second", &["--dht-node", scion_node(&ready)]);
    let (report, _) = second.end();
    assert_eq!(report["fetched_bytes"], 1 << 20, "{report}");
}
