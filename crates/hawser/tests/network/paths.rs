//! Which paths are used.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use hawser::{Path, PathChange, PathEvents, PathReason, PathStatus, Policy};

use super::*;

/// A policy that denies the link with this interface in the client's AS.
fn without(interface: u16) -> Policy {
    let acl = format!("- 1-ff00:0:110#{interface}; +");
    Policy::any().with_acl(&acl).unwrap()
}

/// The next event of a kind.
async fn next(events: &mut PathEvents, change: PathChange) -> hawser::PathEvent {
    let find = async {
        loop {
            let event = events.next().await.unwrap();
            // Shown if the test fails.
            println!("{event}");
            if event.change == change {
                return event;
            }
        }
    };
    tokio::time::timeout(LONGEST, find).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_listed_with_what_is_known_of_them() {
    let pair = Pair::new(3).await;
    let dst = pair.listener.local_addr().isd_as;
    let paths = pair.client.paths(dst).await.unwrap();
    assert_eq!(paths.len(), 3);
    for path in &paths {
        assert_eq!((path.src(), path.dst()), (pair.client.isd_as(), dst));
        assert_eq!((path.mtu(), path.status()), (toy::MTU, PathStatus::Usable));
        assert_eq!(path.interfaces().len(), 2);
        assert!(path.expiry().unwrap() > std::time::SystemTime::now());
    }
    let within = pair.client.paths(pair.client.isd_as()).await.unwrap();
    assert!(within[0].interfaces().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_moves_traffic_of_a_running_connection() {
    let mut pair = Pair::new(2).await;
    let connect = pair.connect().paths(1).policy(without(3));
    let (there, here) = tokio::join!(connect, pair.listener.accept());
    let (there, here) = (there.unwrap(), here.unwrap());
    let mut events = there.events();
    let first = next(&mut events, PathChange::Added).await;
    pair.limit(2_000_000);
    let echoing = tokio::spawn(echo(here.clone()));
    let (client, bytes) = (there.clone(), pattern(3 << 20));
    let sending = tokio::spawn(async move { echoed(client, &bytes).await });
    until(|| pair.passed()[0] > 500).await;
    let unused = pair.passed()[1];
    assert!(unused < 10, "{unused}");
    assert!(there.set_policy(Some(without(1))));
    assert!(!here.set_policy(Some(without(1))), "the client chooses");
    let removed = next(&mut events, PathChange::Removed).await;
    assert_eq!(
        (removed.path, removed.reason),
        (first.path, PathReason::Policy)
    );
    assert_ne!(next(&mut events, PathChange::Added).await.path, first.path);
    let moved = pair.passed()[1];
    sending.await.unwrap();
    echoing.await.unwrap();
    assert!(pair.passed()[1] > moved + 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_where_the_policy_allows_no_path() {
    let pair = Pair::new(2).await;
    let nothing = Policy::any().with_acl("-").unwrap();
    let refused = pair.connect().policy(nothing).await.unwrap_err();
    assert!(
        matches!(refused, ConnectError::NoPathAllowed { .. }),
        "{refused}"
    );
    let refused = pair
        .connect()
        .selector(|_: &[Path]| Vec::new())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("selector"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_ranks_and_denies() {
    let mut pair = Pair::new(3).await;
    // Which of the client's interfaces is denied; those with greater numbers are preferred.
    let denied = Arc::new(AtomicUsize::new(0));
    let selector = {
        let denied = Arc::clone(&denied);
        move |offered: &[Path]| {
            let id = |path: &Path| path.interfaces()[0].id;
            let denied = denied.load(Ordering::SeqCst);
            let mut paths: Vec<_> = offered
                .iter()
                .filter(|one| usize::from(id(one)) != denied)
                .collect();
            paths.sort_by_key(|path| std::cmp::Reverse(id(path)));
            paths.into_iter().map(Path::fingerprint).collect()
        }
    };
    let by_id = pair
        .client
        .paths(pair.listener.local_addr().isd_as)
        .await
        .unwrap();
    let path = |id: u16| {
        let path = by_id.iter().find(|path| path.interfaces()[0].id == id);
        path.unwrap().fingerprint()
    };
    let connect = pair.connect().paths(1).selector(selector);
    let (there, here) = tokio::join!(connect, pair.listener.accept());
    let (there, _here) = (there.unwrap(), here.unwrap());
    let mut events = there.events();
    assert_eq!(next(&mut events, PathChange::Added).await.path, path(5));
    // The next in rank takes the place of one that fails, and gives it back.
    pair.net.links[2].conduct.down.store(true, Ordering::SeqCst);
    // In either order: the network withdraws the path as well.
    let (mut lost, mut added) = (None, None);
    let both = async {
        while lost.is_none() || added.is_none() {
            let event = events.next().await.unwrap();
            println!("{event}");
            match event.change {
                PathChange::Lost => lost = Some(event.path),
                PathChange::Added => added = Some(event.path),
                _ => {}
            }
        }
    };
    tokio::time::timeout(LONGEST, both).await.unwrap();
    assert_eq!((lost, added), (Some(path(5)), Some(path(3))));
    pair.net.links[2]
        .conduct
        .down
        .store(false, Ordering::SeqCst);
    assert_eq!(next(&mut events, PathChange::Added).await.path, path(5));
    let removed = next(&mut events, PathChange::Removed).await;
    assert_eq!(
        (removed.path, removed.reason),
        (path(3), PathReason::Selector)
    );
    // It is asked again when the policy changes.
    denied.store(5, Ordering::SeqCst);
    there.set_policy(None);
    let removed = next(&mut events, PathChange::Removed).await;
    assert_eq!(
        (removed.path, removed.reason),
        (path(5), PathReason::Selector)
    );
    assert_eq!(next(&mut events, PathChange::Added).await.path, path(3));
}
