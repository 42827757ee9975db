//! Tests that the PKI written for a network can be loaded, and that its signatures can be verified.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_address::IsdAsn;
use hawser_proto::Message;
use hawser_proto::control_plane::{
    ASEntrySignedBody, HopEntry, HopField, PathSegment, SegmentInformation,
};
use hawser_trust::{
    AsRole, Chain, LoadError, SegmentVerifyError, Signer, Store, WriteError, write,
};

fn ia(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

/// The role of an AS for which the topology file names no PKI roles.
fn plain(isd_as: &str, core: bool) -> AsRole {
    AsRole {
        isd_as: ia(isd_as),
        core,
        voting: false,
        authoritative: false,
        issuing: false,
        cert_issuer: None,
    }
}

fn network() -> Vec<AsRole> {
    vec![
        plain("1-ff00:0:110", true),
        plain("1-ff00:0:111", false),
        plain("1-ff00:0:120", true),
        plain("2-64512", true),
    ]
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn folder(lab: &Path, isd_as: IsdAsn) -> PathBuf {
    lab.join(isd_as.to_string().replace(':', "_"))
}

fn written(network: &[AsRole]) -> tempfile::TempDir {
    let lab = tempfile::tempdir().unwrap();
    write(network, |isd_as| folder(lab.path(), isd_as)).unwrap();
    lab
}

fn load(dir: &Path) -> Result<Signer, LoadError> {
    Signer::load(dir, &Store::load(&dir.join("certs"))?)
}

fn signers(lab: &Path, network: &[AsRole]) -> Vec<Signer> {
    let signer = |role: &AsRole| load(&folder(lab, role.isd_as)).unwrap();
    network.iter().map(signer).collect()
}

fn body(isd_as: IsdAsn) -> ASEntrySignedBody {
    ASEntrySignedBody {
        isd_as: isd_as.to_u64(),
        hop_entry: Some(HopEntry {
            hop_field: Some(HopField {
                exp_time: 63,
                ..HopField::default()
            }),
            ..HopEntry::default()
        }),
        ..ASEntrySignedBody::default()
    }
}

fn segment(signers: &[&Signer], at: u64) -> PathSegment {
    let info = SegmentInformation {
        timestamp: at.try_into().unwrap(),
        segment_id: 7,
    };
    let mut segment = PathSegment {
        segment_info: info.encode_to_vec(),
        ..PathSegment::default()
    };
    for signer in signers {
        signer
            .add_entry(&mut segment, body(signer.isd_as()).encode_to_vec(), at)
            .unwrap();
    }
    segment
}

#[test]
fn every_as_gets_the_trcs_of_all_isds() {
    let lab = written(&network());
    for role in network() {
        let store = Store::load(&folder(lab.path(), role.isd_as).join("certs")).unwrap();
        for isd in [1, 2] {
            let trc = store.newest(isd).unwrap();
            assert_eq!(trc.id().to_string(), format!("ISD{isd}-B1-S1"));
            assert!(trc.validity().contains(now()));
            trc.verify_base().unwrap();
        }
        assert!(store.newest(3).is_none());
    }
}

#[test]
fn core_ases_get_roles_that_no_as_has() {
    let mut network = network();
    network[1].authoritative = true;
    let lab = written(&network);
    let certs = folder(lab.path(), ia("1-ff00:0:111")).join("certs");
    let store = Store::load(&certs).unwrap();
    let trc = store.newest(1).unwrap();
    assert_eq!(trc.content().core, [ia("1-ff00:0:110"), ia("1-ff00:0:120")]);
    assert_eq!(trc.content().authoritative, [ia("1-ff00:0:111")]);
    assert_eq!(trc.content().quorum, 2);
    assert_eq!(store.newest(2).unwrap().content().core, [ia("2-64512")]);
}

#[test]
fn the_layout_is_that_of_scionproto() {
    let lab = written(&network());
    let core = folder(lab.path(), ia("1-ff00:0:120"));
    let stem = "ISD1-ASff00_0_120";
    for (file, mode) in [
        (format!("crypto/as/{stem}.pem"), 0o644),
        ("crypto/as/cp-as.key".to_owned(), 0o600),
        (format!("crypto/ca/{stem}.root.crt"), 0o644),
        (format!("crypto/ca/{stem}.ca.crt"), 0o644),
        ("crypto/ca/cp-root.key".to_owned(), 0o600),
        ("crypto/ca/cp-ca.key".to_owned(), 0o600),
        (format!("crypto/voting/{stem}.sensitive.crt"), 0o644),
        (format!("crypto/voting/{stem}.regular.crt"), 0o644),
        ("crypto/voting/sensitive-voting.key".to_owned(), 0o600),
        ("crypto/voting/regular-voting.key".to_owned(), 0o600),
    ] {
        let data = fs::metadata(core.join(&file)).expect(&file);
        assert_eq!(data.permissions().mode() & 0o777, mode, "{file}");
    }
    let leaf = folder(lab.path(), ia("1-ff00:0:111")).join("crypto");
    let names = fs::read_dir(leaf).unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["as"]);
    let short = folder(lab.path(), ia("2-64512")).join("crypto/as/ISD2-AS64512.pem");
    Chain::from_pem(&fs::read(short).unwrap()).unwrap();
}

#[test]
fn the_named_issuer_is_used() {
    let mut network = network();
    network[1].cert_issuer = Some(ia("1-ff00:0:120"));
    let lab = written(&network);
    for (isd_as, issuer) in [
        ("1-ff00:0:110", "1-ff00:0:110"),
        ("1-ff00:0:111", "1-ff00:0:120"),
        ("1-ff00:0:120", "1-ff00:0:120"),
    ] {
        let signer = load(&folder(lab.path(), ia(isd_as))).unwrap();
        assert_eq!(signer.chain().ca().isd_as(), Some(ia(issuer)), "{isd_as}");
    }
}

#[test]
fn wrong_roles_are_refused() {
    let lab = tempfile::tempdir().unwrap();
    let try_write = |network: &[AsRole]| write(network, |_| lab.path().to_owned()).unwrap_err();
    let error = try_write(&[plain("1-ff00:0:110", true), plain("2-ff00:0:210", false)]);
    assert!(matches!(error, WriteError::NoCore(2)), "{error}");
    for issuer in ["1-ff00:0:111", "2-64512", "1-ff00:0:9"] {
        let mut network = network();
        network[1].cert_issuer = Some(ia(issuer));
        let error = try_write(&network);
        assert!(
            error.to_string().contains(&format!("names {issuer}")),
            "{error}"
        );
    }
}

#[test]
fn writing_again_replaces_all_files() {
    let lab = written(&network());
    let before = signers(lab.path(), &network());
    write(&network(), |isd_as| folder(lab.path(), isd_as)).unwrap();
    let after = signers(lab.path(), &network());
    for (before, after) in before.iter().zip(&after) {
        assert!(before.chain() != after.chain());
    }
}

#[test]
fn signatures_are_verified_in_all_ases() {
    let lab = written(&network());
    let signers = signers(lab.path(), &network());
    let segment = segment(&signers.iter().collect::<Vec<_>>(), now());
    let mut store = Store::load(&folder(lab.path(), ia("2-64512")).join("certs")).unwrap();
    assert_eq!(
        store.missing_chains(&segment, now()).unwrap().len(),
        signers.len()
    );
    for signer in &signers {
        assert!(store.add_chain(signer.chain().clone()));
    }
    assert_eq!(store.verify_segment(&segment, now()), Ok(()));
}

#[test]
fn chains_of_another_network_are_refused() {
    let (lab, other) = (written(&network()), written(&network()));
    let mut store = Store::load(&folder(lab.path(), ia("1-ff00:0:110")).join("certs")).unwrap();
    let strangers = signers(other.path(), &network());
    for stranger in &strangers {
        assert!(!store.add_chain(stranger.chain().clone()));
    }
    let segment = segment(&[&strangers[0]], now());
    let error = store.verify_segment(&segment, now()).unwrap_err();
    assert!(matches!(error, SegmentVerifyError::NoChain(_)), "{error}");
}

#[test]
fn an_as_cannot_sign_for_another() {
    let lab = written(&network());
    let signers = signers(lab.path(), &network());
    let mut segment = segment(&[&signers[0]], now());
    signers[1]
        .add_entry(
            &mut segment,
            body(signers[2].isd_as()).encode_to_vec(),
            now(),
        )
        .unwrap();
    let mut store = Store::load(&folder(lab.path(), ia("1-ff00:0:110")).join("certs")).unwrap();
    for signer in &signers {
        store.add_chain(signer.chain().clone());
    }
    let error = store.verify_segment(&segment, now()).unwrap_err();
    let expected = SegmentVerifyError::OtherSigner {
        named: signers[2].isd_as(),
        signer: signers[1].isd_as(),
    };
    assert_eq!(error, expected);
}

#[test]
fn a_signer_needs_its_key_its_chain_and_a_trc() {
    let lab = written(&network());
    let dir = folder(lab.path(), ia("1-ff00:0:111"));
    let other = folder(lab.path(), ia("1-ff00:0:110"));
    let error = || load(&dir).unwrap_err().to_string();
    fs::rename(dir.join("certs/ISD1-B1-S1.trc"), dir.join("trc")).unwrap();
    assert!(
        error().contains("certificate of 1-ff00:0:111"),
        "{}",
        error()
    );
    fs::rename(dir.join("trc"), dir.join("certs/ISD1-B1-S1.trc")).unwrap();
    load(&dir).unwrap();
    // Replace the key by that of another AS.
    fs::copy(
        other.join("crypto/as/cp-as.key"),
        dir.join("crypto/as/cp-as.key"),
    )
    .unwrap();
    assert!(
        error().contains("no key (*.key) with a certificate chain"),
        "{}",
        error()
    );
    fs::write(dir.join("crypto/as/cp-as.key"), "garbage").unwrap();
    assert!(error().contains("cp-as.key cannot be used"), "{}", error());
    fs::remove_dir_all(dir.join("crypto")).unwrap();
    assert!(error().contains("crypto/as"), "{}", error());
}

#[test]
fn expired_certificates_cannot_sign() {
    let lab = written(&network());
    let signer = load(&folder(lab.path(), ia("1-ff00:0:111"))).unwrap();
    let end = signer.chain().validity().not_after;
    assert!(signer.sign(Vec::new(), &[], end).is_ok());
    let error = signer.sign(Vec::new(), &[], end + 1).unwrap_err();
    assert!(
        error.to_string().contains("1-ff00:0:111 is not valid"),
        "{error}"
    );
}
