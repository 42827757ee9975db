//! Seeders that answer late, twice or never: the content arrives all the same, nobody is banned, and
//! only copies are waste.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_torrent::{Download, PeerAddr, Seed, Summary};

use super::content::{PATIENCE, finish};
use super::scripted::{Manner, Scripted};
use super::site::{Carrier, SIZE, Site};

/// By how much each answer is late.
const LATE: Duration = Duration::from_secs(3);

/// After which time the honest seeder arrives.
const ARRIVES: Duration = Duration::from_secs(4);

/// Bytes that may be under way when a download is complete.
const UNDER_WAY: u64 = 32 * 16384;

/// A partner with a complete copy, and its address.
async fn partner(site: &Site, manner: Manner) -> (Scripted, PeerAddr) {
    let file = std::fs::read(site.content.file()).unwrap();
    let seeder = Scripted::new(manner, &site.content.metainfo, file);
    let addr = site.partner(&seeder).await;
    (seeder, addr)
}

/// Completes a download that nobody may have been banned from. `sent` waits until all seeders have sent
/// as many bytes of blocks as arrived, and gives what they have sent: what is beyond the content are
/// copies, and only those may be waste.
async fn complete(
    site: &Site,
    download: Download,
    sent: impl AsyncFnOnce(u64) -> u64,
    what: &str,
) -> (Summary, u64) {
    let (begun, progress) = (Instant::now(), download.progress());
    let summary = finish(download).await;
    let last = progress.borrow().clone();
    let summary = summary.unwrap_or_else(|error| panic!("{error}: {last:#?}"));
    site.content.check();
    // Peers that were dropped are among those without a path.
    assert!(last.idle_peers.is_empty(), "{last:#?}");
    let (seconds, wasted) = (begun.elapsed().as_secs_f64(), summary.wasted_bytes);
    let copies = sent(last.fetched_bytes).await - SIZE as u64;
    println!("{what}: {seconds:.1} s, {copies} bytes of copies sent, {wasted} bytes wasted");
    assert_eq!(last.fetched_bytes, SIZE as u64 + wasted);
    assert!(wasted <= copies, "{last:#?}");
    (summary, copies)
}

/// Bytes of blocks that a seeder of the engine has sent, once there are `least`.
async fn uploaded(seed: &Seed, least: u64) -> u64 {
    let mut progress = seed.progress();
    let enough = progress.wait_for(|progress| progress.uploaded_bytes >= least);
    let enough = tokio::time::timeout(PATIENCE, enough).await;
    enough.unwrap().unwrap().uploaded_bytes
}

/// Whether no connection was closed and opened again.
fn assert_connected_once(site: &Site, partner: &Scripted) {
    let connections = partner.connections.load(Ordering::SeqCst);
    assert_eq!(connections, site.paths());
}

async fn late(carrier: Carrier) {
    let site = Site::new(carrier).await;
    let (seeder, addr) = partner(&site, Manner::Late(LATE)).await;
    let sent = async |_| seeder.sent_bytes.load(Ordering::SeqCst);
    let what = format!("answers late, over {carrier:?}");
    complete(&site, site.get(&[addr]), sent, &what).await;
    assert_connected_once(&site, &seeder);
}

async fn twice(carrier: Carrier) {
    let site = Site::new(carrier).await;
    let (seeder, addr) = partner(&site, Manner::Twice).await;
    let sent = async |_| seeder.sent_bytes.load(Ordering::SeqCst);
    let what = format!("answers twice, over {carrier:?}");
    let (summary, copies) = complete(&site, site.get(&[addr]), sent, &what).await;
    assert!(copies >= SIZE as u64);
    assert!(
        summary.wasted_bytes + UNDER_WAY >= SIZE as u64,
        "{summary:?}"
    );
    assert_connected_once(&site, &seeder);
}

/// The honest seeder arrives `later` than the other was first requested from.
async fn never(carrier: Carrier, later: Duration) {
    let site = Site::new(carrier).await;
    let (seeder, silent) = partner(&site, Manner::Never).await;
    let absent = site.absent().await;
    let download = site.get(&[silent, absent]);
    let requested = async {
        while seeder.requested.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, requested).await.unwrap();
    tokio::time::sleep(later).await;
    let (seed, _) = site.honest(Some(absent)).await;
    let sent = async |least| uploaded(&seed, least).await;
    let what = format!("never answers, another comes after {later:?}, over {carrier:?}");
    complete(&site, download, sent, &what).await;
    assert_connected_once(&site, &seeder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_answers_late_over_tcp() {
    late(Carrier::Tcp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_answers_late_over_scion() {
    late(Carrier::Scion).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_answers_twice_over_tcp() {
    twice(Carrier::Tcp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_answers_twice_over_scion() {
    twice(Carrier::Scion).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_never_answers_over_tcp() {
    never(Carrier::Tcp, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_never_answers_over_scion() {
    never(Carrier::Scion, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_that_never_answers_is_alone_at_first_over_tcp() {
    never(Carrier::Tcp, ARRIVES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_that_never_answers_is_alone_at_first_over_scion() {
    never(Carrier::Scion, ARRIVES).await;
}
