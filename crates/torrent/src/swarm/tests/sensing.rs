//! Uploaders that assign paths which share links, where that costs nothing (001, section VIII).

use hawser_path::{Reason, Sensed, Verdict};

use super::*;
use crate::SelectBy;
use crate::progress::{SeedPeer, SeedProgress};
use crate::reason::ChoiceReason;
use crate::testing::{Neck, Shape};

const SEEDER: u16 = 9;

/// Two leechers behind AS 101, and a third behind AS 102, so that the link to AS 101 could be
/// avoided. Shows `look` the connections of the first two, as seen by the seeder, until it returns
/// true.
async fn side_by_side(
    rate: Option<f64>,
    neck: Option<&Neck>,
    mut look: impl FnMut([&[&SeedPeer]; 2]) -> bool,
) {
    let net = Net::default();
    // More than is carried within `PATIENCE`: a comparison that a busy machine spoils is repeated.
    let stage = Stage::one_file(100_000_000, 65536);
    let seed = stage.seed(&net.host(SEEDER)).await;
    let own = Shape {
        rate: rate.map(|mbit| (mbit * 1e6) as u64),
        delay: Duration::from_millis(2),
    };
    let downloads: Vec<Download> = [(1, 101), (2, 101), (3, 102)]
        .into_iter()
        .map(|(n, via)| {
            // The third must not finish before the others.
            let (shape, neck) = match via {
                101 => (own, neck),
                _ => (mbit(8.0, 2), None),
            };
            net.between(n, via, SEEDER, shape, neck);
            Download::over(
                net.host(n),
                stage.metainfo.clone(),
                stage.dir.path().join(format!("get{n}")),
                vec![addr(SEEDER)],
                selected_by(SelectBy::Uploader),
            )
        })
        .collect();
    let mut progress = seed.progress();
    let wanted = progress.wait_for(|progress: &SeedProgress| {
        let of = |n| -> Vec<&SeedPeer> {
            let peers = progress.peers.iter();
            peers.filter(|peer| peer.peer == addr(n)).collect()
        };
        look([&of(1), &of(2)])
    });
    let waited = tokio::time::timeout(PATIENCE, wanted).await;
    waited.expect("it never comes to that").unwrap();
    drop(downloads);
}

fn is_taken(peers: &[&SeedPeer]) -> bool {
    let mut decisions = peers.iter().filter_map(|peer| peer.decision.as_ref());
    decisions.any(|decision| decision.verdict == Verdict::Taken)
}

fn is_sensed(peers: &[&SeedPeer], taken: bool) -> bool {
    let mut decisions = peers.iter().filter_map(|peer| peer.decision.as_ref());
    decisions.any(|decision| {
        matches!(decision.reason, ChoiceReason::Path(Reason::Sensed(_)))
            && (decision.verdict == Verdict::Taken) == taken
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_link_that_is_no_bottleneck_carries_both() {
    // Taking turns would never assign a path to both at once.
    side_by_side(Some(12.0), None, |[one, two]| {
        let kept = |peers: &[&SeedPeer]| {
            let mut decisions = peers.iter().filter_map(|peer| peer.decision.as_ref());
            decisions.any(|decision| {
                let ChoiceReason::Path(reason) = &decision.reason else {
                    return false;
                };
                matches!(reason, Reason::Sensed(Sensed::Gain { .. }))
            })
        };
        is_taken(one) && is_taken(two) && (kept(one) || kept(two))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_bottleneck_is_found_and_left() {
    let neck = Neck::mbit(16.0);
    let mut tried = false;
    side_by_side(None, Some(&neck), |[one, two]| {
        tried |= is_sensed(one, true) || is_sensed(two, true);
        tried && (is_sensed(one, false) || is_sensed(two, false))
    })
    .await;
}
