//! `hawser shim map`: changes that are refused, and what is printed.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread;

use crate::common::{command, failed, hawser, refused, wrong};

/// Runs `hawser shim map` with its file below `folder`.
fn map(folder: &Path, args: &[&str]) -> Output {
    let mut command = command(&[&["shim", "map"], args].concat());
    command.env("XDG_CONFIG_HOME", folder).output().unwrap()
}

fn printed(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn entries_are_added_listed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hawser/map.toml");
    let map = |args: &[&str]| map(folder.path(), args);
    let none = printed(map(&["list"]));
    assert_eq!(none, format!("{} has no entries\n", file.display()));
    assert_eq!(printed(map(&["list", "--json"])), "[]\n");
    assert!(!file.exists());
    let net = ["add", "10.1.0.0/16", "1-ff00:0:4"];
    assert_eq!(printed(map(&net)), "");
    let host = ["add", "10.1.0.7", "1-ff00:0:5,10.0.0.1", "-n", "2"];
    assert_eq!(
        printed(map(&[&host[..], &["--comment", "a \"b\"\n"]].concat())),
        ""
    );
    assert_eq!(
        printed(map(&["list"])),
        "DESTINATION  TARGET               PATHS  COMMENT  INSTEAD OF\n\
         10.1.0.0/16  1-ff00:0:4\n\
         10.1.0.7     1-ff00:0:5,10.0.0.1  2      a \"b\"\\n  10.1.0.0/16\n"
    );
    let json: serde_json::Value = serde_json::from_str(&printed(map(&["list", "--json"]))).unwrap();
    assert_eq!(json[0]["target"], "1-ff00:0:4");
    assert_eq!(json[1]["comment"], "a \"b\"\n");
    assert_eq!(json[1]["instead_of"], "10.1.0.0/16");
    let before = fs::read_to_string(&file).unwrap();
    assert_eq!(printed(map(&["add", "db.example:5432", "1-ff00:0:6"])), "");
    assert_eq!(printed(map(&["remove", "DB.example:5432"])), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);

    let file = file.to_str().unwrap();
    refused(
        &map(&net),
        1,
        &[file, "`10.1.0.0/16` exists in line 5", "1-ff00:0:4"],
    );
    refused(
        &map(&["remove", "10.1.0.0/24"]),
        1,
        &[file, "`10.1.0.0/24` is not mapped"],
    );
    assert_eq!(fs::read_to_string(file).unwrap(), before);
}

#[test]
fn removing_from_no_map_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    refused(
        &map(folder.path(), &["remove", "10.1.0.0/16"]),
        1,
        &["is not mapped"],
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let absent = folder.path().join("map.toml");
    let absent = absent.to_str().unwrap();
    for args in [&["list"][..], &["remove", "10.1.0.0/16"]] {
        let output = hawser(&[&["shim", "map"], args, &["--map", absent]].concat());
        refused(&output, 2, &[absent]);
    }
    let nowhere = [
        "shim",
        "map",
        "add",
        "10.1.0.0/16",
        "1-ff00:0:4",
        "--map",
        "/nowhere/map.toml",
    ];
    refused(&hawser(&nowhere), 2, &["/nowhere", "make it first"]);
}

#[test]
fn wrong_arguments_are_wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    let to = "1-ff00:0:4";
    for (args, words) in [
        (
            &["10.1.0.1/16", to][..],
            &["10.1.0.1/16", "write 10.1.0.0/16"][..],
        ),
        (
            &["10.1.0.300", to],
            &["neither an IP prefix nor a host name"],
        ),
        (&["10.1.0.1:0", to], &["no port from 1 to 65535"]),
        (&["0.0.0.0/0", to], &["leave them out"]),
        (&["127.0.0.1", to], &["loopback"]),
        (&["ff02::1", to], &["multicast"]),
        (
            &["10.1.0.1", "10.0.0.1"],
            &["not one AS", "1-ff00:0:4,10.0.0.1"],
        ),
        (
            &["10.1.0.1", "1-ff00:0:4,example"],
            &["names no host after the AS"],
        ),
        (&["10.1.0.1", to, "--paths", "9"], &["--paths", "1..=8"]),
        (
            &["10.1.0.1", to, "--policy", "/nowhere"],
            &["--policy /nowhere", "no file"],
        ),
        (&["10.1.0.1"], &["TARGET"]),
    ] {
        failed(&map(folder.path(), &[&["add"], args].concat()), 2, words);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    wrong(&["shim", "map", "remvoe", "10.1.0.1"], &["'remove'"]);
}

#[test]
fn each_wrong_line_of_a_map_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let file = write(
        "map.toml",
        "[destinations]\n\"10.1.0.0/16\" = \"1-ff00:0:4\"\n\"fd00::\" = \"1\"\n\"fd00::/128\" = \"1-ff00:0:4\"\nb = { to = \"1-ff00:0:4\", mtu = 1 }\n",
    );
    let commands: [&[&str]; 3] = [
        &["list"],
        &["add", "10.2.0.0/16", "1-ff00:0:4"],
        &["remove", "10.1.0.0/16"],
    ];
    for command in commands {
        let output = hawser(&[&["shim", "map"], command, &["--map", &file]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(
            lines[0].contains(&format!("{file}:3: `1` is not one AS")),
            "{error}"
        );
        assert!(
            lines[1].contains(&format!("{file}:5: unknown key `mtu`")),
            "{error}"
        );
    }
    let twice = write(
        "twice.toml",
        "[destinations]\n\"10.1.0.1\" = \"1-ff00:0:4\"\n\"10.1.0.1/32\" = \"1-ff00:0:5\"\n",
    );
    let output = hawser(&["shim", "map", "list", "--map", &twice]);
    let both = [
        "twice.toml:3: ",
        "1-ff00:0:5 here",
        "1-ff00:0:4 in line 2",
        "remove one",
    ];
    refused(&output, 1, &both);
}

#[test]
fn shilas_file_is_read_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("routing.json");
    let text = "[\n{\"key\": {\"ip\": \"10.7.0.9\", \"port\": \"11111\"},\n \"flow\": {\"address\": \"1-ff00:0:4,127.0.0.1:11111\", \"path\": {\"elements\": [{\"element\": {}}]}}}\n]\n";
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(
        printed(hawser(&["shim", "map", "list", "--map", file])),
        "DESTINATION     TARGET\n10.7.0.9:11111  1-ff00:0:4,127.0.0.1\n"
    );
    let commands: [&[&str]; 2] = [
        &["add", "10.2.0.0/16", "1-ff00:0:4"],
        &["remove", "10.7.0.9:11111"],
    ];
    for command in commands {
        let output = hawser(&[&["shim", "map"], command, &["--map", file]].concat());
        refused(&output, 2, &[file, "only read"]);
    }
    assert_eq!(fs::read_to_string(file).unwrap(), text);
    fs::write(file, text.replace("{}", "\"1-ff00:0:4#2\"")).unwrap();
    let output = hawser(&["shim", "map", "list", "--map", file]);
    refused(&output, 1, &["routing.json:2: ", "not supported yet"]);
}

#[test]
fn commands_at_once_lose_no_change() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for n in 0..8 {
            let folder = folder.path();
            let net = format!("10.{n}.0.0/16");
            scope.spawn(move || printed(map(folder, &["add", &net, "1-ff00:0:4"])));
        }
    });
    let json: serde_json::Value =
        serde_json::from_str(&printed(map(folder.path(), &["list", "--json"]))).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 8);
}
