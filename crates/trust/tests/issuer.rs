//! Tests that an authority gives certificates to ASes that come after the network was written.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_address::IsdAsn;
use hawser_trust::{
    AsRole, Chain, IssueError, Issuer, LoadError, Signer, Store, add_core, set_core, write,
};

const CORE: &str = "1-ff00:0:110";
const LATER: &str = "1-ff00:0:7";

fn ia(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// The folder of the PKI, that of the authority, and that of an AS that comes later.
fn isd() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (core, later) = (folder.path().join("core"), folder.path().join("later"));
    let role = AsRole {
        isd_as: ia(CORE),
        core: true,
        voting: false,
        authoritative: false,
        issuing: false,
        cert_issuer: None,
    };
    write(&[role], |_| core.clone()).unwrap();
    (folder, core, later)
}

fn signer(folder: &Path) -> Signer {
    let store = Store::load(&folder.join("certs")).unwrap();
    Signer::load(folder, &store).unwrap()
}

#[test]
fn an_as_that_comes_later_gets_a_chain_rooted_in_the_trc() {
    let (_keep, core, later) = isd();
    assert!(Chain::load(&later).unwrap().is_none());
    let issuer = Issuer::load(&core).unwrap();
    assert_eq!(issuer.isd_as(), ia(CORE));
    issuer.enroll(ia(LATER), &later, now()).unwrap();
    let store = Store::load(&later.join("certs")).unwrap();
    let trc = store.newest(1).unwrap();
    trc.verify_base().unwrap();
    let signer = signer(&later);
    assert_eq!(signer.isd_as(), ia(LATER));
    assert!(signer.chain().is_rooted_in(trc));
    assert!(signer.chain().validity().contains(now() + 364 * 86400));
    assert_eq!(Chain::load(&later).unwrap().as_ref(), Some(signer.chain()));
    // What the AS signs is accepted, with its chain only.
    let signed = signer.sign(b"body".to_vec(), b"", now()).unwrap();
    assert!(!signed.signature.is_empty());
    let mode = |path: &str| later.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("crypto/as/cp-as.key"), 0o600);
    assert!(later.join("crypto/as/ISD1-ASff00_0_7.pem").exists());
    // The authority's keys stay with it.
    assert!(!later.join("crypto/ca").exists());
}

#[test]
fn a_certificate_can_be_renewed() {
    let (_keep, core, later) = isd();
    let (issuer, now) = (Issuer::load(&core).unwrap(), now());
    issuer.enroll(ia("1-ff00:0:7"), &later, now).unwrap();
    let first = signer(&later);
    issuer.enroll(ia("1-ff00:0:7"), &later, now + 1).unwrap();
    let second = signer(&later);
    assert_ne!(first.chain(), second.chain());
    let end = |signer: &Signer| signer.chain().validity().not_after;
    assert_eq!(end(&second), end(&first) + 1);
}

#[test]
fn the_authority_refuses_what_would_not_be_valid() {
    let (_keep, core, later) = isd();
    let issuer = Issuer::load(&core).unwrap();
    let other = issuer.enroll(ia("2-ff00:0:7"), &later, now());
    assert!(
        matches!(other, Err(IssueError::OtherIsd { .. })),
        "{other:?}"
    );
    let expired = issuer.enroll(ia("1-ff00:0:7"), &later, now() + 700 * 86400);
    assert!(
        matches!(expired, Err(IssueError::Expired(_))),
        "{expired:?}"
    );
    // Near its end the authority still issues, for as long as it is valid itself.
    issuer
        .enroll(ia("1-ff00:0:7"), &later, now() + 690 * 86400)
        .unwrap();
    let chain = Chain::load(&later).unwrap().unwrap();
    assert_eq!(chain.validity().not_after, chain.ca().validity().not_after);
    fs::remove_dir_all(core.join("certs")).unwrap();
    fs::create_dir(core.join("certs")).unwrap();
    let no_trc = issuer.enroll(ia("1-ff00:0:7"), &later, now());
    assert!(
        matches!(no_trc, Err(IssueError::NoTrc { .. })),
        "{no_trc:?}"
    );
}

