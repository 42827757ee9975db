//! Paths that appear, expire and fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser_endhost::{Outage, Path, PathsError};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::toy::{ToyNet, unix_now};

/// Longest wait for anything, also on a machine that is very busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

type Watch = watch::Receiver<Arc<Vec<Path>>>;

/// Waits until `count` paths are watched.
pub(crate) async fn until(watch: &mut Watch, count: usize) -> Arc<Vec<Path>> {
    let waited = timeout(PATIENCE, watch.wait_for(|paths| paths.len() == count)).await;
    let found = waited.map(|paths| paths.unwrap().clone());
    found.unwrap_or_else(|_| panic!("never {count} paths: {:?}", *watch.borrow()))
}

#[tokio::test]
async fn paths_are_cached_and_shared() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let first = host.paths(net.b_as).await.unwrap();
    let asked = net.a.asked.load(Ordering::SeqCst);
    assert_eq!(host.clone().paths(net.b_as).await.unwrap(), first);
    assert_eq!(net.a.asked.load(Ordering::SeqCst), asked);
    assert_eq!(first[0].next_hop(), Some(net.router_a()));
}

#[tokio::test]
async fn the_path_inside_the_as_needs_no_daemon() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let asked = net.a.asked.load(Ordering::SeqCst);
    let paths = host.paths(net.a_as).await.unwrap();
    assert_eq!(paths, [Path::within(net.a_as, 1472)]);
    assert_eq!(**host.watch(net.a_as).borrow(), paths);
    assert_eq!(net.a.asked.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn refreshed_paths_are_shown_to_watchers() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let mut watch = host.watch(net.b_as);
    let old = until(&mut watch, 1).await[0].clone();
    net.offer(unix_now() as u32 + 60);
    let fresh = watch.wait_for(|paths| paths[0] != old).await.unwrap()[0].clone();
    assert_eq!(fresh.fingerprint(), old.fingerprint());
    assert_eq!(fresh.expiry(), old.expiry() + 60);
}

#[tokio::test]
async fn an_outage_shows_at_once_and_ends_when_the_daemon_offers_the_path() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let mut watch = host.watch(net.b_as);
    let path = until(&mut watch, 1).await[0].clone();
    let mut outages = host.outages();
    let link = path.info().interfaces[1];
    host.report(Outage::Interface(link));
    assert!(
        watch.borrow().is_empty(),
        "without a question to the daemon"
    );
    assert_eq!(outages.recv().await.unwrap().to_string(), link.to_string());
    let error = host.paths(net.b_as).await.unwrap_err();
    assert_eq!(
        error,
        PathsError::AllDown {
            dst: net.b_as,
            count: 1
        }
    );
    // The daemon offered the path all the time; after the hold the offer counts.
    until(&mut watch, 1).await;
    // The path is withdrawn and offered again.
    host.report(Outage::Interface(link));
    net.withdraw();
    assert!(watch.borrow().is_empty());
    let error = loop {
        match host.paths(net.b_as).await.unwrap_err() {
            PathsError::AllDown { .. } => {}
            error => break error,
        }
    };
    assert!(matches!(error, PathsError::None { .. }), "{error}");
    net.offer(unix_now() as u32);
    until(&mut watch, 1).await;
}

#[tokio::test]
async fn an_outage_on_another_link_changes_nothing() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let mut watch = host.watch(net.b_as);
    until(&mut watch, 1).await;
    host.report(Outage::Interface("1-ff00:0:115#7".parse().unwrap()));
    assert_eq!(watch.borrow().len(), 1);
}

#[tokio::test]
async fn expired_paths_are_withheld() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    net.offer(unix_now() as u32 - 7 * 3600);
    let error = host.paths(net.b_as).await.unwrap_err();
    let text = error.to_string();
    let PathsError::Expired { count: 1, ago, .. } = error else {
        panic!("{error}");
    };
    // The paths of the toy network live for six hours.
    assert!((3600..7200).contains(&ago), "{ago}");
    assert!(text.contains("the last an hour ago: the clock"), "{text}");
    // They are there for a diagnosis.
    assert_eq!(host.offered_paths(net.b_as).await.unwrap().len(), 1);
}

#[tokio::test]
async fn paths_keep_working_while_the_daemon_fails() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let mut watch = host.watch(net.b_as);
    until(&mut watch, 1).await;
    let failure = hawser_rpc::RpcError::new(hawser_rpc::Code::Internal, "failing");
    net.a.answers.lock().unwrap().error = Some(failure);
    let asked = net.a.asked.load(Ordering::SeqCst);
    let asking = async {
        while net.a.asked.load(Ordering::SeqCst) < asked + 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let asked_again = timeout(PATIENCE, asking).await;
    asked_again.expect("the daemon is asked again");
    assert_eq!(watch.borrow().len(), 1);
    assert_eq!(host.paths(net.b_as).await.unwrap().len(), 1);
    // An outage ends even if no answer of the daemon ends it.
    let link = watch.borrow()[0].info().interfaces[0];
    host.report(Outage::Interface(link));
    assert!(watch.borrow().is_empty());
    until(&mut watch, 1).await;
}
