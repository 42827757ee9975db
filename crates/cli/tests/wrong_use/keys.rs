//! `hawser key`, and keys that are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::common::{command, hawser, refused, wrong};

/// Runs `hawser key` with its files below `folder`.
fn key(folder: &Path, args: &[&str]) -> Output {
    let mut command = command(&[&["key"], args].concat());
    command.env("XDG_CONFIG_HOME", folder).output().unwrap()
}

fn printed(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap().trim_end()
}

#[test]
fn the_key_is_made_once_and_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hawser/key");
    let path = key(folder.path(), &["path"]);
    assert_eq!(printed(&path), file.to_str().unwrap());
    assert!(!file.exists());
    let made = key(folder.path(), &[]);
    assert!(printed(&made).starts_with("SHA256:"));
    assert_eq!(printed(&made).len(), "SHA256:".len() + 43);
    assert_eq!(key(folder.path(), &["show"]).stdout, made.stdout);
    let json = key(folder.path(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(printed(&json)).unwrap();
    assert_eq!(json["key"], printed(&made));
    assert_eq!(json["path"], file.to_str().unwrap());
    // Another file, another key.
    let other = folder.path().join("other");
    let other = key(folder.path(), &["show", "--key", other.to_str().unwrap()]);
    assert_ne!(printed(&other), printed(&made));
}

#[test]
fn keys_that_prove_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hawser/key");
    assert!(key(folder.path(), &[]).status.success());
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let exposed = key(folder.path(), &[]);
    refused(&exposed, 1, &["hawser/key", "0644", "chmod 600"]);
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(&file, "nonsense").unwrap();
    let broken = key(folder.path(), &["show"]);
    refused(&broken, 1, &["hawser/key", "not a key", "remove it"]);
    let folder = folder.path().to_str().unwrap();
    let output = hawser(&["key", "--key", folder]);
    refused(&output, 1, &[folder, "not a file"]);
    wrong(&["key", "shwo"], &["shwo", "show"]);
    wrong(&["key", "--key"], &["--key"]);
}
