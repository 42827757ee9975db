//! The API on loopback, request by request, compared with its description.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use data_encoding::BASE64;
use hawser_discovery::{
    Client as TrackerClient, ClientOptions, DhtNodes, LocalDiscovery, LocalOptions, PeerFinder,
};
use hawser_fuzz::{Answered, Description};
use hawser_torrent::{CreateOptions, Metainfo, Network, create};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::WayOpeners;
use crate::engine::Engine;
use crate::state::StateFolder;
use crate::torrents::Bounds;

mod front_ends;
mod look;
mod queue;
mod rpc;
mod settings;
mod stream;
mod transmission;
mod urls;
mod users;

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// The description of what a server of the torrents alone answers.
static TEXT: LazyLock<String> =
    LazyLock::new(|| hawser_http::described(describe::Shared::openapi(), [description()]));

/// A daemon on loopback, without peers.
struct Api {
    address: SocketAddr,
    token: Token,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    serving: tokio::task::JoinHandle<()>,
    client: Client,
    dir: TempDir,
}

/// The ways to find peers that can be switched on, on loopback.
fn openers() -> WayOpeners {
    WayOpeners {
        dht: Some(Box::new(|| {
            let mut nodes = DhtNodes::default();
            let address = "127.0.0.1:0".parse().unwrap();
            let opened = nodes.open_ip(address, &Default::default());
            opened
                .map(|()| nodes)
                .map_err(|error: std::io::Error| error.to_string())
        })),
        local: Some(Box::new(|| {
            let opened = LocalDiscovery::open(LocalOptions {
                port: None,
                ip: Some([127, 0, 0, 1].into()),
            });
            opened.map_err(|error| error.to_string())
        })),
    }
}

impl Api {
    async fn start() -> Self {
        let token = Token::random().unwrap();
        let owner = Arc::new(OwnerAlone::new(token.hash()));
        Self::start_for(token, owner).await
    }

    /// The same for these callers, of which one has this token.
    async fn start_for(token: Token, callers: Arc<dyn Callers>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (state, records, _) = StateFolder::open(&dir.path().join("state")).unwrap();
        let trackers = TrackerClient::new(ClientOptions::default()).unwrap();
        let engine = Engine::new(Network::ip(), PeerFinder::default().with_trackers(trackers))
            .with_exchange(false)
            .with_openers(openers());
        let stop = CancellationToken::new();
        let downloads = dir.path().join("downloads");
        let bounds = Bounds::default();
        let (client, task) =
            Client::start(engine, state, records, bounds, &downloads, stop.clone());
        // Trackers alone of the ways to find peers.
        let addresses = PeerAddresses::default();
        let daemon = Daemon::for_callers(client.clone(), addresses, callers, stop.clone()).unwrap();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(listener.serve(daemon));
        Self {
            address,
            token,
            stop,
            task,
            serving,
            client,
            dir,
        }
    }

    /// Waits until no torrent is there, ends the daemon, and returns its folder; nothing may be kept there.
    async fn end_empty(self) -> TempDir {
        let mut changes = self.client.changes();
        while !self
            .client
            .views()
            .await
            .is_ok_and(|views| views.is_empty())
        {
            changes.changed().await.unwrap();
        }
        self.stop.cancel();
        self.task.await.unwrap();
        self.serving.abort();
        self.serving.await.unwrap_err();
        drop(self.client);
        let (_, kept, _) = StateFolder::open(&self.dir.path().join("state")).unwrap();
        assert_eq!(kept, []);
        self.dir
    }

    /// The status, head and body of the answer to a request with these lines of head.
    async fn ask(&self, first: &str, head: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{first} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n{head}\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let kind = head
            .lines()
            .find_map(|line| line.strip_prefix("content-type: "));
        let (method, path) = first.split_once(' ').unwrap();
        let answered = Answered {
            method,
            path: path.split('?').next().unwrap(),
            status,
            content_type: kind,
            body: body.as_bytes(),
        };
        let described = Description::read(&TEXT).check(&answered);
        described.unwrap_or_else(|error| panic!("{first}: {error}: {answer}"));
        (status, head.to_owned(), body.to_owned())
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token.reveal())
    }

    /// The status and JSON of the answer to a request with the token.
    async fn json(&self, first: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (status, _, body) = self.ask(first, &self.bearer(), &body).await;
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    async fn rpc(&self, id: &str, body: &Value) -> (u16, String, String) {
        let basic = BASE64.encode(format!("any:{}", self.token.reveal()).as_bytes());
        let head = format!("Authorization: Basic {basic}\r\nX-Transmission-Session-Id: {id}\r\n");
        self.ask("POST /transmission/rpc", &head, &body.to_string())
            .await
    }
}

/// A torrent of a file: its bytes and its info-hash.
fn torrent(dir: &Path) -> (Vec<u8>, String) {
    let path = dir.join("content");
    std::fs::write(&path, [7; 50_000]).unwrap();
    let bytes = create(&path, &CreateOptions::default(), |_, _| {}).unwrap();
    let hash = Metainfo::parse(&bytes).unwrap().info_hash.to_string();
    (bytes, hash)
}

