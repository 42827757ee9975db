//! What links carry, as the API shows it.

use hawser_coordinator::Actor;
use serde_json::Value;

use crate::LIMIT;
use crate::common::{HERE, PATIENCE, Server};

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
        &labeled("rate_bits_per_second", 1, "egress", "1000000"),
        &labeled("maximum_bits_per_second", 2, "ingress", "10000000"),
        &labeled("bytes_total", 1, "egress", ""),
    ] {
        assert!(metrics.body.contains(line), "{line}: {}", metrics.body);
    }
    assert_eq!(server.ask("GET /metrics", "", "").await.status, 401);
}

/// A metric of a link, whose far end the server has put at a port of its own.
fn labeled(metric: &str, number: u64, direction: &str, value: &str) -> String {
    let far = format!("10.0.0.{}:50000", number + 1);
    format!(
        "hawser_limit_{metric}{{attachment_point=\"{HERE}\",device=\"\",link=\"{far}\",\
         direction=\"{direction}\",number=\"{number}\"}} {value}"
    )
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

    /// Waits for the end of the stream.
    async fn ends(&mut self) {
        use tokio::io::AsyncReadExt;
        let mut rest = String::new();
        let read = self.stream.read_to_string(&mut rest);
        let read = tokio::time::timeout(PATIENCE, read).await;
        read.expect("the stream ends").unwrap();
        // The last chunk: it did not break off.
        assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    }

    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        use tokio::io::AsyncBufReadExt;
        let mut before = Vec::new();
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(PATIENCE, self.stream.read_line(&mut line)).await;
            let read = read.unwrap_or_else(|_| panic!("no such event: {before:?}"));
            assert_ne!(read.unwrap(), 0, "the stream ended after {before:?}");
            let event = line
                .strip_prefix("data: ")
                .map(|text| serde_json::from_str(text).unwrap());
            let Some(event) = event else { continue };
            if is_it(&event) {
                return event;
            }
            before.push(event);
        }
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_right_to_it() {
    let server = Server::start().await;
    let state = server.coordinator.state();
    let id = |name: &str| {
        state
            .users
            .values()
            .find(|user| user.name == name)
            .unwrap()
            .id
    };
    let open = async |credential: &str| {
        let head = format!("{credential}\r\nConnection: close\r\n");
        let mut events = Events::open(&server, &head).await;
        events.until(|_| true).await;
        events
    };
    let bearer = |name: &str| format!("Authorization: Bearer {}", server.token(name));
    let program = Actor::program();
    let [mut revoked, mut replaced, mut removed] = [
        open(&bearer("eve")).await,
        open(&bearer("bob")).await,
        open(&bearer("alice")).await,
    ];
    // A browser that logs out elsewhere.
    let login = format!("{{\"token\":\"{}\"}}", server.token("root"));
    let page = format!("Origin: http://{}\r\nX-Hawser-Page: 1\r\n", server.address);
    let answer = server.ask("POST /api/v1/session", &page, &login).await;
    let cookie = answer
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let mut logged_out = open(&format!("Cookie: {cookie}")).await;
    let mut unchanged = open(&bearer("root")).await;

    server
        .coordinator
        .revoke_token(&program, id("eve"))
        .unwrap();
    revoked.ends().await;
    server
        .coordinator
        .replace_token(&program, id("bob"))
        .unwrap();
    replaced.ends().await;
    server
        .coordinator
        .remove_user(&program, id("alice"))
        .unwrap();
    removed.ends().await;
    let head = format!("{page}Cookie: {cookie}\r\n");
    assert_eq!(
        server.ask("DELETE /api/v1/session", &head, "").await.status,
        204
    );
    logged_out.ends().await;
    unchanged.until(|_| true).await;
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
