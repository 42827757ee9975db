//! Tests of trust material and signatures, with a client over TCP.

use hawser_rpc::Client;
use hawser_topology::Network;
use hawser_trust::{ChainQuery, Store, Trc};

use super::*;
use crate::testing::{Lab, client, ia, plane};

/// A client of a service that runs until the end of the test.
struct Caller(Client);

async fn run(lab: &Lab, isd_as: &str) -> Caller {
    let control = lab.control(isd_as).await.unwrap();
    let at = control.status.control[0];
    tokio::spawn(control.run(std::future::pending()));
    Caller(client(at))
}

fn request(isd_as: &str) -> ChainsRequest {
    ChainsRequest {
        isd_as: ia(isd_as).to_u64(),
        ..ChainsRequest::default()
    }
}

impl Caller {
    async fn segments(&self, request: &SegmentsRequest) -> Result<SegmentsResponse, RpcError> {
        self.0.call(SEGMENTS, request).await
    }

    async fn chains(&self, request: ChainsRequest) -> Vec<hawser_trust::Chain> {
        let answer = self.0.call(CHAINS, &request).await.unwrap();
        let chain = |c: &Chain| hawser_trust::Chain::from_der(&c.as_cert, &c.ca_cert).unwrap();
        answer.chains.iter().map(chain).collect()
    }

    async fn trc(&self, isd: u32, base: u64, serial: u64) -> Result<Trc, Code> {
        let request = TRCRequest { isd, base, serial };
        let answer = self.0.call(TRC, &request).await.map_err(|e| e.code)?;
        Ok(Trc::from_der(&answer.trc).unwrap())
    }

    /// The chains that a verifier requests.
    async fn fetch(&self, query: &ChainQuery) -> Vec<hawser_trust::Chain> {
        self.chains(ChainsRequest {
            isd_as: query.isd_as.to_u64(),
            subject_key_id: query.subject_key_id.clone(),
            at_least_valid_since: Some(Timestamp::from_unix_secs(query.since)),
            at_least_valid_until: Some(Timestamp::from_unix_secs(query.until)),
        })
        .await
    }
}

#[tokio::test]
async fn a_host_verifies_every_segment() {
    let lab = Lab::two_isds();
    let caller = run(&lab, "1-ff00:0:114").await;
    let asked = SegmentsRequest {
        src_isd_as: ia("1-ff00:0:114").to_u64(),
        dst_isd_as: ia("2-ff00:0:212").to_u64(),
    };
    let found = caller.segments(&asked).await.unwrap();
    // A host of another AS verifies with the TRCs of that AS.
    let mut store = Store::load(&lab.dir(ia("2-ff00:0:212")).path().join("certs")).unwrap();
    let now = now();
    let mut seen = 0;
    for segment in found.segments.values().flat_map(|list| &list.segments) {
        for query in store.missing_chains(segment, now).unwrap() {
            for chain in caller.fetch(&query).await {
                assert!(store.add_chain(chain));
            }
        }
        assert_eq!(store.verify_segment(segment, now), Ok(()));
        seen += 1;
    }
    assert_eq!(seen, 10);
}

#[tokio::test]
async fn segments_are_signed_once() {
    let lab = Lab::two_isds();
    let caller = run(&lab, "1-ff00:0:114").await;
    let asked = SegmentsRequest {
        src_isd_as: ia("1-ff00:0:114").to_u64(),
        dst_isd_as: ia("1-0").to_u64(),
    };
    let first = caller.segments(&asked).await.unwrap();
    let again = caller.segments(&asked).await.unwrap();
    // A new signature would differ.
    assert_eq!(first, again);
}

