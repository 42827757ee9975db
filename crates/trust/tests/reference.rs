//! Reads and verifies recorded answers of a reference network.
//!
//! The files in `recorded/` are answers of the control service of 1-ff00:0:111 of scionproto v0.15,
//! over gRPC, in a network generated from its `tiny4` topology: `up.bin` and `down.bin` its
//! `SegmentsResponse` for 1-0 and for 1-ff00:0:112, `chains-*.bin` its `ChainsResponse` for each of
//! the three ASes, `trc*.bin` its `TRCResponse` for the base TRC, for a regular update of it, and
//! for a sensitive update of that with all certificates new.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fs;
use std::path::Path;

use hawser_proto::Message;
use hawser_proto::control_plane::{ChainsResponse, PathSegment, SegmentsResponse, TRCResponse};
use hawser_trust::{CertificateKind, Chain, SegmentVerifyError, Store, Trc, TrcVerifyError};
use proptest::prelude::*;

/// When the files were recorded, in Unix seconds.
const NOW: u64 = 1_795_254_967;

fn recorded(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    fs::read(folder.join(name)).unwrap()
}

fn trc_bytes(name: &str) -> Vec<u8> {
    TRCResponse::decode(recorded(name).as_slice()).unwrap().trc
}

fn trc(name: &str) -> Trc {
    Trc::from_der(&trc_bytes(name)).unwrap()
}

fn chain(name: &str) -> Chain {
    let answer = ChainsResponse::decode(recorded(name).as_slice()).unwrap();
    let [chain] = answer.chains.as_slice() else {
        panic!("not one chain in {name}");
    };
    Chain::from_der(&chain.as_cert, &chain.ca_cert).unwrap()
}

const CHAINS: [&str; 3] = ["chains-110.bin", "chains-111.bin", "chains-112.bin"];

fn segment(name: &str) -> PathSegment {
    let answer = SegmentsResponse::decode(recorded(name).as_slice()).unwrap();
    let mut segments = answer.segments.values().flat_map(|list| &list.segments);
    let (Some(segment), None) = (segments.next(), segments.next()) else {
        panic!("not one segment in {name}");
    };
    segment.clone()
}

/// A store that trusts the base TRC.
fn store() -> Store {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ISD1-B1-S1.trc"), trc_bytes("trc.bin")).unwrap();
    Store::load(folder.path()).unwrap()
}

fn full_store() -> Store {
    let mut store = store();
    for name in CHAINS {
        assert!(store.add_chain(chain(name)), "{name}");
    }
    store
}

#[test]
fn the_base_trc_is_read_and_verified() {
    let trc = trc("trc.bin");
    assert_eq!(trc.id().to_string(), "ISD1-B1-S1");
    let content = trc.content();
    assert_eq!(content.core, ["1-ff00:0:110".parse().unwrap()]);
    assert_eq!(content.authoritative, content.core);
    assert_eq!(content.description, "Testcrypto TRC for ISD 1");
    assert_eq!(content.quorum, 1);
    assert!(trc.validity().contains(NOW));
    for kind in [
        CertificateKind::SensitiveVoting,
        CertificateKind::RegularVoting,
        CertificateKind::Root,
    ] {
        assert_eq!(trc.certificates_of(kind).count(), 1);
    }
    trc.verify_base().unwrap();
}

#[test]
fn updates_are_verified_one_after_the_other() {
    let [base, regular, sensitive] = ["trc.bin", "trc-2.bin", "trc-3.bin"].map(trc);
    regular.verify_update(&base).unwrap();
    sensitive.verify_update(&regular).unwrap();
    assert_eq!(regular.id().to_string(), "ISD1-B1-S2");
    // These updates are out of order.
    for (update, before) in [(&sensitive, &base), (&base, &base), (&regular, &regular)] {
        let error = update.verify_update(before).unwrap_err();
        assert!(matches!(error, TrcVerifyError::Order { .. }), "{error}");
    }
    let error = regular.verify_base().unwrap_err();
    assert!(matches!(error, TrcVerifyError::Order { .. }), "{error}");
}

/// The range of the list of digest algorithms, the only part of the file that no signature covers
/// and that is not used.
const UNSIGNED: std::ops::Range<usize> = 26..41;

#[test]
fn a_trc_altered_anywhere_is_refused() {
    for (name, before) in [("trc.bin", None), ("trc-2.bin", Some(trc("trc.bin")))] {
        let good = trc_bytes(name);
        for at in (0..good.len()).filter(|at| !UNSIGNED.contains(at)) {
            let mut altered = good.clone();
            altered[at] ^= 0x04;
            let Ok(trc) = Trc::from_der(&altered) else {
                continue;
            };
            let verdict = match &before {
                Some(before) => trc.verify_update(before),
                None => trc.verify_base(),
            };
            assert!(verdict.is_err(), "{name}: byte {at}");
        }
    }
}

#[test]
fn chains_are_rooted_in_the_trcs_that_have_their_root() {
    for chain in CHAINS.map(chain) {
        assert!(chain.validity().contains(NOW));
        assert!(chain.is_rooted_in(&trc("trc.bin")));
        // The regular update renews the root certificate with the same key.
        assert!(chain.is_rooted_in(&trc("trc-2.bin")));
        assert!(!chain.is_rooted_in(&trc("trc-3.bin")));
    }
}

#[test]
fn segments_are_verified() {
    let store = full_store();
    for name in ["up.bin", "down.bin"] {
        let segment = segment(name);
        assert_eq!(segment.as_entries.len(), 2);
        assert_eq!(store.missing_chains(&segment, NOW), Ok(Vec::new()));
        assert_eq!(store.verify_segment(&segment, NOW), Ok(()));
    }
}

