//! Torrents, peers, and arguments of downloads and seeders.

use super::*;

#[test]
fn errors_name_the_missing_part_of_a_listening_address() {
    for (address, hint) in [
        ("127.0.0.1", "127.0.0.1:0"),
        ("31000", "the address is missing"),
        ("1-ff00:0:110,10.0.1.1", "10.0.1.1:31000"),
        ("localhost:31000", "IP:PORT"),
    ] {
        wrong(&["seed", "x.torrent", "x", "--listen", address], &[hint]);
    }
}

#[test]
fn files_of_the_daemons_torrents_are_named_rightly() {
    let magnet = format!("magnet:?xt=urn:btih:{}", "1".repeat(40));
    for flags in [["--files", "1"], ["--exclude", "*.iso"]] {
        let add = ["torrent", "add", &magnet];
        wrong(&[&add[..], &flags].concat(), &["--files", "torrent files"]);
    }
    let files = |more: &[&'static str]| [&["torrent", "files", "x"], more].concat();
    wrong(&files(&["--priority", "high"]), &["--want"]);
    wrong(&files(&["--want", "1", "--priority", "most"]), &["normal"]);
    wrong(&files(&["--want", "0"]), &["count from 1"]);
    wrong(&["torrent", "limit", "x"], &["--seed-ratio"]);
    wrong(
        &["torrent", "limit", "x", "--limit-down", "much"],
        &["10mbit"],
    );
    wrong(&["daemon", "--limit-up", "0"], &["10mbit"]);
}

#[test]
fn an_invalid_peer_address_is_wrong_use() {
    for peer in ["10.0.0.1:0", "1-ff00:0:110", "nonsense"] {
        let output = hawser(&["get", "x.torrent", "--peer", peer]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(
            error.contains(peer) && error.contains("1-ff00:0:110"),
            "{error}"
        );
    }
}

#[test]
fn errors_name_the_missing_part_of_an_ip_peer() {
    let get = |peer| ["get", "x.torrent", "--peer", peer];
    wrong(&get("10.0.0.1"), &["no port", "10.0.0.1:6881"]);
    wrong(&get("::1"), &["no port", "[::1]:6881"]);
    let seed = |tcp| ["seed", "x.torrent", "x", "--tcp", tcp];
    wrong(&seed("127.0.0.1"), &["127.0.0.1:6881"]);
    wrong(&seed("6881"), &["0.0.0.0:6881"]);
    wrong(&seed("example:6881"), &["IP:PORT"]);
}

#[test]
fn invalid_seeding_flags_are_wrong_use() {
    let get = ["get", "x.torrent", "--peer", "10.0.0.1:6881"];
    for (more, hint) in [
        (["--seed-ratio", "0"], "above 0"),
        (["--seed-ratio", "-1"], "above 0"),
        (["--seed-ratio", "much"], "1.5"),
        (["--seed-time", "30"], "30m"),
        (["--seed-time", "-1m"], "30m"),
        (["--seed-time", "0m"], "above 0"),
        (["--tcp", "6881"], "0.0.0.0:6881"),
        (["--listen", "31000"], "the address is missing"),
    ] {
        wrong(&[&get[..], &more].concat(), &[more[0], hint]);
    }
    let seed = ["seed", "x.torrent", "x", "--no-scion"];
    wrong(&seed, &["--tcp"]);
    let both = [&seed[..], &["--tcp", "127.0.0.1:0", "--acl", "+"]].concat();
    wrong(&both, &["--no-scion", "--acl"]);
}

#[test]
fn a_download_from_ip_peers_alone_takes_nothing_in_a_scion_network() {
    let scion = "1-ff00:0:110,10.0.0.1:31000";
    for (flag, value) in [
        ("--peer", scion),
        ("--dht-node", scion),
        ("--listen", "127.0.0.1:0"),
        ("--sciond", "127.0.0.1:30255"),
    ] {
        let get = ["get", "x.torrent", "--no-scion", flag, value];
        wrong(&get, &["--no-scion", flag]);
    }
}

#[test]
fn a_truncated_torrent_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let torrent = torrent(folder.path());
    let bytes = std::fs::read(&torrent).unwrap();
    std::fs::write(&torrent, &bytes[..bytes.len() - 10]).unwrap();
    refused(
        &hawser(&["torrent", "show", &torrent]),
        1,
        &["data.bin.torrent"],
    );
}

#[test]
fn unsafe_file_names_are_shown_sanitised() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evil.torrent");
    let show = || hawser(&["torrent", "show", file.to_str().unwrap()]);
    let pieces = "a".repeat(20);
    for (path, safe) in [
        ("l2:..4:evile", "x/_/evil"),
        ("l4:/etce", "x/etc"),
        ("l0:e", "x/_"),
        ("l3:a/be", "x/ab"),
        ("l4:a\x1b[me", "x/a_[m"),
    ] {
        let text = format!(
            "d4:infod5:filesld6:lengthi5e4:path{path}ee4:name1:x12:piece lengthi16384e6:pieces20:{pieces}ee"
        );
        std::fs::write(&file, text).unwrap();
        let output = show();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(safe), "{text}");
        assert!(
            text.contains("listed as") && !text.contains('\x1b'),
            "{text}"
        );
    }
    let text = format!(
        "d4:infod5:filesld6:lengthi5e4:pathleee4:name1:x12:piece lengthi16384e6:pieces20:{pieces}ee"
    );
    std::fs::write(&file, text).unwrap();
    refused(&show(), 1, &["evil.torrent", "path"]);
    // Two piece hashes where the length requires one.
    let text =
        format!("d4:infod6:lengthi5e4:name1:x12:piece lengthi16384e6:pieces40:{pieces}{pieces}ee");
    std::fs::write(&file, text).unwrap();
    refused(&show(), 1, &["evil.torrent", "piece"]);
}

