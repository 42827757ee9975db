//! Files of keys, certificates and TRCs that are empty, cut short or changed: refused or whole.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use hawser_address::IsdAsn;
use hawser_trust::{AsRole, Chain, LoadError, Signer, Store, Trc, write};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The folder of the only AS of a network.
fn written() -> (tempfile::TempDir, PathBuf) {
    let lab = tempfile::tempdir().unwrap();
    let role = AsRole {
        isd_as: "1-ff00:0:110".parse().unwrap(),
        core: true,
        voting: false,
        authoritative: false,
        issuing: false,
        cert_issuer: None,
    };
    let folder = lab.path().join("as");
    write(&[role], |_: IsdAsn| folder.clone()).unwrap();
    (lab, folder)
}

fn load(folder: &Path) -> Result<(Store, Signer), LoadError> {
    let store = Store::load(&folder.join("certs"))?;
    let signer = Signer::load(folder, &store)?;
    Ok((store, signer))
}

/// What is on disk of an AS: its TRC, its chain and its key.
fn files(folder: &Path) -> [PathBuf; 3] {
    [
        folder.join("certs/ISD1-B1-S1.trc"),
        folder.join("crypto/as/ISD1-ASff00_0_110.pem"),
        folder.join("crypto/as/cp-as.key"),
    ]
}

/// What a file says, whatever its line ends are, and whatever a signature does not cover. A key that is
/// loaded is that of the chain.
fn content(file: &Path) -> String {
    let bytes = fs::read(file).unwrap();
    match file.extension().unwrap().to_str() {
        Some("trc") => format!("{:?}", Trc::parse(&bytes).unwrap().content()),
        Some("pem") => format!("{:?}", Chain::from_pem(&bytes).unwrap()),
        _ => String::new(),
    }
}

/// The error names the file or its folder, and the remedy, on one line.
fn check_refusal(error: &LoadError, file: &Path) {
    let text = error.to_string();
    let folder = file.parent().unwrap().display().to_string();
    assert!(text.contains(&folder), "{text}");
    assert!(
        text.contains("restore") || text.contains("put the newest"),
        "{text}"
    );
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn files_cut_short_anywhere_are_refused_or_whole() {
    let (_lab, folder) = written();
    for file in files(&folder) {
        let (whole, said) = (fs::read(&file).unwrap(), content(&file));
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            match load(&folder) {
                // Without its last line end.
                Ok(_) => assert_eq!(content(&file), said, "{length} of {}", file.display()),
                Err(error) => check_refusal(&error, &file),
            }
        }
        fs::write(&file, &whole).unwrap();
        load(&folder).unwrap();
    }
}

#[test]
fn files_with_changed_bytes_are_refused_or_whole() {
    let (_lab, folder) = written();
    let refused = Cell::new(0);
    for file in files(&folder) {
        let (whole, said) = (fs::read(&file).unwrap(), content(&file));
        let damage = (
            any::<prop::sample::Index>(),
            prop::collection::vec(any::<u8>(), 1..4),
            any::<bool>(),
        );
        let mut runner = TestRunner::new(Config::with_cases(200));
        let run = runner.run(&damage, |(at, bytes, is_base64)| {
            let mut changed = whole.clone();
            let at = at.index(changed.len());
            for (place, byte) in changed[at..].iter_mut().zip(bytes) {
                // Half of the changes are such as the text encoding lets through.
                *place = match is_base64 {
                    true => b'A' + byte % 26,
                    false => byte,
                };
            }
            fs::write(&file, &changed).unwrap();
            match load(&folder) {
                Ok(_) => prop_assert_eq!(content(&file), said.clone()),
                Err(error) => {
                    check_refusal(&error, &file);
                    refused.set(refused.get() + 1);
                }
            }
            Ok(())
        });
        run.unwrap();
        fs::write(&file, &whole).unwrap();
    }
    assert!(refused.get() > 0);
}
