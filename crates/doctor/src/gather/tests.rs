//! Looking at real files.

use std::fs;
use std::path::Path;

use hawser_trust::AsRole;

use super::{disk, trust};
use crate::checks::diagnose;
use crate::code::Code;
use crate::facts::{Facts, KeyState, Keys};

const YEAR: u64 = 365 * 86_400;

/// The folder of an AS, whose certificates were made now.
fn as_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let role = AsRole {
        isd_as: "1-ff00:0:110".parse().unwrap(),
        core: true,
        voting: true,
        authoritative: true,
        issuing: true,
        cert_issuer: None,
    };
    hawser_trust::write(&[role], |_| folder.path().to_owned()).unwrap();
    folder
}

/// What is found of the certificates in a folder by a clock that is wrong by `years`.
fn found(folder: &Path, years: i64) -> Vec<Code> {
    let trust = trust::gather(folder);
    let made = trust
        .iter()
        .map(|one| one.item.as_ref().unwrap().not_before);
    let made = made.max().unwrap() + 3600;
    let facts = Facts {
        now: made.saturating_add_signed(years * YEAR as i64),
        trust,
        ..Facts::default()
    };
    diagnose(&facts)
        .iter()
        .map(|finding| finding.code)
        .collect()
}

#[test]
fn certificates_are_judged_by_the_clock() {
    let folder = as_folder();
    assert_eq!(trust::gather(folder.path()).len(), 2);
    assert_eq!(found(folder.path(), 0), []);
    assert_eq!(found(folder.path(), -1), [Code::ClockBehind]);
    let expired = [Code::TrcExpired, Code::CertificateExpired];
    assert_eq!(found(folder.path(), 100), expired);
}

#[test]
fn damaged_certificates_are_named() {
    let folder = as_folder();
    let path = folder.path().join("certs/ISD2-B1-S1.trc");
    fs::write(&path, "x").unwrap();
    let trust = trust::gather(folder.path());
    let damaged: Vec<_> = trust.iter().filter(|one| one.item.is_err()).collect();
    assert!(
        matches!(damaged[..], [one] if one.path == path),
        "{trust:?}"
    );
    assert!(trust::gather(Path::new("/nonexistent")).is_empty());
}

#[test]
fn a_folder_that_is_to_be_made_is_looked_at_where_it_will_be() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("new/state");
    let folders = disk::gather(&Keys::default(), Some(&state));
    let state = folders.iter().find(|one| one.what == "state").unwrap();
    assert_eq!((state.path.as_path(), state.needed), (folder.path(), true));
    assert!(state.writable && !state.read_only && state.free > 0);
    assert!(!folder.path().join("new").exists());
    // A key that is not made yet needs a folder that can be written.
    let missing = Keys {
        own: Some(KeyState::Missing),
        ..Keys::default()
    };
    let needed = |keys: &Keys| {
        let folders = disk::gather(keys, None);
        folders
            .iter()
            .find(|one| one.what == "keys")
            .map(|one| one.needed)
    };
    if hawser_keys::folder().is_ok() {
        assert_eq!(needed(&missing), Some(true));
        assert_eq!(needed(&Keys::default()), Some(false));
    }
}