#[test]
fn unsupported_torrents_and_missing_files_have_distinct_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let three = file(
        "three.torrent",
        "d4:infod12:meta versioni3e4:name1:a12:piece lengthi16384eee",
    );
    let link = file("link.torrent", "magnet:?xt=urn:btih:aaaa\n");
    let magnet = "magnet:?xt=urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a&dn=x";
    for command in [
        &["torrent", "show"][..],
        &["get", "--peer", "127.0.0.1:1"],
        &["seed"],
    ] {
        // `seed` takes the content after the torrent; `--` ends `get`'s list of peers.
        let with = |torrent| {
            let content: &[&str] = if command[0] == "seed" { &["x"] } else { &[] };
            hawser(&[command, &["--", torrent], content].concat())
        };
        // `get` takes links, but not files with one.
        let links: &[&str] = match command[0] {
            "get" => &[&link],
            _ => &[magnet, "MAGNET:?xt=urn:btmh:1220aaaa", &link],
        };
        for magnet in links {
            refused(&with(magnet), 2, &["takes a .torrent file", "`hawser get`"]);
        }
        refused(&with("ftp://a.example/x.torrent"), 2, &["URLs", "curl"]);
        refused(&with(&three), 1, &["three.torrent", "version 3"]);
        refused(
            &with("/absent.torrent"),
            2,
            &["absent.torrent", "no such file"],
        );
    }
}

#[test]
fn a_download_needs_a_peer_or_a_web_seed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.bin").display().to_string();
    std::fs::write(&data, vec![42; 50_000]).unwrap();
    let create = ["torrent", "create", &data, "--force"];
    let output = hawser(&create);
    assert!(output.status.success(), "{output:?}");
    let torrent = format!("{data}.torrent");
    refused(&hawser(&["get", &torrent]), 2, &["--peer", "--tcp"]);
    let hash = "0123456789012345678901234567890123456789";
    let link = format!("magnet:?xt=urn:btih:{hash}&ws=https%3A%2F%2Fexample.org%2Fdata.bin");
    let words = ["web seeds of a link", "not the metadata", "--peer"];
    refused(&hawser(&["get", &link, "--find", "none"]), 2, &words);
    for (flag, value, hint) in [
        ("--announce", "tracker.example.org", "udp://"),
        ("--announce", "magnet:?xt=x", "udp://"),
        ("--announce", "http://a/,b", "udp://"),
        ("--web-seed", "udp://a.example/", "https://"),
    ] {
        wrong(&[&create[..], &[flag, value]].concat(), &[flag, hint]);
    }
}

#[test]
fn a_download_never_overwrites_its_own_torrent() {
    let folder = tempfile::tempdir().unwrap();
    // Content with the torrent's own file name in the folder.
    let content = folder.path().join("content");
    std::fs::create_dir(&content).unwrap();
    let inner = content.join("x.torrent");
    std::fs::write(&inner, vec![42; 50_000]).unwrap();
    let torrent = folder.path().join("x.torrent").display().to_string();
    let inner = inner.display().to_string();
    let output = hawser(&["torrent", "create", &inner, "-o", &torrent]);
    assert!(output.status.success(), "{output:?}");
    let before = std::fs::read(&torrent).unwrap();
    let out = folder.path().display().to_string();
    for force in [&[][..], &["--force"]] {
        let get = ["get", &torrent, "-o", &out, "--peer", "127.0.0.1:1"];
        refused(
            &hawser(&[&get[..], force].concat()),
            2,
            &["x.torrent", "-o"],
        );
    }
    assert_eq!(std::fs::read(&torrent).unwrap(), before);
}

#[test]
fn files_that_a_torrent_does_not_have_cannot_be_selected() {
    let folder = tempfile::tempdir().unwrap();
    let torrent = torrent(folder.path());
    let to = folder.path().join("got").display().to_string();
    let get = ["get", &torrent, "-o", &to, "--peer", "127.0.0.1:1"];
    for (more, words) in [
        (
            &["--files", "2"][..],
            &["--files 2", "one file", "torrent show"][..],
        ),
        (&["--files", "1,3-5"], &["--files 5", "torrent show"]),
        (&["--files", "*.iso"], &["--files *.iso", "torrent show"]),
        (
            &["--exclude", "*.iso"],
            &["--exclude *.iso", "torrent show"],
        ),
        (&["--exclude", "*.bin"], &["no file", "--exclude"]),
    ] {
        refused(&hawser(&[&get[..], more].concat()), 2, words);
        assert!(!Path::new(&to).exists(), "{more:?}");
    }
    for (files, hint) in [("0", "count from 1"), ("3-1", "3-5"), ("[a", "pattern")] {
        wrong(
            &[&get[..], &["--files", files]].concat(),
            &["--files", hint],
        );
    }
}

#[test]
fn invalid_piece_lengths_are_wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.bin");
    std::fs::write(&file, b"data").unwrap();
    for length in ["3", "16385", "8KiB", "256MiB", "99GiB"] {
        let output = hawser(&[
            "torrent",
            "create",
            file.to_str().unwrap(),
            "--piece-length",
            length,
        ]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{length}: {error}");
        assert!(error.contains("piece-length"), "{error}");
    }
    assert!(!folder.path().join("data.bin.torrent").exists());
}