#[test]
fn missing_chains_are_listed() {
    let mut store = store();
    let segment = segment("up.bin");
    let missing = store.missing_chains(&segment, NOW).unwrap();
    let names: Vec<_> = missing.iter().map(|q| q.isd_as.to_string()).collect();
    assert_eq!(names, ["1-ff00:0:110", "1-ff00:0:111"]);
    let verdict = store.verify_segment(&segment, NOW);
    assert_eq!(
        verdict,
        Err(SegmentVerifyError::NoChain(missing[0].clone()))
    );
    // After the listed chains are added, the segment is verified.
    for chain in CHAINS.map(chain) {
        let wanted = missing.iter().any(|q| q.isd_as == chain.isd_as());
        assert!(!wanted || store.add_chain(chain));
    }
    assert_eq!(store.verify_segment(&segment, NOW), Ok(()));
    assert_eq!(store.missing_chains(&segment, NOW), Ok(Vec::new()));
}

#[test]
fn a_segment_altered_anywhere_is_refused() {
    let store = full_store();
    let good = segment("up.bin");
    let refused = |altered: &PathSegment, what: &str, at: usize| {
        assert!(store.verify_segment(altered, NOW).is_err(), "{what} {at}");
    };
    for at in 0..good.segment_info.len() {
        let mut altered = good.clone();
        altered.segment_info[at] ^= 0x01;
        refused(&altered, "info", at);
    }
    for entry in 0..good.as_entries.len() {
        let signed = good.as_entries[entry].signed.as_ref().unwrap();
        for at in 0..signed.header_and_body.len() {
            let mut altered = good.clone();
            let signed = altered.as_entries[entry].signed.as_mut().unwrap();
            signed.header_and_body[at] ^= 0x01;
            refused(&altered, "body", at);
        }
        for at in 0..signed.signature.len() {
            let mut altered = good.clone();
            let signed = altered.as_entries[entry].signed.as_mut().unwrap();
            signed.signature[at] ^= 0x01;
            refused(&altered, "signature", at);
        }
        let mut unsigned = good.clone();
        unsigned.as_entries[entry].signed = None;
        refused(&unsigned, "without signed part", entry);
    }
    let mut short = good.clone();
    short.as_entries.remove(0);
    refused(&short, "without entry", 0);
    let mut turned = good.clone();
    turned.as_entries.reverse();
    refused(&turned, "turned", 0);
}

#[test]
fn segments_are_refused_before_and_after_their_time() {
    let store = full_store();
    let segment = segment("up.bin");
    let end = trc("trc.bin").validity().not_after;
    let error = store.verify_segment(&segment, end + 1).unwrap_err();
    assert_eq!(error, SegmentVerifyError::NoTrc(1));
    let chain = chain("chains-110.bin");
    let error = store.verify_segment(&segment, chain.validity().not_after + 1);
    assert!(matches!(error, Err(SegmentVerifyError::NoChain(_))));
}

#[test]
fn an_update_replaces_the_previous_trc() {
    let mut store = full_store();
    let segment = segment("up.bin");
    let mut early = store.clone();
    let error = early.add_trc(trc("trc-3.bin")).unwrap_err();
    assert!(matches!(error, TrcVerifyError::Order { .. }), "{error}");
    store.add_trc(trc("trc-2.bin")).unwrap();
    let later = trc("trc-2.bin").validity().not_before;
    assert_eq!(store.verify_segment(&segment, later), Ok(()));
    store.add_trc(trc("trc-3.bin")).unwrap();
    // Within the grace period the chains of the previous TRC are accepted.
    let newest = store.newest(1).unwrap();
    let start = newest.validity().not_before;
    assert!(newest.content().grace_period.as_secs() > 0);
    let over = start + newest.content().grace_period.as_secs() + 1;
    assert_eq!(store.verify_segment(&segment, start), Ok(()));
    let error = store.verify_segment(&segment, over);
    assert!(matches!(error, Err(SegmentVerifyError::NoChain(_))));
}

/// Changes of a file: some bytes are replaced, some cut off, some added.
fn alter(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    let cut = prop::option::of(any::<prop::sample::Index>());
    (edits, cut, prop::collection::vec(any::<u8>(), 0..4)).prop_map(move |(edits, cut, more)| {
        let mut bytes = good.clone();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(at) = cut {
            bytes.truncate(at.index(bytes.len()));
        }
        bytes.extend(more);
        bytes
    })
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes: Vec<u8>) {
        prop_assert!(Trc::parse(&bytes).is_err());
        prop_assert!(Chain::from_pem(&bytes).is_err());
        prop_assert!(Chain::from_der(&bytes, &bytes).is_err());
    }

    #[test]
    fn an_altered_trc_never_panics(bytes in alter(trc_bytes("trc-2.bin"))) {
        let base = trc("trc.bin");
        if let Ok(trc) = Trc::parse(&bytes) {
            let _ = trc.verify_base();
            let _ = trc.verify_update(&base);
        }
    }

    #[test]
    fn an_altered_certificate_never_panics(
        bytes in alter(chain("chains-111.bin").r#as().to_der().to_vec())
    ) {
        let good = chain("chains-111.bin");
        if let Ok(chain) = Chain::from_der(&bytes, good.ca().to_der()) {
            prop_assert!(chain == good);
        }
    }

    #[test]
    fn an_altered_segment_never_panics(bytes in alter(segment("up.bin").encode_to_vec())) {
        if let Ok(segment) = PathSegment::decode(bytes.as_slice()) {
            let store = full_store();
            let _ = store.missing_chains(&segment, NOW);
            let _ = store.verify_segment(&segment, NOW);
        }
    }
}
