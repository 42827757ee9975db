//! Logs of a lab's processes.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::process::Command;

#[test]
fn a_process_of_a_lab_keeps_its_log_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.log");
    let before = vec![b'x'; hawser_lab::LOG_LIMIT as usize];
    std::fs::write(&path, &before).unwrap();
    let log = File::options().append(true).open(&path).unwrap();
    // It logs its request to the network, and then prints on standard error that there is no
    // answer.
    let status = Command::new(env!("CARGO_BIN_EXE_hawser"))
        .args(["paths", "1-ff00:0:110"])
        .env("SCION_DAEMON", "127.0.0.1:1")
        .env("RUST_LOG", "trace")
        .env("HAWSER_LOG_FILE", &path)
        .stderr(log)
        .status();
    assert_eq!(status.unwrap().code(), Some(2));
    let aside = std::fs::read(folder.path().join("router.log.1")).unwrap();
    assert!(aside == before);
    let new = std::fs::read_to_string(&path).unwrap();
    assert!(new.contains("TRACE") && new.contains("\nhawser: "), "{new}");
    assert!(!new.contains('\x1b'), "{new}");
}

#[test]
fn an_invalid_log_filter_is_reported() {
    let output = Command::new(env!("CARGO_BIN_EXE_hawser"))
        .args(["completions", "bash"])
        .env("RUST_LOG", "hawser_torrent=loud")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with("RUST_LOG: ") && error.lines().count() == 1,
        "{error}"
    );
}
