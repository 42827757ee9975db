//! What links carry, as the API shows it.

use serde_json::Value;

use crate::LIMIT;
use crate::common::{HERE, Server};

#[tokio::test]
async fn use_is_read_now_over_time_and_as_metrics() {
    let server = Server::start().await;
    server.kernel.until(1, Some(4_000_000)).await;
    let head = format!("Authorization: Bearer {}\r\n", server.token("eve"));
    let mut events = Events::open(&server, &head).await;
    let event = events
        .until(|event| event["rates"].as_array().is_some_and(|all| all.len() == 2))
        .await;
    assert!(event["rates"][0][1].as_u64().unwrap() > 0, "{event}");
    let usage = server.of("eve", "GET /api/v1/usage", "").await.json();
    assert_eq!(usage["links"].as_array().unwrap().len(), 4, "{usage}");
    let history = server
        .of("eve", "GET /api/v1/links/1/history?span=60", "")
        .await
        .json();
    assert_eq!(history["egress"]["step"], 1);
    assert!(
        !history["egress"]["rates"].as_array().unwrap().is_empty(),
        "{history}"
    );
    assert_eq!(history["egress"]["limits"][0][1], 4_000_000);
    assert_eq!(
        server
            .of("eve", "GET /api/v1/links/9/history", "")
            .await
            .status,
        404
    );

    // A change is seen at once: the revision of the next event is another one.
    let before = event["revision"].as_u64().unwrap();
    server.of("alice", "PATCH /api/v1/links/1", LIMIT).await;
    events
        .until(|event| event["revision"].as_u64() > Some(before))
        .await;

    let metrics = server.of("eve", "GET /metrics", "").await;
    for line in [
        "# TYPE hawser_limit_bytes_total counter",
        "hawser_limit_rate_bits_per_second{link=\"1\",direction=\"egress\"} 1000000",
        "hawser_limit_maximum_bits_per_second{link=\"2\",direction=\"ingress\"} 10000000",
    ] {
        assert!(metrics.body.contains(line), "{line}: {}", metrics.body);
    }
    assert!(
        metrics
            .body
            .contains("hawser_limit_bytes_total{link=\"1\",direction=\"egress\"} ")
    );
    assert_eq!(server.ask("GET /metrics", "", "").await.status, 401);
}

/// A stream of events.
struct Events {
    stream: tokio::io::BufReader<tokio::net::TcpStream>,
}

impl Events {
    async fn open(server: &Server, head: &str) -> Self {
        use tokio::io::AsyncWriteExt;
        let mut stream = tokio::net::TcpStream::connect(server.address)
            .await
            .unwrap();
        let request = format!("GET /api/v1/live HTTP/1.1\r\nHost: a\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        Self {
            stream: tokio::io::BufReader::new(stream),
        }
    }

    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        use tokio::io::AsyncBufReadExt;
        loop {
            let mut line = String::new();
            assert_ne!(self.stream.read_line(&mut line).await.unwrap(), 0);
            let event = line
                .strip_prefix("data: ")
                .map(|text| serde_json::from_str(text).unwrap());
            if let Some(event) = event.filter(|event| is_it(event)) {
                return event;
            }
        }
    }
}

#[tokio::test]
async fn all_links_are_written_once_and_known_ones_not_sent() {
    let server = Server::start().await;
    server.kernel.until(2, Some(4_000_000)).await;
    // Once its limits are in force, nothing changes any more.
    let state = server.coordinator.state();
    let here = HERE.parse().unwrap();
    let version = state.host(here).unwrap().version;
    server.coordinator.deployed(here, version).await.unwrap();
    let list = server.of("eve", "GET /api/v1/links", "").await;
    let tag = list.header("etag").unwrap().to_owned();
    assert_eq!(list.json()["links"].as_array().unwrap().len(), 2);
    let head = format!(
        "Authorization: Bearer {}\r\nIf-None-Match: {tag}\r\n",
        server.token("eve")
    );
    let again = server.ask("GET /api/v1/links", &head, "").await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    server.of("alice", "PATCH /api/v1/links/1", LIMIT).await;
    let changed = server.ask("GET /api/v1/links", &head, "").await;
    assert_eq!(changed.json()["links"][0]["limit"]["egress"], 1_000_000);
}