#[tokio::test(flavor = "multi_thread")]
async fn torrents_are_added_shown_changed_and_removed() {
    let api = Api::start().await;
    let (bytes, hash) = torrent(api.dir.path());
    let add = json!({"metainfo": BASE64.encode(&bytes), "stopped": true, "labels": ["a"]});
    let (status, added) = api.json("POST /api/v1/torrents", &add).await;
    assert_eq!(
        (status, &added["info_hash"], &added["status"]),
        (201, &json!(hash), &json!("stopped"))
    );
    assert_eq!(api.json("POST /api/v1/torrents", &add).await.0, 200);
    let (_, list) = api.json("GET /api/v1/torrents", &Value::Null).await;
    assert_eq!(list["torrents"], json!([added]));
    let one = format!("/api/v1/torrents/{hash}");
    let (_, detail) = api.json(&format!("GET {one}"), &Value::Null).await;
    assert_eq!(
        detail["files"],
        json!([{"path": "content", "bytes": 50_000, "index": 0, "wanted": true, "priority": "normal",
            "verified_bytes": null}])
    );

    let change = json!({"labels": ["b"], "ratio": 1.5, "seconds": "unlimited", "position": 0});
    let (status, changed) = api.json(&format!("PATCH {one}"), &change).await;
    assert_eq!((status, &changed["labels"]), (200, &json!(["b"])));
    assert_eq!(
        changed["limits"],
        json!({"ratio": 1.5, "seconds": "unlimited", "idle_seconds": "default", "download_rate": "unlimited",
            "upload_rate": "unlimited", "group": null, "exempt": false, "priority": "normal", "max_peers": "default"})
    );
    let (_, about) = api.json("GET /api/v1/daemon", &Value::Null).await;
    assert_eq!(about["torrents"], 1);
    let (_, _, metrics) = api.ask("GET /metrics", "", "").await;
    assert!(
        metrics.contains("hawser_daemon_torrents{status=\"stopped\"} 1"),
        "{metrics}"
    );

    let (status, settled) = api.json(&format!("GET {one}/settled"), &Value::Null).await;
    assert_eq!((status, &settled["status"]), (200, &json!("stopped")));

    // Content that is there is found.
    std::fs::create_dir(api.dir.path().join("downloads")).unwrap();
    std::fs::copy(
        api.dir.path().join("content"),
        api.dir.path().join("downloads/content"),
    )
    .unwrap();
    for action in ["verify", "start", "stop"] {
        assert_eq!(
            api.json(&format!("POST {one}/{action}"), &Value::Null)
                .await
                .0,
            200
        );
    }
    let (status, _) = api
        .json(&format!("DELETE {one}?content=true"), &Value::Null)
        .await;
    assert_eq!(status, 204);
    let dir = api.end_empty().await;
    assert!(
        dir.path().join("downloads").exists() && !dir.path().join("downloads/content").exists()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_wrong_say_how() {
    let api = Api::start().await;
    let (bytes, hash) = torrent(api.dir.path());
    let metainfo = BASE64.encode(&bytes);
    api.json(
        "POST /api/v1/torrents",
        &json!({"metainfo": metainfo, "stopped": true}),
    )
    .await;
    let (add, one) = (
        "POST /api/v1/torrents".to_owned(),
        format!("/api/v1/torrents/{hash}"),
    );
    let other = "/api/v1/torrents/0123456789abcdef0123456789abcdef01234567";
    let change = format!("PATCH {one}");
    for (first, body, expected, text) in [
        (&add, json!({}), 400, "one of metainfo, magnet and url"),
        (&add, json!({"metainfo": "?"}), 400, "base64"),
        (&add, json!({"metainfo": "ZGU="}), 400, ""),
        (&add, json!({"magnet": "http://a/"}), 400, "magnet"),
        (
            &add,
            json!({"magnet": format!("magnet:?xt=urn:btih:{}", "1".repeat(40)), "peers": ["x"]}),
            400,
            "peers",
        ),
        (&add, json!({"torrent": "x"}), 400, "torrent"),
        (
            &format!("GET {other}"),
            Value::Null,
            404,
            "there is no torrent",
        ),
        (
            &format!("GET {other}/settled"),
            Value::Null,
            404,
            "there is no torrent",
        ),
        (
            &"GET /api/v1/torrents/x".to_owned(),
            Value::Null,
            404,
            "40 hexadecimal digits",
        ),
        (&change, json!({"ratio": -1}), 400, "not a ratio"),
        (&change, json!({"seconds": -1}), 400, "not a time"),
        (&change, json!({"labels": [""]}), 400, "not a label"),
        (&change, json!({"folder": "x"}), 400, "not absolute"),
        (&change, json!({"download_rate": -1}), 400, "download_rate"),
        (
            &"PATCH /api/v1/daemon".to_owned(),
            json!({"rate": 1}),
            400,
            "rate",
        ),
        (
            &change,
            json!({"upload_rate": "default"}),
            400,
            "upload_rate",
        ),
        (
            &change,
            json!({"files": [{"indices": [1]}]}),
            400,
            "no file with index 1",
        ),
        (
            &format!("DELETE {one}?content=x"),
            Value::Null,
            400,
            "content=true",
        ),
    ] {
        let (status, answer) = api.json(first, &body).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            status == expected && error.contains(text),
            "{first} {body}: {status} {answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_lets_in() {
    let api = Api::start().await;
    let list = "GET /api/v1/torrents";
    for head in [
        "",
        "Authorization: Bearer x\r\n",
        "Authorization: Basic x\r\n",
        "Authorization: Basic YTpi\r\n",
    ] {
        assert_eq!(api.ask(list, head, "").await.0, 401, "{head}");
        assert_eq!(
            api.ask("POST /transmission/rpc", head, "{}").await.0,
            401,
            "{head}"
        );
    }
    let (_, asked, _) = api.ask("POST /transmission/rpc/", "", "{}").await;
    assert!(asked.contains("www-authenticate: Basic"), "{asked}");
    let page = format!("{}Origin: http://a.example\r\n", api.bearer());
    assert_eq!(api.ask(list, &page, "").await.0, 403);
    assert_eq!(api.ask(list, &api.bearer(), "").await.0, 200);
    assert_eq!(api.ask("GET /api/v1/openapi.json", "", "").await.0, 200);
}
