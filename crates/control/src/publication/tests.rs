//! Tests that what is published gives each AS the same paths as computing them itself.

use hawser_fuzz::fuzz;
use hawser_topology::IsdAsn;

use super::*;
use crate::discovery::announced;
use crate::error::LookupError;
use crate::shared::{Shared, now};
use crate::source;
use crate::testing::{Lab, ia};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn publish(lab: &Lab, lifetime: Duration, now: u64) -> Publication {
    let services = |isd_as| announced(&lab.dir(isd_as).topology().unwrap());
    let (network, folder) = (lab.network.clone(), lab.folder.path());
    Publication::make(network, folder, services, lifetime, now).unwrap()
}

fn decoded(publication: &Publication) -> Publication {
    Publication::from_json(&publication.to_json()).unwrap()
}

/// The fingerprints of the paths to an AS.
fn paths(plane: &mut Plane, to: IsdAsn, now: u64) -> Vec<Vec<hawser_path::Interface>> {
    let (from, local) = (plane.isd_as(), plane.find(plane.isd_as()).unwrap());
    // It renews or drops segments.
    assert!(plane.paths(from, to, now).is_ok());
    let dst = plane.find(to).unwrap();
    let segments = plane.beacons.joining(local, dst).segments();
    let found = hawser_segment::combine(&segments, from, to, 200);
    found.into_iter().map(|one| one.path.interfaces).collect()
}

#[test]
fn every_as_has_the_paths_that_it_would_compute() {
    let (lab, now) = (Lab::two_isds(), now());
    let published = publish(&lab, DAY, now);
    assert!(!published.is_due(now) && published.is_due(now + DAY.as_secs() / 2));
    for from in &lab.network.ases {
        let dir = lab.dir(from.isd_as);
        let mut computed = source::load(&dir, DAY).unwrap();
        let mut read = decoded(&published).plane(&dir, now).unwrap();
        for to in lab
            .network
            .ases
            .iter()
            .filter(|to| to.isd_as != from.isd_as)
        {
            let expected = paths(&mut computed, to.isd_as, now);
            assert!(!expected.is_empty());
            let found = paths(&mut read, to.isd_as, now);
            assert_eq!(found, expected, "{} to {}", from.isd_as, to.isd_as);
        }
    }
}

#[test]
fn hosts_get_segments_that_they_can_verify() {
    let (lab, now) = (Lab::two_isds(), now());
    let (from, to) = (ia("1-ff00:0:113"), ia("2-ff00:0:213"));
    let dir = lab.dir(from);
    let mut plane = publish(&lab, DAY, now).plane(&dir, now).unwrap();
    let mut store = Store::load(&dir.path().join("certs")).unwrap();
    for r#as in &lab.network.ases {
        let chain = plane.pki.as_mut().unwrap().chain(r#as.isd_as).unwrap();
        assert!(store.add_chain(chain.unwrap().clone()));
    }
    let found = plane.lookup(from, to, now).unwrap();
    let all: Vec<_> = [found.up, found.core, found.down].concat();
    assert!(all.len() >= 3);
    for segment in all {
        let message = plane.message(&segment).unwrap();
        store.verify_segment(&message, now).unwrap();
    }
}

#[test]
fn segments_and_chains_that_cannot_be_verified_are_left_out() {
    let (lab, now) = (Lab::ready("fig4"), now());
    let [a, b] = [0, 1].map(|at| lab.network.ases[at].isd_as);
    let count = |change: fn(&mut Publication)| {
        let mut published = publish(&lab, DAY, now);
        change(&mut published);
        let mut plane = decoded(&published).plane(&lab.dir(a), now).unwrap();
        paths(&mut plane, b, now).len()
    };
    let whole = count(|_| {});
    assert!(whole > 1);
    let bent = count(|published| {
        let bytes = &mut published.segments[0].message.0;
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    assert!(bent < whole, "{bent} of {whole}");
    assert_eq!(count(|published| published.chains.clear()), 0);
    // Those of another network: its TRC has other roots.
    let other = publish(&Lab::ready("fig4"), DAY, now);
    let mut plane = other.plane(&lab.dir(a), now).unwrap();
    assert_eq!(paths(&mut plane, b, now), Vec::<Vec<_>>::new());
}

#[tokio::test]
async fn the_service_reads_a_file_that_is_replaced() {
    let (lab, now) = (Lab::ready("fig4"), now());
    let [a, b] = [0, 1].map(|at| lab.network.ases[at].isd_as);
    let file = lab.folder.path().join("segments.json");
    let shared = Shared::published(lab.dir(a), file.clone());
    let count = || {
        shared.with(move |plane| {
            let count = paths(plane, b, now).len();
            Ok::<_, LookupError>((count, plane.generation))
        })
    };
    let missing = count().await.unwrap_err().to_string();
    assert!(missing.contains("segments.json"), "{missing}");
    let write = |published: &Publication| {
        let new = file.with_extension("new");
        std::fs::write(&new, published.to_json()).unwrap();
        std::fs::rename(&new, &file).unwrap();
    };
    let mut published = publish(&lab, DAY, now);
    write(&published);
    let (whole, first) = count().await.unwrap();
    assert!(whole > 1);
    assert_eq!(count().await.unwrap(), (whole, first));
    published.segments.clear();
    write(&published);
    let (none, second) = count().await.unwrap();
    assert_eq!(none, 0);
    assert_ne!(first, second);
    // Links are not changed here: their segments would not follow.
    let shape = hawser_topology::Shape::default();
    assert!(!shared.set_link((a, 1), false, shape).await);
    std::fs::write(&file, "{").unwrap();
    let broken = count().await.unwrap_err().to_string();
    assert!(
        broken.contains("not a file of published segments"),
        "{broken}"
    );
}

#[test]
fn expired_segments_are_not_offered() {
    let (lab, now) = (Lab::ready("fig4"), now());
    let [a, b] = [0, 1].map(|at| lab.network.ases[at].isd_as);
    let published = publish(&lab, Duration::from_secs(60), now);
    let mut plane = decoded(&published).plane(&lab.dir(a), now).unwrap();
    assert!(!paths(&mut plane, b, now).is_empty());
    assert_eq!(published.expiry(), now + 60);
    assert_eq!(paths(&mut plane, b, now + 60), Vec::<Vec<_>>::new());
}

#[test]
fn other_files_are_refused() {
    let text = |bytes: &[u8]| Publication::from_json(bytes).err().unwrap().to_string();
    assert!(text(br#"{"format": 2}"#).contains("a newer hawser"));
    assert!(text(b"[]").contains("not a file of published segments"));
    let lab = Lab::ready("fig4");
    let long = Publication::make(
        lab.network.clone(),
        lab.folder.path(),
        |_| Discovery::default(),
        2 * DAY,
        0,
    );
    assert!(matches!(long, Err(ControlError::Lifetime(_))));
    // An AS that is not in the network.
    let published = publish(&lab, DAY, now());
    let other = Lab::two_isds();
    let refused = published.plane(&other.dir(ia("2-ff00:0:213")), now());
    assert!(matches!(refused, Err(ControlError::NotInNetwork(_))));
}

#[test]
fn any_file_is_read_without_panic() {
    let lab = Lab::ready("fig4");
    let (valid, dir) = (
        publish(&lab, DAY, now()).to_json(),
        lab.dir(lab.network.ases[0].isd_as),
    );
    let mut tried = 0;
    fuzz(&[valid], |bytes| {
        if let Ok(read) = Publication::from_json(bytes)
            && tried < 100
        {
            tried += 1;
            let _ = read.plane(&dir, 0);
        }
    });
}