#[test]
fn an_authority_needs_its_key_and_certificate() {
    let (_keep, core, later) = isd();
    let issuer = Issuer::load(&core).unwrap();
    issuer.enroll(ia("1-ff00:0:7"), &later, now()).unwrap();
    assert!(matches!(Issuer::load(&later), Err(LoadError::Io { .. })));
    // The key of another AS.
    fs::copy(
        later.join("crypto/as/cp-as.key"),
        core.join("crypto/ca/cp-ca.key"),
    )
    .unwrap();
    let error = Issuer::load(&core).unwrap_err().to_string();
    assert!(error.contains("cp-ca.key"), "{error}");
}

#[test]
fn core_ases_come_later_by_an_update_of_the_trc() {
    let (keep, core, later) = isd();
    let other = keep.path().join("other");
    Issuer::load(&core)
        .unwrap()
        .enroll(ia(LATER), &later, now())
        .unwrap();
    Issuer::load(&core)
        .unwrap()
        .enroll(ia("1-ff00:0:8"), &other, now())
        .unwrap();
    let folders = [later.clone(), core.clone(), other.clone()];
    let before = Store::load(&later.join("certs")).unwrap();
    let added = add_core(1, &[ia(LATER)], &folders, now()).unwrap();
    assert_eq!(added.as_deref(), Some(Path::new("certs/ISD1-B1-S2.trc")));
    for folder in &folders {
        let store = Store::load(&folder.join("certs")).unwrap();
        let trc = store.newest(1).unwrap();
        trc.verify_update(before.newest(1).unwrap()).unwrap();
        assert_eq!(trc.content().core, [ia(LATER), ia(CORE)]);
        assert!(trc.validity().contains(now()));
    }
    // Chains from before are still good, and there is nothing to do a second time.
    assert_eq!(signer(&later).isd_as(), ia(LATER));
    assert_eq!(add_core(1, &[ia(LATER)], &folders, now()).unwrap(), None);
    let third = add_core(1, &[ia("1-ff00:0:8")], &folders, now()).unwrap();
    assert_eq!(third.as_deref(), Some(Path::new("certs/ISD1-B1-S3.trc")));
    // Without the voters' keys there is no update.
    let folders = [later.clone(), other];
    let few = add_core(1, &[ia("1-ff00:0:9")], &folders, now());
    assert!(
        matches!(few, Err(IssueError::TooFewVoters { .. })),
        "{few:?}"
    );
    let none = add_core(2, &[ia("2-ff00:0:9")], &folders, now());
    assert!(matches!(none, Err(IssueError::NoIsd(2))), "{none:?}");
}

#[test]
fn core_ases_change_by_an_update_of_the_trc() {
    let (_keep, core, later) = isd();
    let issuer = Issuer::load(&core).unwrap();
    issuer.enroll(ia(LATER), &later, now()).unwrap();
    let folders = [core.clone(), later.clone()];
    let trc = |folder: &Path| {
        let store = Store::load(&folder.join("certs")).unwrap();
        store.newest(1).unwrap().clone()
    };
    let before = trc(&core);
    // The only core AS, which votes and issues, hands over to another.
    set_core(1, &[ia(LATER)], &folders, &[], now())
        .unwrap()
        .unwrap();
    let after = trc(&later);
    after.verify_update(&before).unwrap();
    assert_eq!(after.content().core, [ia(LATER)]);
    assert_eq!(after.content().authoritative, [ia(LATER)]);
    // It votes on the next one, too.
    set_core(1, &[ia(CORE)], &folders, &[], now())
        .unwrap()
        .unwrap();
    let last = trc(&core);
    last.verify_update(&after).unwrap();
    assert_eq!(last.content().core, [ia(CORE)]);
    assert_eq!(signer(&later).isd_as(), ia(LATER));
    // A folder that an interrupted update did not reach gets it by the next attempt.
    fs::remove_file(later.join("certs/ISD1-B1-S3.trc")).unwrap();
    assert_eq!(
        set_core(1, &[ia(CORE)], &folders, &[], now()).unwrap(),
        None
    );
    assert_eq!(trc(&later).id(), last.id());
}
