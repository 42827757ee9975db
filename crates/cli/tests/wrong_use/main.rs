//! Wrong use and bad input: one clear line, and the matching exit code.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod config;
mod daemon;
mod exports;
mod image;
mod join;
mod keys;
mod labs;
mod limit;
mod limits_only;
mod map;
mod shim;
mod torrents;

use std::path::Path;

use self::common::{hawser, refused, wrong};

/// Makes a torrent of some bytes and returns its path.
fn torrent(folder: &Path) -> String {
    let file = folder.join("data.bin");
    std::fs::write(&file, vec![42; 100_000]).unwrap();
    let output = hawser(&["torrent", "create", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    format!("{}.torrent", file.display())
}

#[test]
fn a_missing_daemon_is_reported_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let torrent = torrent(folder.path());
    let host = "1-ff00:0:110,10.0.1.1";
    for (args, code) in [
        // The exit code of `scion` when it cannot report anything.
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
fn the_folder_of_an_as_must_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for (path, why) in [
        ("/nowhere", "no such folder"),
        (file.to_str().unwrap(), "is not a folder"),
        (folder.path().to_str().unwrap(), "no topology.json in it"),
    ] {
        for args in [
            &["router", "run", path][..],
            &["control", "run", path],
            &["paths", "1-ff00:0:110", "--config-dir", path],
        ] {
            refused(&hawser(args), 2, &[path, why, "topology.json"]);
        }
    }
}

#[test]
fn a_named_daemon_or_folder_must_exist() {
    for (args, name) in [
        (["--sciond", "127.0.0.1:2"], "127.0.0.1:2"),
        (["--config-dir", "/nowhere"], "/nowhere"),
        (["--bootstrap", "http://127.0.0.1:2"], "http://127.0.0.1:2"),
    ] {
        let output = hawser(&[&["paths", "1-ff00:0:110"], &args[..]].concat());
        refused(&output, 2, &[name]);
    }
}

#[test]
fn invalid_flags_of_a_host_are_wrong_use() {
    let (dst, host) = ("1-ff00:0:110", "1-ff00:0:110,10.0.1.1");
    wrong(&["paths", dst, "--sciond", "localhost"], &["HOST:PORT"]);
    wrong(&["paths", dst, "--local", "0.0.0.0"], &["--local"]);
    let url = "http://192.0.2.1:8041";
    for wrong_url in ["192.0.2.1", "https://192.0.2.1", "http://192.0.2.1:x"] {
        wrong(
            &["paths", dst, "--bootstrap", wrong_url],
            &["--bootstrap", url],
        );
    }
    wrong(
        &["paths", dst, "--bootstrap", url, "--sciond", "default"],
        &["--sciond"],
    );
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
fn invalid_choices_of_paths_are_wrong_use() {
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
fn a_missing_file_is_wrong_use_for_every_command() {
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
fn local_inputs_are_checked_before_the_network() {
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
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let link = link.to_str().unwrap();
    let words = ["-o", link, "symbolic link to nowhere", "does not exist"];
    refused(&hawser(&[&get[..5], &[link]].concat()), 2, &words);
    refused(
        &hawser(&["seed", &torrent, "nofile"]),
        2,
        &["nofile", "no such file"],
    );
    for args in [&["get", "", "--find", "dht"][..], &["torrent", "add", ""]] {
        refused(&hawser(args), 2, &["the name of a file", "is empty"]);
    }
}

#[test]
fn an_error_about_a_negative_value_names_the_option() {
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
        (
            vec!["router", "run", "x", "--threads", "0"],
            "0 is not in 1..=65535",
        ),
        (vec!["bench", "throughput", "--routers", "1"], "--routers"),
        (vec!["bench", "throughput", "--only", "x"], "--only"),
        (vec!["bench", "scale", "--only", "x"], "--only"),
        (vec!["bench", "limit", "--part", "x"], "--part"),
        (
            vec!["bench", "limit", "--link-counts", "3"],
            "--link-counts",
        ),
        (
            vec!["bench", "clients", "--piece-length", "3"],
            "--piece-length",
        ),
        (
            vec!["perf", "1-ff00:0:110,127.0.0.1:1", "--raw", "-1mbit"],
            "--raw",
        ),
        (vec!["send", "x", "--limit", "-1mbit"], "--limit"),
        (vec!["receive", "--limit", "0"], "--limit"),
        (
            vec!["fetch", "1-ff00:0:110,127.0.0.1:1", "--limit", "fast"],
            "--limit",
        ),
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
fn an_empty_entry_of_a_list_is_reported_in_one_line() {
    for args in [
        ["bench", "mptcp", "--paths", "1,,2"],
        ["bench", "scale", "--only", "paths,"],
        ["bench", "fig5", "--only", ",a"],
        ["bench", "limit", "--limit", "1mbit,,2mbit"],
    ] {
        let output = hawser(&args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        let begin = format!("hawser: {} {}: ", args[2], args[3]);
        assert!(error.starts_with(&begin), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    }
}

#[test]
fn without_arguments_the_program_says_what_people_come_for() {
    let output = hawser(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    for command in ["get", "receive", "run", "demo", "doctor", "help"] {
        assert!(text.contains(&format!("hawser {command}")), "{text}");
    }
}

#[test]
fn old_names_are_refused_and_nowhere_shown() {
    // All of them are in the tests of the program.
    for (args, text) in [
        (
            &["map", "list"][..],
            "`hawser map` is now `hawser shim map`",
        ),
        (
            &["join", "x", "--once"],
            "`hawser join` is now `hawser as join`",
        ),
        (
            &["shim", "up", "--serve", "22"],
            "`hawser shim up --serve` is now `hawser shim up --expose`",
        ),
        (
            &["send", "x", "-o"],
            "`hawser send -o` is now `hawser send --owner`",
        ),
        (
            &["serve", "--config", "serve.toml"],
            "`hawser serve` is now `hawser daemon`",
        ),
    ] {
        let output = hawser(args);
        refused(&output, 2, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, format!("hawser: {text}\n"));
    }
    let completions = hawser(&["completions", "fish"]);
    let completions = String::from_utf8(completions.stdout).unwrap();
    assert!(completions.contains("random-seed") && completions.contains("expose-network"));
    for old in [
        "max-paths",
        "serve-network",
        "max-connections-per-peer",
        "limit serve",
    ] {
        assert!(!completions.contains(old), "{old}");
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
fn an_unknown_daemon_name_and_a_stopped_daemon_have_distinct_errors() {
    // A name that never exists (RFC 6761, section 6.4).
    let name = "nowhere.invalid:30255";
    let output = hawser(&["paths", "1-ff00:0:110", "--sciond", name]);
    refused(&output, 2, &[name, "name is unknown", "IP address"]);
    let output = hawser(&["paths", "1-ff00:0:110", "--sciond", "127.0.0.1:1"]);
    refused(&output, 2, &["127.0.0.1:1", "start it"]);
}

#[test]
fn an_invalid_as_is_refused_with_an_example() {
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
