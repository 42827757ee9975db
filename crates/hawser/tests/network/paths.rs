//! Which paths are used.

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
