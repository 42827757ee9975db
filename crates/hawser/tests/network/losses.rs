//! Paths that are lost while data flows.

use hawser::{PathChange, PathReason};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_in_order_though_a_path_is_cut() {
    for reported in [true, false] {
        let mut pair = Pair::new(2).await;
        let (there, here) = pair.connected(2).await;
        until(|| there.stats().len() == 2 && here.stats().len() == 2).await;
        pair.limit(2_000_000);
        let mut events = there.events();
        let echoing = tokio::spawn(echo(here));
        let (client, bytes) = (there.clone(), pattern(6 << 20));
        let sending = tokio::spawn(async move { echoed(client, &bytes).await });
        let before = pair.passed();
        until(|| {
            pair.passed()
                .iter()
                .zip(&before)
                .all(|(now, before)| *now > before + 300)
        })
        .await;
        let conduct = &pair.net.links[0].conduct;
        match reported {
            true => conduct.down.store(true, Ordering::SeqCst),
            false => conduct.silent.store(true, Ordering::SeqCst),
        }
        sending.await.unwrap();
        echoing.await.unwrap();
        assert_eq!(there.close().await, Ok(()));
        let mut lost = Vec::new();
        while let Some(event) = events.next().await {
            if !matches!(event.change, PathChange::Added | PathChange::Failed) {
                lost.push((event.change, event.reason));
            }
        }
        let expected = match reported {
            true => (PathChange::Lost, PathReason::Down),
            false => (PathChange::Held, PathReason::Silent),
        };
        assert!(lost.contains(&expected), "{lost:?}");
        assert_eq!(events.missed(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_outlives_the_loss_of_all_paths_for_some_time() {
    let mut pair = Pair::new(2).await;
    let (mut there, mut here) = pair.connected(2).await;
    until(|| there.stats().len() == 2).await;
    let silent = |is: bool| {
        for link in &pair.net.links {
            link.conduct.silent.store(is, Ordering::SeqCst);
        }
    };
    silent(true);
    there.write_all(b"meanwhile").await.unwrap();
    // Longer than QUIC connections live without packets.
    until(|| there.stats().is_empty() && here.stats().is_empty()).await;
    let unsent = there.datagrams().send(b"now");
    assert_eq!(unsent, Err(SendError::NoPath));
    silent(false);
    let mut received = [0; 9];
    let read = here.read_exact(&mut received);
    tokio::time::timeout(LONGEST, read).await.unwrap().unwrap();
    assert_eq!(&received, b"meanwhile");
}
