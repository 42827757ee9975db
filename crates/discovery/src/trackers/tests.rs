use std::time::Duration;

use fastrand::Rng;
use hawser_tracker::{AnnounceOptions, Identity, TrackerState};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::*;
use crate::testing::{Local, request};
use crate::tracker::ClientOptions;

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

fn announcer(tiers: &[Vec<String>]) -> Announcer {
    let identity = Identity {
        info_hash: [1; 20],
        peer_id: [2; 20],
        port: 6881,
        key: 3,
        scion: None,
    };
    let options = AnnounceOptions::default();
    Announcer::new(identity, tiers, options, Rng::with_seed(1), now())
}

fn client() -> Client {
    let options = ClientOptions {
        udp_timeout: Duration::from_millis(100),
        ..ClientOptions::default()
    };
    Client::new(options).expect("a client")
}

fn spawn(
    tiers: &[Vec<String>],
    mapped: MappedPort,
    stats: watch::Receiver<Stats>,
    sink: mpsc::Sender<Vec<PeerAddr>>,
    stop: &CancellationToken,
) -> Trackers {
    Trackers::spawn(client(), announcer(tiers), mapped, stats, sink, stop)
}

fn missing(left: u64) -> Stats {
    Stats {
        left,
        peers: 20,
        ..Stats::default()
    }
}

async fn until_true(mut check: impl FnMut() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.expect("in time");
}

#[tokio::test]
async fn a_torrent_is_announced_from_begin_to_end() {
    let tracker = Local::default();
    client()
        .announce(&tracker.http[0], &request(77))
        .await
        .expect("an answer");
    let (stats_sender, stats) = watch::channel(missing(5));
    let (sink, mut found) = mpsc::channel(4);
    let stop = CancellationToken::new();
    // The first tier has a tracker that nobody answers at.
    let tiers = [
        vec!["udp://127.0.0.1:9/announce".into()],
        vec![tracker.udp[0].clone()],
    ];
    let trackers = spawn(&tiers, MappedPort::default(), stats, sink, &stop);
    let peers = timeout(PATIENCE, found.recv()).await.expect("in time");
    assert_eq!(peers, Some(vec!["127.0.0.1:77".parse().expect("a peer")]));
    let status = trackers.status();
    until_true(|| {
        let states: Vec<_> = status.borrow().iter().map(|it| it.state).collect();
        states == [TrackerState::Failing, TrackerState::Working]
    })
    .await;
    let counters = || tracker.monitor.counters();
    assert_eq!((counters().peers, counters().seeders), (2, 0));
    let complete = Stats {
        downloaded: 5,
        ..missing(0)
    };
    stats_sender.send(complete).expect("sent");
    until_true(|| counters().seeders == 1).await;
    assert_eq!(downloads(&tracker).await, 1);
    drop(stats_sender);
    trackers.stop().await;
    assert_eq!((counters().peers, counters().announces), (1, 4));
}

/// How many downloads the tracker has counted.
async fn downloads(tracker: &Local) -> u32 {
    let scraped = client().scrape(&tracker.udp[0], &[[1; 20]]).await;
    scraped.expect("an answer")[&[1; 20]].downloaded
}

#[tokio::test]
async fn content_that_was_there_already_is_no_download() {
    let tracker = Local::default();
    let (stats_sender, stats) = watch::channel(missing(5));
    let (sink, _) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let tiers = [vec![tracker.udp[0].clone()]];
    let trackers = spawn(&tiers, MappedPort::default(), stats, sink, &stop);
    let status = trackers.status();
    until_true(|| status.borrow()[0].state == TrackerState::Working).await;
    // Another peer keeps the torrent in the tracker.
    let other = client().announce(&tracker.udp[0], &request(77)).await;
    other.expect("an answer");
    stats_sender.send(missing(0)).expect("sent");
    // A `completed` would be sent in the turns that follow.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    trackers.stop().await;
    assert_eq!(downloads(&tracker).await, 0);
}

#[tokio::test]
async fn what_is_dropped_or_cancelled_still_says_that_it_stops() {
    for cancels in [false, true] {
        let tracker = Local::default();
        let (_stats_sender, stats) = watch::channel(missing(5));
        let (sink, _) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let tiers = [vec![tracker.http[0].clone()]];
        let trackers = spawn(&tiers, MappedPort::default(), stats, sink, &stop);
        let status = trackers.status();
        until_true(|| status.borrow()[0].state == TrackerState::Working).await;
        assert_eq!(tracker.monitor.counters().peers, 1);
        if cancels {
            stop.cancel();
        } else {
            drop(trackers);
        }
        until_true(|| tracker.monitor.counters().peers == 0).await;
    }
}