#[tokio::test]
async fn chains_are_found_by_as_key_and_time() {
    let lab = Lab::two_isds();
    let caller = run(&lab, "1-ff00:0:114").await;
    let [chain] = caller
        .chains(request("2-ff00:0:212"))
        .await
        .try_into()
        .unwrap();
    assert_eq!(chain.isd_as(), ia("2-ff00:0:212"));
    let (key, validity) = (chain.r#as().subject_key_id().to_vec(), chain.validity());
    let by = |isd_as: &str, key: &[u8], since: Option<u64>, until: Option<u64>| ChainsRequest {
        subject_key_id: key.to_vec(),
        at_least_valid_since: since.map(Timestamp::from_unix_secs),
        at_least_valid_until: until.map(Timestamp::from_unix_secs),
        ..request(isd_as)
    };
    let (start, end) = (validity.not_before, validity.not_after);
    for (asked, count) in [
        (by("2-ff00:0:212", &key, Some(start), Some(end)), 1),
        (by("2-ff00:0:212", &key, None, Some(end)), 1),
        (by("2-ff00:0:212", &key, Some(start), None), 1),
        (by("2-ff00:0:212", &key, Some(start - 1), Some(end)), 0),
        (by("2-ff00:0:212", &key, Some(start), Some(end + 1)), 0),
        (by("2-ff00:0:212", &key, None, Some(start - 1)), 0),
        (by("2-ff00:0:212", &key[1..], None, None), 0),
        (by("2-ff00:0:211", &key, None, None), 0),
        (by("2-ff00:0:9", &[], None, None), 0),
    ] {
        assert_eq!(caller.chains(asked.clone()).await.len(), count, "{asked:?}");
    }
}

#[tokio::test]
async fn chains_of_several_ases_are_refused() {
    let lab = Lab::two_isds();
    let caller = run(&lab, "1-ff00:0:114").await;
    // Refused before any key is read.
    std::fs::remove_dir_all(lab.dir(ia("2-ff00:0:212")).path().join("crypto")).unwrap();
    for wildcard in ["0-0", "2-0", "0-ff00:0:212"] {
        let refused = caller.0.call(CHAINS, &request(wildcard)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument, "{wildcard}");
        let message = refused.message;
        assert!(message.contains("name one such as"), "{message}");
    }
    assert_eq!(caller.chains(request("2-ff00:0:211")).await.len(), 1);
}

#[tokio::test]
async fn trcs_are_found_by_their_numbers() {
    let lab = Lab::two_isds();
    let caller = run(&lab, "1-ff00:0:114").await;
    for (base, serial) in [(1, 1), (0, 0)] {
        let trc = caller.trc(2, base, serial).await.unwrap();
        assert_eq!(trc.id().to_string(), "ISD2-B1-S1");
        trc.verify_base().unwrap();
    }
    for (isd, base, serial) in [(2, 1, 2), (2, 2, 2), (3, 1, 1), (3, 0, 0), (65538, 1, 1)] {
        let answer = caller.trc(isd, base, serial).await;
        assert_eq!(answer.err(), Some(Code::NotFound));
    }
}

#[tokio::test]
async fn errors_name_the_as_without_its_key() {
    let lab = Lab::two_isds();
    let caller = run(&lab, "1-ff00:0:114").await;
    let folder = lab.dir(ia("2-ff00:0:212")).path().join("crypto/as");
    std::fs::remove_file(folder.join("cp-as.key")).unwrap();
    let asked = |dst: &str| SegmentsRequest {
        src_isd_as: ia("1-ff00:0:114").to_u64(),
        dst_isd_as: ia(dst).to_u64(),
    };
    let error = caller.segments(&asked("2-ff00:0:212")).await.unwrap_err();
    assert_eq!(error.code, Code::Internal);
    let message = error.message;
    assert!(
        message.contains("2-ff00_0_212/crypto/as has no key"),
        "{message}"
    );
    // Segments without this AS are still signed.
    caller.segments(&asked("2-ff00:0:211")).await.unwrap();
}

#[test]
fn the_error_names_missing_certificates() {
    let network = Network::ready("fig4").unwrap();
    let mut plane = plane(&network, ia("1-ff00:0:110"));
    let error = super::chains(&mut plane, request("1-ff00:0:110")).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
}

#[test]
fn a_lab_without_trcs_is_refused() {
    let lab = Lab::two_isds();
    let dir = lab.dir(ia("1-ff00:0:114"));
    std::fs::remove_dir_all(dir.path().join("certs")).unwrap();
    let error = crate::source::load(&dir, crate::MAX_LIFETIME)
        .err()
        .unwrap();
    assert!(error.to_string().contains("1-ff00_0_114/certs"), "{error}");
}
