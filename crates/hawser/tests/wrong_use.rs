//! Wrong use and bad input: one clear line, and the exit code that says so.

#![allow(clippy::unwrap_used)]

use std::{
    path::Path,
    process::{Command, Output},
};

fn hawser(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hawser"))
        .args(args)
        // Port 1 of the loopback: nobody listens there.
        .env("SCION_DAEMON", "127.0.0.1:1")
        .output()
        .unwrap()
}

/// Asserts a failure with the exit code, told in one line with these words.
fn refused(output: &Output, code: i32, words: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    assert!(output.stdout.is_empty());
}

/// Makes a torrent of some bytes and returns its path.
fn torrent(folder: &Path) -> String {
    let file = folder.join("data.bin");
    std::fs::write(&file, vec![42; 100_000]).unwrap();
    let output = hawser(&["torrent", "create", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    format!("{}.torrent", file.display())
}

#[test]
fn no_daemon_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let torrent = torrent(folder.path());
    let host = "1-ff00:0:110,10.0.1.1";
    for (args, code) in [
        // As `scion` exits when it cannot report anything.
        (vec!["paths", "1-ff00:0:110"], 2),
        (vec!["paths", "1-ff00:0:110", "--json"], 2),
        (vec!["ping", host, "-c", "1"], 2),
        (vec!["traceroute", host], 2),
        (
            vec!["get", &torrent, "--peer", "1-ff00:0:110,10.0.1.1:31000"],
            1,
        ),
    ] {
        refused(&hawser(&args), code, &["127.0.0.1:1", "SCION_DAEMON"]);
    }
}

#[test]
fn a_daemon_or_folder_that_is_named_must_be_there() {
    for (args, name) in [
        (["--sciond", "127.0.0.1:2"], "127.0.0.1:2"),
        (["--config-dir", "/nowhere"], "/nowhere"),
    ] {
        let output = hawser(&[&["paths", "1-ff00:0:110"], &args[..]].concat());
        refused(&output, 2, &[name]);
    }
}

/// Asserts wrong use, told with these words.
fn wrong(args: &[&str], words: &[&str]) {
    let output = hawser(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    for word in words {
        assert!(
            error.contains(word),
            "{args:?}: {word:?} is not in: {error}"
        );
    }
    assert!(output.stdout.is_empty());
}

#[test]
fn flags_of_a_host_that_mean_nothing_are_wrong_use() {
    let (dst, host) = ("1-ff00:0:110", "1-ff00:0:110,10.0.1.1");
    wrong(&["paths", dst, "--sciond", "localhost"], &["HOST:PORT"]);
    wrong(&["paths", dst, "--local", "0.0.0.0"], &["--local"]);
    wrong(&["paths", dst, "--sequence", "0 |"], &["at byte 3"]);
    wrong(&["paths", dst, "--format", "xml"], &["xml"]);
    wrong(&["paths", dst, "--epic"], &["EPIC"]);
    wrong(
        &["ping", host, "--path", "xyz"],
        &["hex digits", "hawser paths"],
    );
    wrong(&["ping", host, "--path", ""], &["hex digits"]);
    wrong(&["ping", host, "--interval", "0s"], &["1ms"]);
    wrong(&["ping", "1-ff00:0:110,10.0.1.1:80"], &["without a port"]);
    wrong(&["ping", host, "--epic"], &["EPIC"]);
    wrong(&["traceroute", "10.0.1.1"], &["1-ff00:0:110,10.0.1.1"]);
    wrong(&["traceroute", host, "--epic"], &["EPIC"]);
}

#[test]
fn choices_of_paths_that_mean_nothing_are_wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let torrent = torrent(folder.path());
    let several = file("several.yml", "a: {}\nb: {}");
    let broken = file("broken.yml", "a: {acl: [nonsense]}");
    let table = file("table.yml", "1-ff00:0:110: 12.5");
    let no_table = file("no-table.yml", "1-ff00:0:110: much");
    let no_amount = file("no-amount.yml", "1-ff00:0:110#2: -3");
    let nobody = file("nobody.yml", "everybody: 3");
    let absent = folder.path().join("absent.yml").display().to_string();
    let named = format!("{several}:c");
    let get = ["get", &torrent, "--peer", "1-ff00:0:110,10.0.1.1:31000"];
    let explain = ["paths", "1-ff00:0:110", "--explain"];
    for command in [&get[..], &explain] {
        let carbon = |file| [command, &["--select", "carbon", "--carbon", file]].concat();
        refused(
            &hawser(&carbon(&no_table)),
            2,
            &["--carbon", "no-table.yml", "12.5"],
        );
        refused(&hawser(&carbon(&no_amount)), 2, &["1-ff00:0:110#2", "-3"]);
        refused(
            &hawser(&carbon(&nobody)),
            2,
            &["'everybody'", "1-ff00:0:110#2"],
        );
        refused(&hawser(&carbon(&absent)), 2, &["--carbon", "absent.yml"]);
        let unused = hawser(&[command, &["--carbon", &table]].concat());
        refused(&unused, 2, &["--carbon", "--select carbon"]);
        for (select, hint) in [
            ("fastest", "shortest, latency"),
            ("disjoint,spread:40%", "one of them"),
            ("spread:40", "spread:40%"),
        ] {
            wrong(
                &[command, &["--select", select]].concat(),
                &["--select", hint],
            );
        }
        for paths in ["0", "65", "many"] {
            wrong(&[command, &["--paths", paths]].concat(), &["--paths"]);
        }
    }
    let seed = ["seed", &torrent, "x"];
    for command in [&get[..], &seed, &explain] {
        for (policy, hints) in [
            (&absent, ["absent.yml", "--policy"]),
            (&several, ["several.yml", "name one"]),
            (&named, ["several.yml", "\"c\""]),
            (&broken, ["broken.yml", "nonsense"]),
        ] {
            refused(
                &hawser(&[command, &["--policy", policy]].concat()),
                2,
                &hints,
            );
        }
        let no_default = hawser(&[command, &["--acl", "- 2"]].concat());
        refused(&no_default, 2, &["--acl", "default"]);
        wrong(
            &[command, &["--acl", "nonsense"]].concat(),
            &["--acl", "nonsense"],
        );
        let both = [command, &["--acl", "+", "--policy", &several]].concat();
        wrong(&both, &["--acl", "--policy"]);
    }
    let unused = hawser(&[&seed[..], &["--carbon", &table]].concat());
    refused(&unused, 2, &["--carbon", "--select carbon"]);
    for (flag, value) in [("--select", "shortest"), ("-n", "2"), ("--carbon", &table)] {
        let output = hawser(&["paths", "1-ff00:0:110", flag, value]);
        refused(&output, 2, &["--explain"]);
    }
}

#[test]
fn an_address_to_listen_at_that_lacks_something_is_explained() {
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
fn a_peer_that_is_no_address_is_wrong_use() {
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
fn what_is_missing_of_an_ip_peer_is_named() {
    let get = |peer| ["get", "x.torrent", "--peer", peer];
    wrong(&get("10.0.0.1"), &["no port", "10.0.0.1:6881"]);
    wrong(&get("::1"), &["no port", "[::1]:6881"]);
    let seed = |tcp| ["seed", "x.torrent", "x", "--tcp", tcp];
    wrong(&seed("127.0.0.1"), &["127.0.0.1:6881"]);
    wrong(&seed("6881"), &["0.0.0.0:6881"]);
    wrong(&seed("example:6881"), &["IP:PORT"]);
}

#[test]
fn seeding_that_means_nothing_is_wrong_use() {
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
fn a_torrent_cut_short_is_refused() {
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
fn names_that_leave_the_folder_are_shown_as_they_are_made_safe() {
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
    // Two pieces where the length wants one.
    let text =
        format!("d4:infod6:lengthi5e4:name1:x12:piece lengthi16384e6:pieces40:{pieces}{pieces}ee");
    std::fs::write(&file, text).unwrap();
    refused(&show(), 1, &["evil.torrent", "piece"]);
}

#[test]
fn what_is_no_torrent_yet_is_told_apart_from_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let two = file(
        "two.torrent",
        "d4:infod12:meta versioni2e4:name1:a12:piece lengthi16384eee",
    );
    let link = file("link.torrent", "magnet:?xt=urn:btih:aaaa\n");
    let magnet = "magnet:?xt=urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a&dn=x";
    for command in [
        &["torrent", "show"][..],
        &["get", "--peer", "127.0.0.1:1"],
        &["seed"],
    ] {
        // `seed` takes the content behind it, `--` keeps `get`'s peers apart.
        let with = |torrent| {
            let content: &[&str] = if command[0] == "seed" { &["x"] } else { &[] };
            hawser(&[command, &["--", torrent], content].concat())
        };
        for magnet in [magnet, "MAGNET:?xt=urn:btmh:1220aaaa", &link] {
            refused(&with(magnet), 2, &["magnet links are not supported yet"]);
        }
        refused(&with("https://a.example/x.torrent"), 2, &["URLs", "curl"]);
        refused(&with(&two), 1, &["two.torrent", "version 2 alone"]);
        refused(
            &with("/absent.torrent"),
            2,
            &["absent.torrent", "no such file"],
        );
    }
}

#[test]
fn without_a_peer_a_download_says_what_it_does_not_ask_yet() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.bin").display().to_string();
    std::fs::write(&data, vec![42; 50_000]).unwrap();
    let create = ["torrent", "create", &data, "--force"];
    let announce = ["--announce", "udp://tracker.example.org:6969"];
    let web_seed = ["--web-seed", "https://example.org/data.bin"];
    for (flags, words) in [
        (&[][..], &["--peer"][..]),
        (&announce, &["trackers", "not asked yet", "--peer"]),
        (&web_seed, &["web seeds", "not used yet", "--peer"]),
    ] {
        let output = hawser(&[&create[..], flags].concat());
        assert!(output.status.success(), "{output:?}");
        let torrent = format!("{data}.torrent");
        refused(&hawser(&["get", &torrent]), 2, words);
    }
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
fn a_download_never_goes_over_its_own_torrent() {
    let folder = tempfile::tempdir().unwrap();
    // Content of the name that the torrent itself has in the folder.
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
fn commands_on_a_lab_that_is_not_up_say_so() {
    let name = format!("absent-{}", std::process::id());
    for args in [
        vec!["lab", "status", "--name", &name],
        vec!["lab", "exec", "1-ff00:0:1", "--name", &name, "--", "true"],
        vec![
            "lab",
            "link",
            "set",
            "1-ff00:0:1#1",
            "--down",
            "--name",
            &name,
        ],
        vec!["lab", "logs", "--name", &name],
        vec!["lab", "shell", "1-ff00:0:1", "--name", &name],
        vec!["lab", "graph", "--name", &name],
        vec!["lab", "save", "x.topo", "--name", &name],
        vec!["lab", "capture", "1-ff00:0:1#1", "-w", "-", "--name", &name],
    ] {
        refused(&hawser(&args), 1, &[&name]);
    }
    let output = hawser(&["lab", "link", "set", "1-ff00:0:1#1", "--name", &name]);
    refused(&output, 2, &["--rate"]);
    let output = hawser(&["lab", "up", "fig99", "--name", &name]);
    refused(&output, 2, &["fig99", "fig7a"]);
}

#[test]
fn names_no_lab_can_have_are_wrong_use() {
    for name in ["../x", "", "a/b", ".hidden"] {
        for command in [&["up", "fig4"][..], &["down"], &["status"]] {
            let output = hawser(&[&["lab"], command, &["--name", name]].concat());
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name:?}: {error}");
            assert!(error.contains("no name for a lab"), "{error}");
        }
    }
}

#[test]
fn piece_lengths_nobody_reads_are_wrong_use() {
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

#[test]
fn what_cannot_be_simulated_is_explained() {
    wrong(&["simulate"], &["TOPO", "--generate"]);
    wrong(
        &["simulate", "fig9", "--generate", "9"],
        &["cannot be used with"],
    );
    wrong(&["simulate", "--generate", "0"], &["1..=2000"]);
    wrong(&["simulate", "fig9", "--leechers", "0"], &["--leechers"]);
    wrong(&["simulate", "fig9", "--arrive", "5"], &["20ms"]);
    wrong(&["simulate", "fig9", "--select", "best"], &["disjoint"]);
    refused(&hawser(&["simulate", "fig99"]), 2, &["fig99", "fig7a"]);
    let nowhere = ["simulate", "fig9", "--seeder-in", "1-ff00:0:99"];
    refused(&hawser(&nowhere), 1, &["1-ff00:0:99"]);
}

#[test]
fn flags_of_the_labs_tools_that_mean_nothing_are_wrong_use() {
    let capture = ["lab", "capture", "1-ff00:0:1#1"];
    wrong(&capture, &["--write"]);
    wrong(&[&capture[..], &["-w", "x", "-c", "0"]].concat(), &["-c"]);
    let time = [&capture[..], &["-w", "x", "--duration", "5"]].concat();
    wrong(&time, &["20ms"]);
    wrong(
        &["lab", "capture", "1-ff00:0:1", "-w", "x"],
        &["1-ff00:0:1"],
    );
    wrong(
        &["lab", "graph", "--json", "--svg", "x"],
        &["--json", "--svg"],
    );
    wrong(&["lab", "graph", "--force"], &["--svg"]);
    wrong(&["lab", "shell"], &["<AS>"]);
    for command in ["shell", "logs"] {
        wrong(&["lab", command, "1-ff00:0:11x"], &["1-ff00:0:110"]);
    }
    wrong(&["lab", "save"], &["FILE"]);
    wrong(&["lab", "logs", "-n", "few"], &["--tail", "few"]);
    wrong(&["completions", "tcsh"], &["bash", "fish", "zsh"]);
    wrong(&["man", "--force"], &["--output"]);
}

#[test]
fn a_file_that_is_not_there_is_wrong_use_wherever_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let torrent = torrent(folder.path());
    let here = folder.path().to_str().unwrap();
    let peer = "1-ff00:0:110,10.0.1.1:31000";
    let carbon = ["--select", "carbon", "--carbon", "/nowhere"];
    let paths = ["paths", "1-ff00:0:110", "--explain"];
    for args in [
        vec!["torrent", "show", "/nowhere"],
        vec!["torrent", "create", "/nowhere"],
        vec!["get", "/nowhere", "--peer", peer],
        vec!["get", &torrent, "--peer", peer, "--config-dir", "/nowhere"],
        vec!["seed", "/nowhere", here],
        vec!["seed", &torrent, "/nowhere"],
        vec!["seed", &torrent, here, "--policy", "/nowhere"],
        [&["get", &torrent, "--peer", peer], &carbon[..]].concat(),
        [&paths[..], &carbon[..]].concat(),
        [&paths[..], &["--policy", "/nowhere:p"]].concat(),
        vec!["demo", "--file", "/nowhere"],
        vec!["simulate", "/nowhere"],
        vec!["lab", "up", "/nowhere"],
        vec!["router", "run", "/nowhere"],
        vec!["control", "run", "/nowhere"],
    ] {
        let output = hawser(&args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(
            error.contains("/nowhere") && error.lines().count() == 1,
            "{args:?}: {error}"
        );
    }
    refused(
        &hawser(&["torrent", "show", here]),
        2,
        &[here, "is a folder"],
    );
}

#[test]
fn local_inputs_are_looked_at_before_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let torrent = torrent(folder.path());
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let file = file.to_str().unwrap();
    let get = [
        "get",
        &torrent,
        "--peer",
        "1-ff00:0:110,10.0.1.1:31000",
        "-o",
        file,
    ];
    refused(
        &hawser(&get),
        2,
        &["-o", file, "is a file", "name a folder"],
    );
    refused(
        &hawser(&["seed", &torrent, "nofile"]),
        2,
        &["nofile", "no such file"],
    );
}

#[test]
fn a_negative_value_is_the_options_own_mistake() {
    let peer = ["--peer", "127.0.0.1:1"];
    let (host, link) = ("1-ff00:0:110,10.0.1.1", "1-ff00:0:110#1");
    for (args, option) in [
        (
            vec!["get", "x", peer[0], peer[1], "--paths", "-1"],
            "--paths",
        ),
        (vec!["get", "x", peer[0], peer[1], "-n", "-1"], "--paths"),
        (
            vec!["lab", "link", "set", link, "--rate", "-5mbit"],
            "--rate",
        ),
        (
            vec!["lab", "link", "set", link, "--delay", "-5ms"],
            "--delay",
        ),
        (vec!["lab", "link", "set", link, "--loss", "-1%"], "--loss"),
        (vec!["demo", "--size", "-1MiB"], "--size"),
        (vec!["bench", "fig8", "--repeat", "-1"], "--repeat"),
        (vec!["ping", host, "-c", "-3"], "--count"),
        (vec!["ping", host, "--timeout", "-1s"], "--timeout"),
        (vec!["paths", "1-ff00:0:110", "-m", "-1"], "--maxpaths"),
        (vec!["simulate", "fig9", "--leechers", "-3"], "--leechers"),
    ] {
        let output = hawser(&args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(option), "{args:?}: {error}");
        assert!(
            error.contains("invalid value") && !error.contains("-- -"),
            "{args:?}: {error}"
        );
    }
}

#[test]
fn a_mistyped_command_is_suggested() {
    for (typed, meant) in [
        (&["gte"][..], "get"),
        (&["sede"], "seed"),
        (&["pnig"], "ping"),
        (&["lab", "pu"], "up"),
        (&["lab", "stauts"], "status"),
        (&["torrent", "craete"], "create"),
        (&["traceruote"], "traceroute"),
    ] {
        wrong(typed, &[&format!("'{meant}'"), "similar"]);
    }
    let output = hawser(&["frobnicate"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("similar"), "{error}");
}

#[test]
fn a_daemon_whose_name_is_unknown_is_told_from_one_that_is_not_up() {
    // A name that never exists (RFC 6761, section 6.4).
    let name = "nowhere.invalid:30255";
    let output = hawser(&["paths", "1-ff00:0:110", "--sciond", name]);
    refused(&output, 2, &[name, "name is unknown", "IP address"]);
    let output = hawser(&["paths", "1-ff00:0:110", "--sciond", "127.0.0.1:1"]);
    refused(&output, 2, &["127.0.0.1:1", "start it"]);
}

#[test]
fn what_is_no_as_comes_with_an_example() {
    for text in ["1-ff00:0:11x", "ff00:0:110", "1", "1-ff00:0:110,10.0.1.1"] {
        wrong(
            &["lab", "exec", text, "--", "true"],
            &[text, "1-ff00:0:110"],
        );
        wrong(&["paths", text], &[text, "1-ff00:0:110"]);
        wrong(
            &["simulate", "fig9", "--seeder-in", text],
            &[text, "1-ff00:0:110"],
        );
        wrong(
            &["lab", "up", "fig4", "--no-router", text],
            &[text, "1-ff00:0:110"],
        );
    }
}

#[test]
fn iperf3_is_refused_where_it_would_measure_several_links() {
    let output = hawser(&["demo", "--iperf3"]);
    refused(&output, 2, &["--iperf3", "fig7a", "--topology fig4"]);
}
