//! `hawser as join` with archives and folders that it must refuse, and one that it must not.

use std::fs;
use std::path::Path;

use hawser_bundle::{Bundle, Manifest, Role};
use hawser_topology::{AsTopology, BorderRouter};
use serde_json::Value;

use crate::common::{hawser, printed, refused};

/// The archive of an AS whose router has this address inside.
fn archive(isd_as: &str, version: u64, router: &str) -> Vec<u8> {
    let isd_as = isd_as.parse().unwrap();
    let router = BorderRouter {
        internal_addr: router.parse().unwrap(),
        interfaces: [].into(),
    };
    let mut bundle = Bundle::default();
    bundle.set_topology(&AsTopology {
        isd_as,
        mtu: 1472,
        core: false,
        dispatched_ports: (31000, 32767),
        control_service: [].into(),
        discovery_service: [].into(),
        border_routers: [("br1".to_owned(), router)].into(),
    });
    bundle.set_manifest(&Manifest::new(isd_as, Role::User, version));
    let key = "AAAAAAAAAAAAAAAAAAAAAA==";
    bundle.insert("keys/master0.key", key).unwrap();
    bundle.pack()
}

/// Runs `hawser as join` with an archive of these bytes.
fn join(folder: &Path, bytes: &[u8], flags: &[&str]) -> std::process::Output {
    let file = folder.join("as.tar.gz");
    fs::write(&file, bytes).unwrap();
    let dir = folder.join("as");
    let [file, dir] = [&file, &dir].map(|path| path.to_str().unwrap());
    hawser(&[&["as", "join", file, "--state", dir], flags].concat())
}

const AS: &str = "1-ff00:0:111";
const INSIDE: &str = "127.0.0.1:0";

#[test]
fn what_is_no_archive_is_refused_and_nothing_written() {
    let folder = tempfile::tempdir().unwrap();
    let good = archive(AS, 1, INSIDE);
    for (bytes, word) in [
        (&good[..good.len() / 2], "cut short"),
        (b"PK\x03\x04", "not a tar.gz"),
        (b"", "cut short"),
    ] {
        let output = join(folder.path(), bytes, &[]);
        refused(&output, 1, &["as.tar.gz", word]);
        assert!(!folder.path().join("as").exists());
    }
    let missing = folder.path().join("nowhere.tar.gz");
    let output = hawser(&["as", "join", missing.to_str().unwrap()]);
    refused(&output, 2, &["nowhere.tar.gz", "no such file"]);
}

#[test]
fn folders_of_others_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let first = join(folder.path(), &archive(AS, 1, INSIDE), &["--unpack"]);
    assert!(first.status.success(), "{first:?}");
    let other = join(
        folder.path(),
        &archive("1-ff00:0:112", 1, INSIDE),
        &["--unpack"],
    );
    refused(&other, 1, &["has AS 1-ff00:0:111, not 1-ff00:0:112"]);
    fs::remove_dir_all(folder.path().join("as")).unwrap();
    fs::create_dir(folder.path().join("as")).unwrap();
    fs::write(folder.path().join("as/thesis.txt"), "x").unwrap();
    let other = join(folder.path(), &archive(AS, 1, INSIDE), &["--unpack"]);
    refused(&other, 1, &["neither empty nor the folder of an AS"]);
}

#[test]
fn what_was_joined_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let output = join(
        folder.path(),
        &archive(AS, 1, INSIDE),
        &["--unpack", "--json"],
    );
    let joined: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&joined["isd_as"], &joined["version"]),
        (&AS.into(), &1.into())
    );
    assert_eq!(joined["role"], "user");
    let output = join(folder.path(), &archive(AS, 2, INSIDE), &["--unpack"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("user AS 1-ff00:0:111, version 2, in /"),
        "{text}"
    );
    // The newer version stays.
    let output = join(
        folder.path(),
        &archive(AS, 1, INSIDE),
        &["--unpack", "--json"],
    );
    let joined: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(joined["version"], 2);
    assert!(printed(&["as", "join", "--help"]).contains("--unpack"));
}

#[test]
fn an_address_that_this_host_does_not_have_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // TEST-NET-1 of RFC 5737.
    let output = join(folder.path(), &archive(AS, 1, "192.0.2.1:30042"), &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    for word in ["border router br1 does not start", "192.0.2.1:30042"] {
        assert!(error.contains(word), "{error}");
    }
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}
