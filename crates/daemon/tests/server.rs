//! A daemon on loopback without a network: what users may do on its one server, and what survives.

#![allow(clippy::unwrap_used)]

#[path = "server/page.rs"]
mod page;

use std::net::SocketAddr;
use std::path::Path;

use hawser_client::http::body::Torrents;
use hawser_client::{
    AlternativeChanges, Bounds, Engine, IncompleteChange, Method, NetworkSettings, PeerAddresses,
    QueueChanges, RateChanges, Remote,
};
use hawser_daemon::{DaemonError, Options, Prepared};
use hawser_discovery::{Client as TrackerClient, ClientOptions, PeerFinder};
use hawser_fuzz::Description;
use hawser_service::{Config, HostNetwork};
use hawser_torrent::Network;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A daemon that runs.
struct Daemon {
    address: SocketAddr,
    remote: Remote,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), DaemonError>>,
}

const CONFIG: &str = "
    key = 'key'
    [transfers]
    running = 1
    [users.alice]
    # `alice`
    token_sha256 = '2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90'
    folders = ['data']
    [users.bob]
    # `bob`
    token_sha256 = '81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9'
    torrents = true
";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/run"), "content").unwrap();
    folder
}

async fn prepare(folder: &Path, config: &str) -> Result<Prepared, DaemonError> {
    let config = Config::parse(&folder.join("daemon.toml"), config).unwrap();
    let torrents = hawser_client::Options {
        state: folder.join("state"),
        default_dir: folder.join("downloads"),
        download_dir: None,
        incomplete: IncompleteChange::default(),
        watch: None,
        bounds: Bounds::default(),
        queue: QueueChanges::default(),
        rates: RateChanges::default(),
        alternative: AlternativeChanges::default(),
        network: NetworkSettings::default(),
    };
    let options = Options {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        config,
        torrents,
    };
    Prepared::open(options).await.map(|(prepared, _)| prepared)
}

async fn start(folder: &Path, config: &str) -> Daemon {
    let prepared = prepare(folder, config).await.unwrap();
    let trackers = TrackerClient::new(ClientOptions::default()).unwrap();
    let engine = Engine::new(Network::ip(), PeerFinder::default().with_trackers(trackers));
    let (address, network) = (
        prepared.addresses().http,
        HostNetwork::none("there is no network"),
    );
    let (events, happened) = unbounded_channel();
    drop(happened);
    let joined = prepared.join(network, events).await.unwrap();
    let (stop, stopped) = oneshot::channel();
    let (ready, is_ready) = oneshot::channel();
    let ready = move || ready.send(()).unwrap();
    let peers = PeerAddresses::default();
    let task = tokio::spawn(joined.run(engine, peers, stopped, ready));
    is_ready.await.unwrap();
    Daemon {
        address,
        remote: Remote::find(&folder.join("state")).unwrap(),
        stop,
        task,
    }
}

impl Daemon {
    /// The status and body of the answer to a request with this token.
    async fn ask(&self, first: &str, token: &str, body: &str) -> (u16, String) {
        let head = match token.is_empty() {
            true => String::new(),
            false => format!("Authorization: Bearer {token}\r\n"),
        };
        let (status, _, body) = self.exchange(first, &head, body).await;
        (status, body)
    }

