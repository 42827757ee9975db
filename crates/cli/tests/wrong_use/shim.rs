//! `hawser shim`: what is refused before the network is needed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::common::{command, hawser, refused, wrong};

/// The user `nobody`.
const NOBODY: u32 = 65534;

#[test]
fn wrong_flags_of_a_shim_are_wrong_use() {
    let up = |flag: &'static str, value: &'static str| ["shim", "up", flag, value];
    for value in ["0", "65", "many"] {
        wrong(&up("--paths", value), &["--paths"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let up_with_key = ["shim", "up", "--key", key.to_str().unwrap()];
    let run = |flags: &[&str]| hawser(&[&up_with_key, flags].concat());
    refused(&run(&["--paths", "9"]), 2, &["--paths", "8"]);
    for value in ["", "0", "22,,443", "ssh", "443=8443"] {
        wrong(&up("--expose", value), &["--expose", "443=127.0.0.1:8443"]);
    }
    for value in ["10.1.0.0/33", "site"] {
        wrong(&up("--expose-network", value), &["10.1.0.0/16"]);
    }
    wrong(&up("--proxy-protocol", "v3"), &["v1 or v2"]);
    for value in ["", "on", "5", "200ms"] {
        wrong(&up("--busy-poll", value), &["--busy-poll", "write off"]);
    }
    // Earlier versions had it.
    wrong(
        &up("--carrier", "auto"),
        &["--carrier", "write quic", "mptcp"],
    );
    wrong(&up("--carrier", "tcp"), &["--carrier", "quic", "mptcp"]);
    for name in ["", "a/b", "../x"] {
        wrong(&up("--name", name), &["letters, digits and dashes"]);
    }
    for flag in ["--allow", "--server-key"] {
        wrong(&up(flag, "SHA256:x"), &[flag, "hawser key"]);
    }
    let any = ["shim", "up", "--allow-any", "--allow"];
    let key = format!("SHA256:{}", "A".repeat(43));
    wrong(
        &[&any[..], &[&key]].concat(),
        &["--allow", "cannot be used"],
    );
    refused(&run(&["--policy", "/nowhere"]), 2, &["/nowhere"]);
    refused(&run(&["--map", "/nowhere"]), 2, &["/nowhere"]);
}

#[test]
fn a_shim_without_a_daemon_names_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = command(&["shim", "up", "--name", "test-no-daemon"]);
    let output = up.env("XDG_CONFIG_HOME", folder.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    // An ordinary user may not make the folder of its sockets.
    match rustix::process::geteuid().is_root() {
        true => refused(&output, 1, &["127.0.0.1:1", "SCION_DAEMON"]),
        false => assert!(error.contains("needs root"), "{error}"),
    }
}

#[test]
fn a_shim_that_is_not_up_is_down() {
    for args in [
        &["shim", "status", "--name", "test-none"][..],
        &["shim", "status", "--name", "test-none", "--json"],
    ] {
        refused(
            &hawser(args),
            1,
            &["no shim test-none is up", "hawser shim up"],
        );
    }
}

#[test]
fn others_may_not_reach_the_shim_of_root() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let sockets = Path::new("/run/hawser/shim");
    fs::create_dir_all(sockets).unwrap();
    fs::set_permissions(sockets, Permissions::from_mode(0o700)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    // The test's build may be in a folder that others cannot read. Copied by another process: a
    // program that is open for writing cannot be run.
    let program = folder.path().join("hawser");
    let mut copy = Command::new("cp");
    copy.args([Path::new(env!("CARGO_BIN_EXE_hawser")), &program]);
    assert!(copy.status().unwrap().success());
    let as_nobody = |action: &str| {
        let mut command = Command::new(&program);
        command.args(["shim", action, "--name", "test-nobody"]);
        command.env("XDG_CONFIG_HOME", folder.path().join("config"));
        command.uid(NOBODY).gid(NOBODY).output().unwrap()
    };
    for action in ["status", "down"] {
        refused(
            &as_nobody(action),
            1,
            &["not allowed", "test-nobody", "root"],
        );
    }
    refused(&as_nobody("up"), 1, &["needs root"]);
}
