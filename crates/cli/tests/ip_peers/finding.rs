//! Peers found by a tracker, and torrents named by a magnet link.

use super::*;

/// A tracker over HTTP and UDP, and its announce URLs.
pub fn tracker(files: &Files) -> (Running, Vec<String>) {
    let state = files.name("tracker");
    let any = "127.0.0.1:0";
    let args = [
        "tracker", "--http", any, "--udp", any, "--state", &state, "--json",
    ];
    let mut tracker = Running::start(&args);
    let ready = tracker.json();
    let urls = ready["announce"].as_array().unwrap().iter();
    let urls = urls.map(|url| url.as_str().unwrap().to_owned());
    (tracker, urls.collect())
}

/// Makes the torrent again, with this tracker.
fn announce(files: &Files, url: &str) {
    let (content, torrent) = (files.name("data"), files.name("data.torrent"));
    let create = [
        "torrent", "create", &content, "-o", &torrent, "--force", "-a", url,
    ];
    let output = command(&create).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Waits until the tracker knows the seeder that printed this.
pub fn await_seeder(http: &str, ready: &Value) {
    let hash = text(ready, "info_hash").as_bytes().chunks(2);
    let hash = hash.map(|byte| format!("%{}", std::str::from_utf8(byte).unwrap()));
    let hash = hash.collect::<String>();
    let address = http.strip_prefix("http://").unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!(
            "GET /scrape?info_hash={hash} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        if String::from_utf8_lossy(&answer).contains("8:completei1e") {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{}",
            String::from_utf8_lossy(&answer)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_seeder_is_found_by_the_tracker_alone() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    let (mut tracker, urls) = tracker(&files);
    for (round, url) in urls.iter().enumerate() {
        announce(&files, url);
        let (mut seeder, ready) = files.seed("127.0.0.1:0");
        await_seeder(&urls[0], &ready);
        let folder = format!("by-tracker-{round}");
        let mut leecher = files.get(&folder, &[]);
        let report = leecher.json();
        assert_eq!(peers(&report), [text(&ready, "listening_tcp")]);
        leecher.end();
        assert!(files.same(&folder));
        seeder.signal("TERM");
        assert_eq!(seeder.code(), Some(0));
    }
    tracker.signal("TERM");
    let counted = tracker.json();
    // Both sides of both rounds, when they began and when they left.
    assert!(counted["announces"].as_u64().unwrap() >= 8, "{counted}");
    assert_eq!(counted["seeders"], 0, "{counted}");
    tracker.end();
}

/// The magnet link of the torrent, with these arguments.
pub(super) fn link(files: &Files, more: &[&str]) -> String {
    let torrent = files.name("data.torrent");
    let output = command(&[&["torrent", "magnet", &torrent][..], more].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_magnet_link_is_enough() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    let (_tracker, urls) = tracker(&files);
    announce(&files, &urls[0]);
    let (_seeder, ready) = files.seed("127.0.0.1:0");
    let address = text(&ready, "listening_tcp");
    await_seeder(&urls[0], &ready);
    let with_peer = link(&files, &["--peer", address]);
    assert!(
        with_peer.contains(&format!("x.pe={address}")),
        "{with_peer}"
    );
    let by_tracker = link(&files, &[]);
    for (link, find, folder) in [
        (with_peer, "none", "by-peer"),
        (by_tracker, "tracker", "by-tracker"),
    ] {
        let into = files.name(folder);
        let mut leecher = Running::start(&["get", &link, "-o", &into, "--find", find, "--json"]);
        let report = leecher.json();
        assert_eq!(report["fetched_bytes"], SIZE);
        leecher.end();
        assert!(files.same(folder));
    }
}

#[test]
fn a_link_without_an_info_hash_is_wrong_use() {
    for wrong in [
        "magnet:?dn=x",
        "magnet:?xt=urn:btih:12",
        "MAGNET:?xt=urn:btih:zz",
    ] {
        let output = command(&["get", wrong]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {error}");
        assert!(
            error.contains("info-hash") || error.contains("names no torrent"),
            "{error}"
        );
    }
}