    /// The status, head and body of the answer to a request with these lines of head.
    async fn exchange(&self, first: &str, head: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{first} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

const SUBMISSION: &str = r#"{"source": "run", "server": "1-ff00:0:111,10.0.2.1:31000"}"#;
const MAGNET: &str = r#"{"magnet": "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567", "stopped": true}"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_for_downloads_is_kept() {
    let folder = folder();
    let daemon = start(folder.path(), CONFIG).await;
    let shown = async |daemon: &Daemon| -> Value {
        let (status, body) = daemon.ask("GET /api/v1/daemon", "bob", "").await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["download_dir"].clone()
    };
    let first = folder.path().join("downloads").display().to_string();
    assert_eq!(shown(&daemon).await, first);
    let other = folder.path().join("others").display().to_string();
    let change = serde_json::json!({"download_dir": other}).to_string();
    let (status, body) = daemon.ask("PATCH /api/v1/daemon", "bob", &change).await;
    assert_eq!(status, 200, "{body}");
    daemon.end().await;
    let daemon = start(folder.path(), CONFIG).await;
    assert_eq!(shown(&daemon).await, other);
    let (status, body) = daemon.ask("POST /api/v1/torrents", "bob", MAGNET).await;
    assert_eq!(status, 201, "{body}");
    let added: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(added["folder"], other, "{added}");
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_do_on_one_server_what_each_may() {
    let folder = folder();
    let daemon = start(folder.path(), CONFIG).await;
    let owner = std::fs::read_to_string(folder.path().join("state/token")).unwrap();
    let owner = owner.trim();
    let (add, submit) = ("POST /api/v1/torrents", "POST /api/v1/transfers");
    for (first, body, token, expected) in [
        (add, MAGNET, "", 401),
        (add, MAGNET, "wrong", 401),
        (add, MAGNET, "alice", 403),
        (add, MAGNET, "bob", 201),
        (add, MAGNET, owner, 200),
        (submit, SUBMISSION, "", 401),
        (submit, SUBMISSION, "wrong", 401),
        (submit, SUBMISSION, "alice", 201),
        (submit, SUBMISSION, "bob", 403),
        ("GET /api/v1/transfers/1", "", "bob", 404),
        ("GET /api/v1/transfers/1", "", owner, 200),
        ("GET /status?id=1", "", "alice", 200),
        ("GET /status?id=1", "", "", 401),
        ("GET /server", "", "alice", 404),
        ("POST /transmission/rpc", "{}", "", 401),
        ("POST /transmission/rpc", "{}", "alice", 403),
        ("POST /transmission/rpc", "{}", "bob", 409),
        ("GET /api/v1/daemon", "", "alice", 403),
        ("GET /", "", "", 200),
        ("GET /metrics", "", "", 200),
        ("GET /nothing", "", owner, 404),
    ] {
        let (status, answer) = daemon.ask(first, token, body).await;
        assert_eq!(status, expected, "{first} by {token:?}: {answer}");
    }
    // What the owner's token lets a daemon write anywhere, it lets it send.
    let source = folder.path().join("data/run").display().to_string();
    let any = SUBMISSION.replace("\"run\"", &format!("{source:?}"));
    assert_eq!(daemon.ask(submit, owner, &any).await.0, 201);
    assert_eq!(
        daemon
            .ask(submit, "alice", &SUBMISSION.replace("run", "/etc/passwd"))
            .await
            .0,
        403
    );

    let (_, metrics) = daemon.ask("GET /metrics", "", "").await;
    for name in [
        "hawser_daemon_torrents{status=\"stopped\"} 1",
        "hawser_service_jobs_submitted_total 2",
    ] {
        assert!(
            metrics.lines().any(|line| line == name),
            "{name}: {metrics}"
        );
    }
    let names = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: Vec<&str> = names.collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a metric is there twice");
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_counted_together() {
    let folder = folder();
    let daemon = start(folder.path(), CONFIG).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(daemon.ask("GET /api/v1/torrents", "wrong", "").await.0);
        statuses.push(daemon.ask("GET /api/v1/transfers", "wrong", "").await.0);
    }
    assert_eq!(statuses[..10], [401; 10]);
    assert_eq!(statuses[10..], [429; 2]);
    assert_eq!(daemon.ask("GET /api/v1/torrents", "bob", "").await.0, 200);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_description_has_all_and_nothing_twice() {
    let folder = folder();
    let daemon = start(folder.path(), CONFIG).await;
    let (status, text) = daemon.ask("GET /api/v1/openapi.json", "", "").await;
    assert_eq!(status, 200);
    let description = Description::read(&text);
    let faults = description.faults();
    assert!(faults.is_empty(), "{faults:#?}");
    let operations = description.operations();
    for path in [
        "/api/v1/torrents",
        "/api/v1/transfers",
        "/submit",
        "/metrics",
        "/api/v1/openapi.json",
    ] {
        assert!(operations.iter().any(|(one, _)| *one == path), "{path}");
    }
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(whole["info"]["title"], "hawser daemon");
    let mut ids = Vec::new();
    for item in whole["paths"].as_object().unwrap().values() {
        let operations = item.as_object().unwrap().values();
        ids.extend(operations.filter_map(|one| one["operationId"].as_str()));
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an operation is named twice");
    // Parts mean the same by the same names.
    let parts = [
        hawser_client::http::description(),
        hawser_service::description(),
    ];
    for part in parts {
        let text = hawser_http::describe::text(&part);
        let part: Value = serde_json::from_str(&text).unwrap();
        for (kind, components) in part["components"].as_object().unwrap() {
            for (name, component) in components.as_object().unwrap() {
                assert_eq!(&whole["components"][kind][name], component, "{kind} {name}");
            }
        }
    }
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn torrents_and_transfers_are_there_at_the_next_start() {
    let folder = folder();
    let daemon = start(folder.path(), CONFIG).await;
    assert_eq!(
        daemon.ask("POST /api/v1/torrents", "bob", MAGNET).await.0,
        201
    );
    assert_eq!(
        daemon
            .ask("POST /api/v1/transfers", "alice", SUBMISSION)
            .await
            .0,
        201
    );
    // The folder is one daemon's at a time.
    let error = prepare(folder.path(), CONFIG).await.err().unwrap();
    assert!(
        error.to_string().contains("in use by another daemon"),
        "{error}"
    );
    daemon.end().await;

    let daemon = start(folder.path(), CONFIG).await;
    let torrents: Torrents = daemon
        .remote
        .ask(Method::GET, "/api/v1/torrents")
        .await
        .unwrap();
    assert_eq!(torrents.torrents.len(), 1);
    let transfers: Value = daemon
        .remote
        .ask(Method::GET, "/api/v1/transfers")
        .await
        .unwrap();
    assert_eq!(transfers["transfers"][0]["source"], "run");
    assert_eq!(transfers["transfers"][0]["user"], "alice");
    daemon.end().await;
    assert!(Remote::find(&folder.path().join("state")).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_token_act_for_one_user_and_never_for_pages() {
    let folder = folder();
    let config = format!("http.anonymous = 'alice'\n{CONFIG}");
    let daemon = start(folder.path(), &config).await;
    assert_eq!(
        daemon.ask("POST /api/v1/transfers", "", SUBMISSION).await.0,
        201
    );
    assert_eq!(daemon.ask("GET /api/v1/torrents", "", "").await.0, 401);
    for path in ["/metrics", "/api/v1/transfers"] {
        let first = format!("GET {path} HTTP/1.1\r\nHost: attacker.example\r\nX: ");
        assert_eq!(daemon.ask(&first, "", "").await.0, 403, "{path}");
    }
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_of_the_page_is_one_for_torrents_and_transfers() {
    let folder = folder();
    let daemon = start(folder.path(), CONFIG).await;
    daemon
        .ask("POST /api/v1/transfers", "alice", SUBMISSION)
        .await;
    let owner = std::fs::read_to_string(folder.path().join("state/token")).unwrap();
    let page = "Origin: http://localhost\r\nX-Hawser-Page: 1\r\n";
    let sign_in = serde_json::json!({ "token": owner.trim() }).to_string();
    let (status, head, _) = daemon
        .exchange("POST /api/v1/session", page, &sign_in)
        .await;
    assert_eq!(status, 200);
    let cookie = head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = format!("Cookie: {}\r\n", cookie.unwrap().split(';').next().unwrap());
    let of_page = format!("{page}{cookie}");
    for path in ["/api/v1/torrents", "/api/v1/transfers/1"] {
        let first = format!("GET {path}");
        assert_eq!(daemon.exchange(&first, &of_page, "").await.0, 200, "{path}");
        let foreign = of_page.replace("localhost", "attacker.example");
        assert_eq!(daemon.exchange(&first, &foreign, "").await.0, 403, "{path}");
    }
    // Without what only the page can send, the cookie counts for nothing that is changed.
    let cancel = "DELETE /api/v1/transfers/1";
    assert_eq!(daemon.exchange(cancel, &cookie, "").await.0, 401);
    assert_eq!(daemon.exchange(cancel, &of_page, "").await.0, 200);
    assert_eq!(
        daemon
            .exchange("DELETE /api/v1/session", &of_page, "")
            .await
            .0,
        204
    );
    let (status, _, _) = daemon
        .exchange("GET /api/v1/transfers/1", &of_page, "")
        .await;
    assert_eq!(status, 401);
    daemon.end().await;
}