#[tokio::test]
async fn a_silent_tracker_delays_the_end_for_three_seconds_at_most() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a socket");
    let addr = silent.local_addr().expect("an address");
    let (_stats_sender, stats) = watch::channel(missing(5));
    let (sink, _) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let tiers = [vec![format!("http://{addr}/announce")]];
    let trackers = spawn(&tiers, MappedPort::default(), stats, sink, &stop);
    let status = trackers.status();
    until_true(|| status.borrow()[0].state == TrackerState::Announcing).await;
    trackers.refresh();
    let begin = Instant::now();
    trackers.stop().await;
    let taken = begin.elapsed();
    assert!(taken < STOP_TIMEOUT + Duration::from_secs(2), "{taken:?}");
}

/// The ports of the peers that the tracker names to another one.
async fn ports(tracker: &Local) -> Vec<u16> {
    let answer = client().announce(&tracker.udp[0], &request(77)).await;
    let peers = answer.expect("an answer").peers;
    peers
        .iter()
        .map(|peer| peer.ip().expect("over IP").port())
        .collect()
}

#[tokio::test]
async fn the_mapped_port_is_announced_and_followed() {
    let tracker = Local::default();
    let (stats_sender, stats) = watch::channel(missing(5));
    let (sink, _) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let tiers = [vec![tracker.udp[0].clone()]];
    let (mapped_sender, mapped) = watch::channel(Some(7001));
    let trackers = spawn(&tiers, mapped.into(), stats, sink, &stop);
    let status = trackers.status();
    let is_waiting = || status.borrow()[0].state == TrackerState::Working;
    until_true(is_waiting).await;
    assert_eq!(ports(&tracker).await, [7001]);
    // The next announce is then due as soon as the tracker allows it.
    let due = status.borrow()[0].next.expect("a next announce");
    mapped_sender.send_replace(Some(7002));
    until_true(|| status.borrow()[0].next.is_some_and(|next| next < due)).await;
    let complete = Stats {
        downloaded: 5,
        ..missing(0)
    };
    stats_sender.send(complete).expect("sent");
    until_true(|| tracker.monitor.counters().seeders == 1).await;
    let ports = ports(&tracker).await;
    assert!(ports.contains(&7002) && !ports.contains(&6881), "{ports:?}");
    trackers.stop().await;
}

#[test]
fn trackers_that_see_no_gateway_get_the_local_port() {
    for (url, port) in [
        ("udp://tracker.example:80/announce", 9),
        ("http://192.0.2.1/announce", 9),
        ("udp://[2001:db8::1]:80/announce", 1),
        ("udp://[1-ff00:0:110,10.0.0.1]:80", 1),
    ] {
        assert_eq!(port_at(url, 1, Some(9)), port, "{url}");
        assert_eq!(port_at(url, 1, None), 1, "{url}");
        assert_eq!(port_at(url, 0, Some(9)), 0, "{url}");
    }
}

#[tokio::test]
async fn a_port_that_changes_during_an_announce_is_announced_soon() {
    let tracker = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a socket");
    let addr = tracker.local_addr().expect("an address");
    let (_stats_sender, stats) = watch::channel(missing(5));
    let (sink, _) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let (mapped_sender, mapped) = watch::channel(None);
    let tiers = [vec![format!("http://{addr}/announce")]];
    let begin = std::time::Instant::now();
    let trackers = spawn(&tiers, mapped.into(), stats, sink, &stop);
    let accepted = timeout(PATIENCE, tracker.accept()).await;
    let (mut stream, _) = accepted.expect("in time").expect("a connection");
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        let read = timeout(PATIENCE, stream.read_buf(&mut asked)).await;
        assert_ne!(read.expect("in time").expect("a request"), 0);
    }
    let asked = String::from_utf8_lossy(&asked);
    assert!(asked.contains("port=6881"), "{asked}");
    mapped_sender.send_replace(Some(7001));
    // Ten days without the change.
    let body = "d8:intervali864000e12:min intervali60e5:peers0:e";
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.expect("sent");
    let status = trackers.status();
    until_true(|| status.borrow()[0].state == TrackerState::Working).await;
    let next = status.borrow()[0].next.expect("a next announce");
    let pause = next.duration_since(begin);
    assert!(pause < Duration::from_secs(1000), "{pause:?}");
    drop(tracker);
    trackers.stop().await;
}

#[tokio::test]
async fn other_trackers_are_announced_to_and_those_before_are_left() {
    let (one, two) = (Local::default(), Local::default());
    let (_stats, stats) = watch::channel(missing(5));
    let (sink, _) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let trackers = spawn(&[], MappedPort::default(), stats, sink, &stop);
    let peers = || [&one, &two].map(|it| it.monitor.counters().peers);
    trackers.set(vec![vec![one.http[0].clone()]]);
    until_true(|| peers() == [1, 0]).await;
    trackers.set(vec![vec![two.udp[0].clone()]]);
    until_true(|| peers() == [0, 1]).await;
    let status = trackers.status().borrow().clone();
    assert_eq!((&status[0].url, status.len()), (&two.udp[0], 1));
    trackers.stop().await;
    assert_eq!(peers(), [0, 0]);
}
