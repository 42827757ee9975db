//! The configuration of the daemon.

use std::fs;

use crate::common::{command, refused, wrong};

#[test]
fn the_configuration_of_the_former_service_is_refused_with_the_remedy() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("hawser");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("serve.toml"), "running = 3\n").unwrap();
    let check = || {
        let mut check = command(&["daemon", "--check"]);
        check.env("XDG_CONFIG_HOME", home.path()).output().unwrap()
    };
    let (former, new) = (folder.join("serve.toml"), folder.join("daemon.toml"));
    let remedy = format!("rename it to {}", new.display());
    refused(&check(), 2, &["the former `hawser serve`", &remedy]);
    fs::rename(former, &new).unwrap();
    refused(
        &check(),
        2,
        &[
            "daemon.toml, line 1",
            "`running` is now `transfers.running`",
        ],
    );
    fs::write(&new, "transfers.running = 3\n").unwrap();
    let output = check();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_file_in_place_of_a_folder_is_named_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, state) = (path("file"), path("state"));
    fs::write(&file, b"").unwrap();
    let at = ["--listen", "127.0.0.1:0", "--tcp", "none"];
    for flag in ["--state", "--download-dir", "--watch-dir"] {
        let mut args = vec!["daemon", flag, &file];
        if flag != "--state" {
            args.extend(["--state", &state]);
        }
        args.extend(at);
        wrong(&args, &[flag, &file, "is a file: name a folder"]);
    }
}

#[test]
fn flags_about_torrents_in_the_configuration_are_judged_as_flags() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("daemon.toml");
    let name = file.to_str().unwrap();
    for (text, words) in [
        ("[torrents]\nseeds = 0\n", "--seeds=0"),
        (
            "[torrents]\nsedes = 1\n",
            "daemon.toml:2: hawser daemon has no flag --sedes",
        ),
        (
            "[torrents]\nlisten = '127.0.0.1:1'\n",
            "write `listen` below [http]",
        ),
        (
            "[http]\nlisten = '192.0.2.1:80'\n",
            "http.listen: tokens would cross",
        ),
        ("[users.owner]\n", "users.owner: this is the user"),
    ] {
        fs::write(&file, text).unwrap();
        wrong(&["daemon", "--check", "--config", name], &[words]);
    }
    wrong(
        &["daemon", "--config", "/absent/daemon.toml"],
        &["cannot read /absent/daemon.toml"],
    );
}
