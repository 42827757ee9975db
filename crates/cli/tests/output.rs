//! Files that commands write: no existing file is lost, and an output that cannot be written is
//! refused before the work.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the program in this folder.
    fn hawser(&self, args: &[&str]) -> Output {
        let mut command = common::command(args);
        command.current_dir(self.0.path()).output().unwrap()
    }

    fn done(&self, args: &[&str]) {
        let output = self.hawser(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
    }

    /// Asserts wrong use, reported in one line with these words, before anything is printed.
    fn wrong(&self, args: &[&str], words: &[&str]) {
        common::refused(&self.hawser(args), 2, words);
    }

    /// The names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn is_torrent(path: &Path) -> bool {
    fs::read(path).unwrap().starts_with(b"d")
}

#[test]
fn a_torrent_never_replaces_its_content() {
    let folder = Folder::new();
    let victim = vec![42; 100_000];
    let file = folder.write("victim.bin", &victim);
    fs::hard_link(&file, folder.path("hard.bin")).unwrap();
    symlink("victim.bin", folder.path("soft.bin")).unwrap();
    let absolute = file.to_str().unwrap().to_owned();
    for output in [
        "victim.bin",
        "./victim.bin",
        &absolute,
        "hard.bin",
        "soft.bin",
    ] {
        for force in [&[][..], &["--force"]] {
            let args = [&["torrent", "create", "victim.bin", "-o", output], force].concat();
            folder.wrong(&args, &[output, "victim.bin"]);
        }
    }
    assert_eq!(fs::read(&file).unwrap(), victim);
    assert_eq!(folder.names(), ["hard.bin", "soft.bin", "victim.bin"]);
}

#[test]
fn a_torrent_never_replaces_a_file_of_the_folder_it_describes() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("set/deep")).unwrap();
    let inside = folder.write("set/deep/a.bin", &[42; 50_000]);
    fs::hard_link(&inside, folder.path("outside.bin")).unwrap();
    symlink("set/deep", folder.path("way")).unwrap();
    for output in ["set/deep/a.bin", "way/a.bin", "outside.bin"] {
        let args = ["torrent", "create", "set", "--force", "-o", output];
        folder.wrong(&args, &[output, "set"]);
    }
    assert_eq!(fs::read(&inside).unwrap(), vec![42; 50_000]);
    // A new file in the folder is not part of the torrent's content.
    folder.done(&["torrent", "create", "set", "-o", "set/new.torrent"]);
    assert!(is_torrent(&folder.path("set/new.torrent")));
    // In the next torrent it would be.
    let again = [
        "torrent",
        "create",
        "set",
        "--force",
        "-o",
        "set/new.torrent",
    ];
    folder.wrong(&again, &["set/new.torrent"]);
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let folder = Folder::new();
    folder.write("data.bin", &[42; 50_000]);
    let there = folder.write("there", b"keep me");
    fs::set_permissions(&there, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("there", folder.path("link")).unwrap();
    symlink("nowhere", folder.path("dangling")).unwrap();
    let create = ["torrent", "create", "data.bin", "-o"];
    let simulate = ["simulate", "--generate", "3", "-o"];
    for command in [&create[..], &simulate] {
        folder.wrong(&[command, &["there"]].concat(), &["there", "--force"]);
        folder.wrong(&[command, &["link"]].concat(), &["link", "--force"]);
        folder.wrong(&[command, &["dangling"]].concat(), &["dangling"]);
    }
    let plot = ["bench", "fig5", "--repeat", "1", "--plot", "there"];
    folder.wrong(&plot, &["there", "--force"]);
    // A missing input is reported first.
    let absent = folder.hawser(&["torrent", "create", "absent", "-o", "there"]);
    let error = String::from_utf8_lossy(&absent.stderr);
    assert!(
        error.contains("absent") && !error.contains("there"),
        "{error}"
    );
    assert_eq!(fs::read(&there).unwrap(), b"keep me");
    for (command, name) in [(&create[..], "there"), (&simulate, "link")] {
        folder.done(&[command, &[name, "--force"]].concat());
        assert_ne!(fs::read(&there).unwrap(), b"keep me");
        fs::write(&there, b"keep me").unwrap();
    }
    // A temporary file is renamed, with the same permissions.
    let before = fs::metadata(&there).unwrap().ino();
    folder.done(&[&create[..], &["there", "--force"]].concat());
    let after = fs::metadata(&there).unwrap();
    assert_ne!(after.ino(), before);
    assert_eq!(after.mode() & 0o777, 0o600);
    assert!(folder.path("link").is_symlink());
    assert_eq!(folder.names(), ["dangling", "data.bin", "link", "there"]);
}

