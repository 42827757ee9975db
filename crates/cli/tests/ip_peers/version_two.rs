//! Torrents of version 2 (BEP 52).

use super::*;

/// A folder whose files end within pieces, and a file with the path of its torrent of this version.
fn made(folder: &Path, version: &str) -> (String, String) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(path("set/d")).unwrap();
    for (name, length) in [
        ("a.bin", 300_001),
        ("d/b.bin", 70_000),
        ("d/empty", 0),
        ("e", 5),
    ] {
        let bytes = (0..length).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 16) as u8);
        let bytes: Vec<u8> = bytes.collect();
        fs::write(folder.join("set").join(name), bytes).unwrap();
    }
    let (content, torrent) = (path("set"), path("set.torrent"));
    let args = [
        "torrent",
        "create",
        &content,
        "-o",
        &torrent,
        "--protocol",
        version,
    ];
    let more = ["--piece-length", "32KiB", "--node", "[2001:db8::1]:6881"];
    let created = command(&[&args[..], &more].concat()).output().unwrap();
    let error = String::from_utf8_lossy(&created.stderr);
    assert!(created.status.success(), "{error}");
    (content, torrent)
}

fn shown(torrent: &str) -> Value {
    let output = command(&["torrent", "show", torrent, "--json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn torrents_of_each_version_say_so() {
    let folder = tempfile::tempdir().unwrap();
    for (version, padding) in [("1", 0), ("2", 55_983), ("hybrid", 55_983)] {
        let dir = folder.path().join(version);
        fs::create_dir(&dir).unwrap();
        let (_, torrent) = made(&dir, version);
        let shown = shown(&torrent);
        assert_eq!(shown["version"], version);
        assert_eq!(shown["nodes"][0]["host"], "2001:db8::1");
        assert_eq!(shown["total_length"], 370_006);
        assert_eq!(shown["files"].as_array().unwrap().len(), 4);
        assert_eq!(shown["info_hash_v2"].is_null(), version == "1");
        assert_eq!(shown["padding_length"], padding, "{shown}");
        let magnet = command(&["torrent", "magnet", &torrent]).output().unwrap();
        let magnet = String::from_utf8(magnet.stdout).unwrap();
        assert_eq!(magnet.contains("xt=urn:btih:"), version != "2", "{magnet}");
        assert_eq!(
            magnet.contains("xt=urn:btmh:1220"),
            version != "1",
            "{magnet}"
        );
    }
}

#[test]
fn a_torrent_of_version_two_is_fetched_by_its_file_and_by_its_link() {
    if !no_scion_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (content, torrent) = made(folder.path(), "2");
    let args = ["seed", &torrent, &content, "--json", "--no-scion"];
    let mut seeder = Running::start(&[&args[..], &["--tcp", "127.0.0.1:0"]].concat());
    let peer = text(&seeder.json(), "listening_tcp").to_owned();
    let magnet = command(&["torrent", "magnet", &torrent]).output().unwrap();
    let magnet = String::from_utf8(magnet.stdout).unwrap().trim().to_owned();
    for (what, to) in [(&torrent, "by-file"), (&magnet, "by-link")] {
        let to = folder.path().join(to);
        let target = to.to_str().unwrap();
        let args = ["get", what, "-o", target, "--peer", &peer, "--json"];
        let got = command(&args).output().unwrap();
        let error = String::from_utf8_lossy(&got.stderr);
        assert!(got.status.success(), "{what}: {error}");
        for name in ["a.bin", "d/b.bin", "d/empty", "e"] {
            let [there, right] = [to.join("set"), folder.path().join("set")];
            let [there, right] = [there, right].map(|dir| fs::read(dir.join(name)).unwrap());
            assert!(there == right, "{what}: {name} differs");
        }
    }
}
