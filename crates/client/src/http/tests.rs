//! The API on loopback, request by request, compared with its description.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use data_encoding::BASE64;
use hawser_discovery::{Client as TrackerClient, ClientOptions, PeerFinder};
use hawser_fuzz::{Answered, Description};
use hawser_torrent::{CreateOptions, Metainfo, Network, create};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::engine::Engine;
use crate::state::{StateError, StateFolder};
use crate::torrents::Bounds;

mod front_ends;
mod look;
mod queue;
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
        let engine = Engine::new(Network::ip(), PeerFinder::default().with_trackers(trackers));
        let stop = CancellationToken::new();
        let downloads = dir.path().join("downloads");
        let bounds = Bounds::default();
        let (client, task) =
            Client::start(engine, state, records, bounds, &downloads, stop.clone());
        // Only the own network of the ways to find peers.
        let addresses = PeerAddresses {
            local: true,
            ..PeerAddresses::default()
        };
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
        let kept = loop {
            match StateFolder::open(&self.dir.path().join("state")) {
                // Connections that were aborted drop it later.
                Err(StateError::InUse(_)) => tokio::task::yield_now().await,
                opened => break opened.unwrap().1,
            }
        };
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

#[tokio::test(flavor = "multi_thread")]
async fn transmissions_rpc_is_answered() {
    let api = Api::start().await;
    let (bytes, hash) = torrent(api.dir.path());
    let add = json!({"method": "torrent-add", "arguments": {
        "metainfo": BASE64.encode(&bytes), "paused": true, "labels": ["x"]}});
    let (status, head, _) = api.rpc("", &add).await;
    assert_eq!(status, 409);
    let id = head
        .lines()
        .find_map(|line| line.strip_prefix("x-transmission-session-id: "))
        .unwrap();
    let call = async |body: Value| {
        let (status, _, body) = api.rpc(id, &body).await;
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let added = call(add).await;
    assert_eq!(
        added["arguments"]["torrent-added"]["hashString"],
        json!(hash)
    );
    let fields = [
        "id",
        "name",
        "status",
        "labels",
        "sizeWhenDone",
        "files",
        "trackers",
        "peers",
        "magnetLink",
    ];
    let get = json!({"method": "torrent-get", "arguments": {"fields": fields}});
    let torrents = call(get.clone()).await["arguments"]["torrents"].clone();
    assert_eq!(torrents[0]["name"], "content");
    assert_eq!(
        (&torrents[0]["sizeWhenDone"], &torrents[0]["status"]),
        (&json!(50_000), &json!(0))
    );
    let limited = json!({"method": "torrent-set",
        "arguments": {"ids": [1], "downloadLimit": 50, "downloadLimited": true}});
    assert_eq!(call(limited).await["result"], "success");
    let fields = ["downloadLimit", "downloadLimited", "uploadLimited"];
    let get_limits = json!({"method": "torrent-get", "arguments": {"fields": fields}});
    assert_eq!(
        call(get_limits).await["arguments"]["torrents"][0],
        json!({"downloadLimit": 50, "downloadLimited": true, "uploadLimited": false})
    );
    let one = format!("/api/v1/torrents/{hash}");
    let shown = api.json(&format!("GET {one}"), &Value::Null).await.1;
    assert_eq!(shown["torrent"]["limits"]["download_rate"], 400_000);
    let rates = json!({"download_rate": "unlimited", "upload_rate": 16_000});
    let (_, changed) = api.json(&format!("PATCH {one}"), &rates).await;
    assert_eq!(
        (
            &changed["limits"]["download_rate"],
            &changed["limits"]["upload_rate"]
        ),
        (&json!("unlimited"), &json!(16_000))
    );
    let chosen = json!({"ids": [1], "files-unwanted": [0], "priority-high": [0, 9],
        "sequential_download": true});
    let chosen = json!({"method": "torrent-set", "arguments": chosen});
    assert_eq!(call(chosen).await["result"], "success");
    let get_files = json!({"method": "torrent-get",
        "arguments": {"fields": ["wanted", "priorities", "fileStats", "leftUntilDone"]}});
    let shown = call(get_files).await["arguments"]["torrents"][0].clone();
    assert_eq!(shown["fileStats"][0]["wanted"], false, "{shown}");
    assert_eq!(
        (&shown["priorities"], &shown["leftUntilDone"]),
        (&json!([1]), &json!(0))
    );
    let detail = api.json(&format!("GET {one}"), &Value::Null).await.1;
    let file = &detail["files"][0];
    assert_eq!(
        (&file["wanted"], &file["priority"]),
        (&json!(false), &json!("high"))
    );
    let wanted = json!({"files": [{"wanted": true}, {"indices": [0], "priority": "low"}],
        "sequential": false});
    assert_eq!(api.json(&format!("PATCH {one}"), &wanted).await.0, 200);
    let detail = api.json(&format!("GET {one}"), &Value::Null).await.1;
    let file = &detail["files"][0];
    assert_eq!(
        (&file["wanted"], &file["priority"]),
        (&json!(true), &json!("low"))
    );
    let all = json!({"speed-limit-up": 20, "speed-limit-up-enabled": true});
    let set = json!({"method": "session-set", "arguments": all});
    assert_eq!(call(set).await["result"], "success");
    let session = call(json!({"method": "session-get"})).await["arguments"].clone();
    assert_eq!(
        (
            &session["speed-limit-up"],
            &session["speed-limit-up-enabled"]
        ),
        (&json!(20), &json!(true))
    );
    let all_rates = api.client.bounds().await.unwrap().all.rates;
    assert_eq!(all_rates.upload.in_force(), Some(160_000));
    let slow = json!({"alt-speed-down": 7, "alt-speed-enabled": true, "alt-speed-time-begin": 60,
        "alt-speed-time-day": 65});
    let set = json!({"jsonrpc": "2.0", "id": 1, "method": "session_set", "params":
        {"alt_speed_up": 8}});
    assert_eq!(
        call(json!({"method": "session-set", "arguments": slow})).await["result"],
        "success"
    );
    assert!(call(set).await["error"].is_null());
    let session = call(json!({"method": "session-get"})).await["arguments"].clone();
    for (name, value) in [
        ("alt-speed-down", json!(7)),
        ("alt-speed-up", json!(8)),
        ("alt-speed-enabled", json!(true)),
        ("alt-speed-time-enabled", json!(false)),
        ("alt-speed-time-begin", json!(60)),
        ("alt-speed-time-end", json!(1020)),
        ("alt-speed-time-day", json!(65)),
    ] {
        assert_eq!(session[name], value, "{name}");
    }
    let wrong = json!({"alternative": {"schedule": {"end": 1440}}});
    assert_eq!(api.json("PATCH /api/v1/daemon", &wrong).await.0, 400);
    let usual = json!({"alternative": {"active": false, "schedule": {"days": ["monday"]}}});
    let (_, about) = api.json("PATCH /api/v1/daemon", &usual).await;
    assert_eq!(
        about["alternative"],
        json!({"active": false, "download_rate": 56_000, "upload_rate": 64_000,
            "schedule": {"enabled": false, "begin": 60, "end": 1020, "days": ["monday"]}})
    );
    let rates = json!({"download_rate": 8_000, "upload_rate": "unlimited"});
    let (status, about) = api.json("PATCH /api/v1/daemon", &rates).await;
    assert_eq!(
        (status, &about["download_rate"], &about["upload_rate"]),
        (200, &json!(8_000), &json!("unlimited"))
    );
    let all_rates = api.client.bounds().await.unwrap().all.rates;
    assert_eq!(all_rates.download.in_force(), Some(8_000));
    let group = json!({"name": "slow", "speed-limit-down": 6, "speed-limit-down-enabled": true});
    for (method, arguments) in [
        ("group-set", group),
        (
            "group-set",
            json!({"name": "slow", "honorsSessionLimits": false}),
        ),
        (
            "torrent-set",
            json!({"ids": [1], "group": "slow", "honorsSessionLimits": false}),
        ),
    ] {
        let set = json!({"method": method, "arguments": arguments});
        assert_eq!(call(set).await["result"], "success");
    }
    let groups = call(json!({"method": "group-get", "arguments": {"group": ["slow"]}})).await;
    assert_eq!(
        groups["arguments"]["group"],
        json!([{"name": "slow", "honorsSessionLimits": false, "speed-limit-down": 6,
            "speed-limit-down-enabled": true, "speed-limit-up": 100, "speed-limit-up-enabled": false}])
    );
    let fields = json!({"ids": [1], "fields": ["group", "honorsSessionLimits"]});
    let shown = call(json!({"method": "torrent-get", "arguments": fields})).await;
    assert_eq!(
        shown["arguments"]["torrents"][0],
        json!({"group": "slow", "honorsSessionLimits": false})
    );
    let change =
        json!({"groups": [{"name": "slow", "download_rate": "unlimited", "exempt": false}]});
    let (status, about) = api.json("PATCH /api/v1/daemon", &change).await;
    assert_eq!(
        (status, &about["groups"]),
        (
            200,
            &json!([{"name": "slow", "download_rate": "unlimited", "upload_rate": "unlimited",
            "exempt": false}])
        )
    );
    let change = json!({"group": "", "exempt": false});
    assert_eq!(api.json(&format!("PATCH {one}"), &change).await.0, 200);
    let detail = api.json(&format!("GET {one}"), &Value::Null).await.1;
    let limits = &detail["torrent"]["limits"];
    assert_eq!(
        (&limits["group"], &limits["exempt"]),
        (&Value::Null, &json!(false))
    );
    for (method, arguments) in [
        (
            "session-set",
            json!({"peer-limit-global": 60, "peer-limit-per-torrent": 20}),
        ),
        ("torrent-set", json!({"ids": [1], "peer-limit": 7})),
    ] {
        let set = json!({"method": method, "arguments": arguments});
        assert_eq!(call(set).await["result"], "success");
    }
    let session = call(json!({"method": "session-get"})).await["arguments"].clone();
    assert_eq!(
        (
            &session["peer-limit-global"],
            &session["peer-limit-per-torrent"]
        ),
        (&json!(60), &json!(20))
    );
    let fields = json!({"ids": [1], "fields": ["maxConnectedPeers", "peer-limit"]});
    let shown = call(json!({"method": "torrent-get", "arguments": fields.clone()})).await;
    assert_eq!(
        shown["arguments"]["torrents"][0],
        json!({"maxConnectedPeers": 7, "peer-limit": 7})
    );
    let change = json!({"max_peers": "default"});
    assert_eq!(api.json(&format!("PATCH {one}"), &change).await.0, 200);
    let shown = call(json!({"method": "torrent-get", "arguments": fields})).await;
    assert_eq!(shown["arguments"]["torrents"][0]["peer-limit"], 20);
    let change = json!({"max_peers": 50, "max_torrent_peers": 10});
    let (_, about) = api.json("PATCH /api/v1/daemon", &change).await;
    assert_eq!(
        (&about["max_peers"], &about["max_torrent_peers"]),
        (&json!(50), &json!(10))
    );
    let refused = json!({"method": "torrent-set", "arguments": {"ids": [1], "sequential_download_from_piece": 1}});
    let refused = call(refused).await;
    assert!(
        refused["result"]
            .as_str()
            .unwrap()
            .ends_with("is not supported yet"),
        "{refused}"
    );
    for method in ["session-get", "session-stats"] {
        assert_eq!(call(json!({"method": method})).await["result"], "success");
    }
    let folder = api.dir.path().display().to_string();
    let space = call(json!({"method": "free-space", "arguments": {"path": folder}})).await;
    assert_eq!(space["result"], "success");
    let remove = json!({"method": "torrent-remove", "arguments": {"ids": [hash]}});
    assert_eq!(call(remove).await["result"], "success");
    // The numbers of those that were removed are told.
    let mut changes = api.client.changes();
    while !api.client.views().await.unwrap().is_empty() {
        let waited = tokio::time::timeout(PATIENCE, changes.changed()).await;
        waited.expect("it is removed").unwrap();
    }
    let recent =
        json!({"method": "torrent-get", "arguments": {"ids": "recently-active", "fields": ["id"]}});
    assert_eq!(call(recent).await["arguments"]["removed"], json!([1]));
    assert_eq!(
        call(json!({"method": "session-close"})).await["result"],
        "success"
    );
    api.stop.cancelled().await;
    api.task.await.unwrap();
}