#[test]
fn a_torrent_beside_its_content_is_not_replaced_either() {
    let folder = Folder::new();
    folder.write("data.bin", &[42; 50_000]);
    folder.done(&["torrent", "create", "data.bin"]);
    folder.wrong(
        &["torrent", "create", "data.bin"],
        &["data.bin.torrent", "--force"],
    );
    folder.done(&["torrent", "create", "data.bin", "--force"]);
    assert_eq!(folder.names(), ["data.bin", "data.bin.torrent"]);
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_work() {
    let folder = Folder::new();
    folder.write("data.bin", &[42; 50_000]);
    fs::create_dir(folder.path("dir")).unwrap();
    for output in ["absent/x", "data.bin/x", "dir", "dir/", ".", "dir/.."] {
        folder.wrong(
            &["torrent", "create", "data.bin", "-o", output],
            &[output, "-o"],
        );
        folder.wrong(
            &["simulate", "--generate", "3", "-o", output],
            &[output, "-o"],
        );
        // Without a network: the experiment does not begin.
        folder.wrong(
            &["bench", "fig5", "--repeat", "1", "--plot", output],
            &[output, "--plot"],
        );
    }
    assert_eq!(folder.names(), ["data.bin", "dir"]);
}

#[test]
fn a_topology_is_not_replaced_by_a_result_computed_from_it() {
    let folder = Folder::new();
    folder.done(&["simulate", "--generate", "3", "-o", "net.topo"]);
    let text = fs::read(folder.path("net.topo")).unwrap();
    let args = ["simulate", "net.topo", "--force", "-o", "./net.topo"];
    folder.wrong(&args, &["./net.topo"]);
    assert_eq!(fs::read(folder.path("net.topo")).unwrap(), text);
}

#[test]
fn devices_are_written_to_and_not_replaced() {
    let folder = Folder::new();
    folder.write("data.bin", &[42; 50_000]);
    folder.done(&["torrent", "create", "data.bin", "-o", "/dev/null"]);
    let null = fs::metadata("/dev/null").unwrap();
    assert!(!null.is_file(), "/dev/null is a file now");
    let output = folder.hawser(&["simulate", "--generate", "3", "-o", "/dev/stdout"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("ASes:"));
}

#[test]
fn trackers_that_are_not_supported_are_marked() {
    let folder = Folder::new();
    folder.write("data.bin", &[42; 50_000]);
    let trackers = "wss://a.example/,udp://b.example:6969";
    folder.done(&["torrent", "create", "data.bin", "--announce", trackers]);
    let output = folder.hawser(&["torrent", "show", "data.bin.torrent"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "wss://a.example/ (not supported), udp://b.example:6969\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_fields_of_a_torrent_are_shown() {
    let folder = Folder::new();
    folder.write("data.bin", &[42; 50_000]);
    folder.done(&[
        "torrent",
        "create",
        "data.bin",
        "--announce",
        "http://a.example/announce,http://b.example/announce",
        "--announce",
        "udp://c.example:6969",
        "--private",
        "--comment",
        "a comment",
        "--source",
        "HAWSER",
        "--web-seed",
        "https://example.org/data.bin",
    ]);
    let output = folder.hawser(&["torrent", "show", "data.bin.torrent", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        shown["trackers"],
        serde_json::json!([
            ["http://a.example/announce", "http://b.example/announce"],
            ["udp://c.example:6969"]
        ])
    );
    assert_eq!(shown["private"], true);
    assert_eq!(shown["comment"], "a comment");
    assert_eq!(shown["source"], "HAWSER");
    assert_eq!(
        shown["web_seeds"],
        serde_json::json!(["https://example.org/data.bin"])
    );
    let output = folder.hawser(&["torrent", "show", "data.bin.torrent"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in [
        "b.example",
        "private",
        "a comment",
        "HAWSER",
        "example.org/data.bin",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    // Another source results in another torrent.
    folder.done(&[
        "torrent",
        "create",
        "data.bin",
        "-o",
        "other.torrent",
        "--private",
    ]);
    let output = folder.hawser(&["torrent", "show", "other.torrent", "--json"]);
    let other: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(shown["info_hash"], other["info_hash"]);
}

#[test]
fn padding_is_not_shown() {
    let folder = Folder::new();
    let pieces = "a".repeat(20);
    let text = format!(
        "d4:infod5:filesld6:lengthi5e4:pathl1:aeed4:attr1:p6:lengthi11e4:pathl4:.pad2:11eed6:lengthi\
         5e4:pathl1:beee4:name1:x12:piece lengthi16384e6:pieces20:{pieces}ee\n"
    );
    folder.write("x.torrent", text.as_bytes());
    let output = folder.hawser(&["torrent", "show", "x.torrent"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        !text.contains(".pad") && text.contains("10 bytes"),
        "{text}"
    );
    let output = folder.hawser(&["torrent", "show", "x.torrent", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["files"].as_array().unwrap().len(), 2);
    assert_eq!(shown["total_length"], 10);
    assert_eq!(shown["padding_length"], 11);
}

#[test]
fn the_table_is_printed_even_if_the_figure_cannot_be_written() {
    let folder = Folder::new();
    let scratch = folder.path("scratch");
    let figures = folder.path("figures");
    fs::create_dir(&scratch).unwrap();
    fs::create_dir(&figures).unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_hawser"))
        .args(["bench", "fig5", "--only", "one-path", "--repeat", "1"])
        .args(["--size", "200kB", "--plot", "figures/fig5.svg"])
        .current_dir(folder.0.path())
        .env("TMPDIR", &scratch)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The experiment begins once the figure was found to be writable; afterwards it is not.
    let deadline = Instant::now() + Duration::from_secs(300);
    while fs::read_dir(&scratch).unwrap().next().is_none() {
        assert!(Instant::now() < deadline, "the experiment does not begin");
        assert!(bench.try_wait().unwrap().is_none(), "the bench ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::remove_dir(&figures).unwrap();
    let output = bench.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("user namespaces are not allowed here") {
        eprintln!("skipped: {error}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("figures/fig5.svg"), "{error}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("one-path"), "{table}");
}

/// Runs another program; `None`, with a message, if it is not installed.
fn other(folder: &Folder, program: &str, args: &[&str]) -> Option<String> {
    let run = Command::new(program)
        .args(args)
        .current_dir(folder.0.path())
        .output();
    match run {
        Ok(output) => {
            assert!(output.status.success(), "{program} {args:?}: {output:?}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

/// Content with folders, an empty file, a long name and a symbolic link.
fn content(folder: &Folder) {
    fs::create_dir_all(folder.path("set/deep/er")).unwrap();
    folder.write("set/a.bin", &[42; 100_000]);
    folder.write("set/deep/er/b", b"b");
    folder.write("set/empty", b"");
    folder.write(&format!("set/{}.txt", "n".repeat(230)), b"long");
    symlink("er/b", folder.path("set/deep/link")).unwrap();
}

#[test]
fn other_programs_read_the_torrents_that_are_made() {
    let folder = Folder::new();
    content(&folder);
    let trackers = ["http://a.example/announce", "udp://b.example:6969"];
    let create = [
        "torrent",
        "create",
        "set",
        "--private",
        "--comment",
        "a comment",
    ];
    folder.done(
        &[
            &create[..],
            &["-a", trackers[0], "-a", trackers[1]],
            &["-w", "http://c.example/"],
        ]
        .concat(),
    );
    let output = folder.hawser(&["torrent", "show", "set.torrent", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let hash = shown["info_hash"].as_str().unwrap();
    for (program, args) in [
        ("transmission-show", &["set.torrent"][..]),
        ("aria2c", &["--show-files=true", "set.torrent"]),
    ] {
        let Some(text) = other(&folder, program, args) else {
            continue;
        };
        for word in [
            hash,
            trackers[0],
            trackers[1],
            "c.example",
            "a comment",
            "deep/er/b",
        ] {
            assert!(text.contains(word), "{program}: {word} is not in {text}");
        }
    }
}

#[test]
fn torrents_that_other_programs_make_are_read() {
    let folder = Folder::new();
    content(&folder);
    let tracker = "http://a.example/announce";
    for (program, args) in [
        (
            "transmission-create",
            ["-p", "-t", tracker, "-o", "other.torrent", "set"],
        ),
        (
            "mktorrent",
            ["-p", "-a", tracker, "-o", "other.torrent", "set"],
        ),
    ] {
        if other(&folder, program, &args).is_none() {
            continue;
        }
        let output = folder.hawser(&["torrent", "show", "other.torrent", "--json"]);
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(shown["name"], "set", "{program}");
        assert_eq!(shown["trackers"], serde_json::json!([[tracker]]));
        assert_eq!(shown["private"], true);
        for file in shown["files"].as_array().unwrap() {
            let path = folder.path(file["path"].as_str().unwrap());
            assert_eq!(
                fs::metadata(path).unwrap().len(),
                file["length"].as_u64().unwrap()
            );
            assert!(file.get("original_path").is_none(), "{file}");
        }
        fs::remove_file(folder.path("other.torrent")).unwrap();
    }
}
