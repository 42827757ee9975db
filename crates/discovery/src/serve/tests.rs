use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::testing::{Local, request};
use crate::tracker::{Client, ClientOptions};

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

fn client() -> Client {
    Client::new(ClientOptions::default()).expect("a client")
}

async fn end(tracker: Local) -> Result<(), ServeError> {
    drop(tracker.stop);
    tracker.task.await.expect("no panic")
}

fn kept_in(path: &std::path::Path) -> Local {
    Local::new(ServeOptions {
        state: Some(path.to_owned()),
        ..ServeOptions::default()
    })
}

#[tokio::test]
async fn swarms_outlive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("swarms");
    let tracker = kept_in(&path);
    client()
        .announce(&tracker.http[0], &request(1))
        .await
        .expect("an answer");
    client()
        .announce(&tracker.udp[1], &request(2))
        .await
        .expect("an answer");
    end(tracker).await.expect("written");
    let tracker = kept_in(&path);
    assert_eq!(tracker.monitor.counters().peers, 2);
    let answer = client()
        .announce(&tracker.http[0], &request(3))
        .await
        .expect("an answer");
    assert_eq!(answer.peers.len(), 2);
    end(tracker).await.expect("written");
    // What is damaged is put aside.
    std::fs::write(&path, "nonsense").expect("written");
    let tracker = kept_in(&path);
    assert_eq!(tracker.monitor.counters().peers, 0);
    assert!(folder.path().join("swarms.damaged").exists());
    end(tracker).await.expect("written");
    // A folder that has gone.
    let tracker = kept_in(&path);
    folder.close().expect("removed");
    let error = end(tracker).await.expect_err("no folder");
    assert!(matches!(error, ServeError::Write { .. }));
}

#[tokio::test]
async fn swarms_are_written_every_minute() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("swarms");
    let tracker = kept_in(&path);
    client()
        .announce(&tracker.http[0], &request(1))
        .await
        .expect("an answer");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    let written = timeout(PATIENCE, async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    written.await.expect("in time");
    end(tracker).await.expect("written");
}

async fn ask(url: &str, request: &str) -> String {
    let addr = url
        .trim_start_matches("http://")
        .trim_end_matches("/announce");
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer));
    read.await.expect("in time").expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn odd_requests_are_refused() {
    let tracker = Local::default();
    let url = &tracker.http[0];
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: t\r\n\r\n");
    let page = ask(url, &get("/")).await;
    assert!(
        page.starts_with("HTTP/1.1 404 ") && page.contains("/announce"),
        "{page}"
    );
    let post = ask(
        url,
        "POST /announce HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
    let missing = ask(url, &get("/announce?port=1")).await;
    assert!(
        missing.contains("14:failure reason34:the parameter info_hash is missing"),
        "{missing}"
    );
    let long = ask(url, &get(&format!("/announce?{}", "a".repeat(20_000)))).await;
    assert!(long.starts_with("HTTP/1.1 4"), "{long}");
    let long = ask(url, &get(&format!("/announce?{}", "a".repeat(9_000)))).await;
    assert!(long.contains("failure reason"), "{long}");
    // Two at once: the connection ends after the first.
    let both = ask(url, &[get("/a"), get("/b")].concat()).await;
    assert_eq!(both.matches("HTTP/1.1 404").count(), 1);
    assert_eq!(tracker.monitor.counters().invalid, 2);
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let tracker = Local::default();
    let addr = tracker.http[0]
        .trim_start_matches("http://")
        .trim_end_matches("/announce");
    let taken = Server::bind(ServeOptions {
        http: vec![addr.parse().expect("an address")],
        ..ServeOptions::default()
    });
    let error = taken.expect_err("taken").to_string();
    assert!(error.contains(addr) && error.contains("http"), "{error}");
}
