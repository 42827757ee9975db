//! Files that fail, places that continue, and standard input and output.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use serde_json::Value;

use super::{Bed, RECEIVER, SENDER, assert_same};
use crate::support::{As, eventually};

/// A lab with a folder of files large and small at the sender.
fn bed(what: &str) -> Option<Bed> {
    let lab = As::default().up("fig4", what)?;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("inner")).unwrap();
    let mut bytes = vec![0; 20_000_000];
    fastrand::fill(&mut bytes);
    fs::write(data.join("large"), &bytes).unwrap();
    fs::write(data.join("inner/small"), b"small").unwrap();
    Some(Bed { lab, folder })
}

#[test]
fn a_folder_continues_where_it_began_and_a_file_that_fails_costs_that_file() {
    let Some(bed) = bed("bulk-files") else {
        return;
    };
    let data = bed.folder.path().join("data");
    let landed = bed.folder.path().join("in/np");
    let mut receiver = bed.receive(&["--allow-any"]);
    let place = format!("{}/np", receiver.address);
    let send = |flags: &[&str]| {
        let data = bed.path("data");
        let args = ["send", &data, &place, "--any-server", "--json"];
        bed.exec(SENDER, &[&args[..], flags].concat())
    };
    // Interrupted at the sender, then at the receiver, within one command.
    let written = || {
        let names = fs::read_dir(&landed).into_iter().flatten();
        let files = names.filter_map(|one| one.ok()?.metadata().ok());
        files.map(|file| file.blocks()).max().unwrap_or(0)
    };
    let mut sending = send(&["--limit", "50mbit"]).spawn().unwrap();
    eventually("something is written", || written() > 2048);
    sending.kill().unwrap();
    sending.wait().unwrap();
    let before = written();
    let mut sending = send(&["--limit", "50mbit"]).spawn().unwrap();
    eventually("more is written", || written() > before);
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
    let again = ["--allow-any", "--listen", &receiver.address];
    let receiver = bed.receive(&again);
    assert!(sending.wait().unwrap().success());
    assert_same(&data, &landed);

    // Something is in the way of one file, which is new. The folder is complete: it goes into it.
    fs::write(data.join("blocked"), "x").unwrap();
    fs::create_dir_all(landed.join("data/blocked")).unwrap();
    let output = send(&["--exclude", "large"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = report["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 1, "{report}");
    assert_eq!(failed[0]["path"], "data/blocked");
    assert_eq!(failed[0]["at"], "destination");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("data/blocked was not transferred (destination): "),
        "{error}"
    );
    assert!(landed.join("data/inner/small").exists() && !landed.join("data/large").exists());
    // All of one file is a failure.
    let blocked = bed.path("data/blocked");
    let place = format!("{place}/data");
    let args = ["send", &blocked, &place, "--any-server"];
    let output = bed.exec(SENDER, &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    drop(receiver);
}

#[test]
fn standard_input_becomes_standard_output() {
    let Some(bed) = bed("bulk-stdin") else {
        return;
    };
    let args = ["receive", "--stdout", "--allow-any"];
    let mut command = bed.exec(RECEIVER, &args);
    let receiving = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiving = receiving.spawn().unwrap();
    let mut printed = receiving.stderr.take().unwrap();
    let mut text = String::new();
    while !text.contains("key ") {
        let mut byte = [0];
        assert_eq!(printed.read(&mut byte).unwrap(), 1, "{text}");
        text.push(byte[0].into());
    }
    let line = text.lines().next().unwrap();
    let address = line.strip_prefix("receiving at ").unwrap();
    let args = ["send", "-", address, "--any-server"];
    let mut sending = bed
        .exec(SENDER, &args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = fs::read(bed.folder.path().join("data/large")).unwrap();
    sending.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = receiving.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stdout == bytes,
        "{:?}",
        output.status
    );
    assert!(sending.wait().unwrap().success());
}
