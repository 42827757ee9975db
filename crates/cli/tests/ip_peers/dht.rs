//! Peers found by the DHT, over the loopback. No node but those of the tests is ever asked: each command
//! has `--dht-node`, or a torrent that names nodes and no `--find dht`.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

use super::finding::link;
use super::*;

/// A UDP port at which nobody answers.
pub(super) const NOBODY: &str = "127.0.0.1:1";

/// A command with a folder for its state.
fn start(files: &Files, state: &str, args: &[&str]) -> Running {
    let mut command = command(args);
    command.env("XDG_STATE_HOME", files.name(state));
    Running::spawn(&mut command).unwrap()
}

/// Starts a seeder for IP peers with these flags; returns it with the JSON that it prints first.
fn seed(files: &Files, state: &str, more: &[&str]) -> (Running, Value) {
    let (torrent, content) = (files.name("data.torrent"), files.name("data"));
    let args = ["seed", &torrent, &content, "--json", "--no-scion"];
    let at = ["--tcp", "127.0.0.1:0"];
    let mut seeder = start(files, state, &[&args[..], &at, more].concat());
    let ready = seeder.json();
    (seeder, ready)
}

/// Starts a download into the folder `into`, which also names the folder for its state.
fn get(files: &Files, what: &str, into: &str, more: &[&str]) -> Running {
    let folder = files.name(into);
    let args = ["get", what, "-o", &folder, "--json"];
    start(files, &format!("{into}-state"), &[&args[..], more].concat())
}

/// The address of the only node of the DHT that a seeder reports.
fn node(ready: &Value) -> String {
    let nodes = ready["dht"].as_array();
    let nodes = nodes.unwrap_or_else(|| panic!("no node: {ready}"));
    let [node] = &nodes[..] else {
        panic!("one node, since it listens at one address: {ready}")
    };
    node.as_str().unwrap().to_owned()
}

/// A node that knows no other one, of a seeder of another torrent.
pub(super) struct Router {
    _files: Files,
    _seeder: Running,
    node: String,
}

impl Router {
    pub(super) fn start() -> Self {
        let files = Files::new();
        fs::write(files.path("data"), vec![3; 100_000]).unwrap();
        let (content, torrent) = (files.name("data"), files.name("data.torrent"));
        let create = ["torrent", "create", &content, "-o", &torrent, "--force"];
        assert!(command(&create).output().unwrap().status.success());
        let (seeder, ready) = seed(&files, "state", &["--dht-node", NOBODY]);
        Self {
            _files: files,
            _seeder: seeder,
            node: node(&ready),
        }
    }

    /// Its address.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Waits until the peer that listens at `peer` is announced here for the torrent of `ready`.
    pub(super) fn await_peer(&self, ready: &Value, peer: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_peer(ready, peer) {
            assert!(Instant::now() < deadline, "{peer} is not announced");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether the peer that listens at `peer` is announced here for the torrent of `ready`.
    pub(super) fn has_peer(&self, ready: &Value, peer: &str) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(&self.node).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let query = get_peers(text(ready, "info_hash"));
        let peer: SocketAddrV4 = peer.parse().unwrap();
        let mut compact = b"6:".to_vec();
        compact.extend(peer.ip().octets());
        compact.extend(peer.port().to_be_bytes());
        let mut answer = [0; 2048];
        let deadline = Instant::now() + PATIENCE;
        loop {
            socket.send(&query).unwrap();
            if let Ok(length) = socket.recv(&mut answer) {
                let mut windows = answer[..length].windows(compact.len());
                return windows.any(|it| it == compact);
            }
            assert!(Instant::now() < deadline, "the node does not answer");
        }
    }
}

/// A query for the peers of a torrent (BEP 5), of a node that answers none itself (BEP 43).
fn get_peers(info_hash: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&info_hash[at..at + 2], 16).unwrap();
    let hash: Vec<u8> = (0..40).step_by(2).map(byte).collect();
    let id = b"d1:ad2:id20:aaaaaaaaaaaaaaaaaaaa9:info_hash20:";
    let rest = b"e1:q9:get_peers2:roi1e1:t2:aa1:y1:qe";
    [&id[..], &hash, rest].concat()
}

#[test]
fn a_seeder_is_found_by_the_dht_alone_and_nodes_are_known_in_the_next_run() {
    if !no_scion_here() {
        return;
    }
    let (files, router) = (Files::new(), Router::start());
    let by_router = ["--dht-node", &router.node];
    let (mut seeder, ready) = seed(&files, "seeder", &by_router);
    let address = text(&ready, "listening_tcp");
    router.await_peer(&ready, address);
    let (torrent, link) = (files.name("data.torrent"), link(&files, &[]));
    for (what, into) in [(&torrent, "by-file"), (&link, "by-link")] {
        let mut leecher = get(&files, what, into, &by_router);
        assert_eq!(peers(&leecher.json()), [address]);
        leecher.end();
        assert!(files.same(into));
    }
    // With the nodes of the last run alone.
    fs::remove_dir_all(files.path("by-file")).unwrap();
    let mut again = get(&files, &torrent, "by-file", &["--dht-node", NOBODY]);
    assert_eq!(peers(&again.json()), [address]);
    again.end();
    seeder.signal("TERM");
    assert_eq!(seeder.code(), Some(0));
    assert_eq!(seeder.log(), "");
}

/// Writes the torrent again, with a node (BEP 5) in it.
fn name_node(files: &Files, node: &str) {
    let (host, port) = node.rsplit_once(':').unwrap();
    let path = files.path("data.torrent");
    let mut torrent = fs::read(&path).unwrap();
    // The last key is `info`, and `nodes` follows.
    torrent.pop();
    torrent.extend(format!("5:nodesll{}:{host}i{port}eeee", host.len()).bytes());
    fs::write(path, torrent).unwrap();
}

#[test]
fn nodes_that_a_torrent_names_are_asked_unless_it_is_private() {
    if !no_scion_here() {
        return;
    }
    let (files, router) = (Files::new(), Router::start());
    name_node(&files, &router.node);
    let (_seeder, ready) = seed(&files, "seeder", &[]);
    let address = text(&ready, "listening_tcp");
    router.await_peer(&ready, address);
    let torrent = files.name("data.torrent");
    let mut leecher = get(&files, &torrent, "got", &[]);
    assert_eq!(peers(&leecher.json()), [address]);
    leecher.end();
    let show = command(&["torrent", "show", &torrent, "--json"]).output();
    let shown: Value = serde_json::from_slice(&show.unwrap().stdout).unwrap();
    let port: u16 = router.node.rsplit_once(':').unwrap().1.parse().unwrap();
    let node = serde_json::json!({"host": "127.0.0.1", "port": port});
    assert_eq!(shown["nodes"], serde_json::json!([node]));

    let content = files.name("data");
    let create = ["torrent", "create", &content, "-o", &torrent];
    let create = [&create[..], &["--force", "--private"]].concat();
    assert!(command(&create).output().unwrap().status.success());
    name_node(&files, &router.node);
    let (_private, ready) = seed(&files, "private", &[]);
    assert_eq!(ready.get("dht"), None, "{ready}");
    for more in [["--find", "dht"], ["--dht-node", &router.node]] {
        let mut refused = get(&files, &torrent, "private", &more);
        assert_eq!(refused.code(), Some(2));
        let log = refused.log();
        assert!(log.contains("BEP 27") && log.contains(more[0]), "{log}");
    }
}

#[test]
fn a_private_torrent_named_by_a_link_is_left_when_that_is_known() {
    if !no_scion_here() {
        return;
    }
    let (files, router) = (Files::new(), Router::start());
    let (torrent, content) = (files.name("data.torrent"), files.name("data"));
    let create = ["torrent", "create", &content, "-o", &torrent];
    let create = [&create[..], &["--force", "--private"]].concat();
    assert!(command(&create).output().unwrap().status.success());
    let (_seeder, ready) = seed(&files, "seeder", &[]);
    // Announced by another program, which does not obey.
    announce(&router.node, &ready);
    router.await_peer(&ready, text(&ready, "listening_tcp"));
    let link = link(&files, &[]);
    let mut leecher = get(&files, &link, "got", &["--dht-node", &router.node]);
    assert_eq!(leecher.code(), Some(1));
    let log = leecher.log();
    assert!(log.contains("private") && log.contains("BEP 27"), "{log}");
    assert!(!files.path("got").exists());
}

/// Announces the seeder of `ready` to a node, as a peer at this host.
fn announce(node: &str, ready: &Value) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(node).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let query = get_peers(text(ready, "info_hash"));
    socket.send(&query).unwrap();
    let mut answer = [0; 2048];
    let length = socket.recv(&mut answer).unwrap();
    let answer = &answer[..length];
    let key = b"5:token";
    let at = answer.windows(key.len()).position(|it| it == key).unwrap();
    let token = &answer[at + key.len()..];
    let colon = token.iter().position(|byte| *byte == b':').unwrap();
    let length: usize = std::str::from_utf8(&token[..colon])
        .unwrap()
        .parse()
        .unwrap();
    let token = &token[..colon + 1 + length];
    let address: SocketAddr = text(ready, "listening_tcp").parse().unwrap();
    let port = format!("4:porti{}e5:token", address.port());
    let begin = b"d1:ad2:id20:aaaaaaaaaaaaaaaaaaaa9:info_hash20:";
    let hash = &query[begin.len()..begin.len() + 20];
    let rest = b"e1:q13:announce_peer1:t2:aa1:y1:qe";
    let query = [&begin[..], hash, port.as_bytes(), token, rest].concat();
    socket.send(&query).unwrap();
}

#[test]
fn the_node_of_a_connected_peer_leads_to_the_dht() {
    if !no_scion_here() {
        return;
    }
    let (files, router) = (Files::new(), Router::start());
    let (_seeder, ready) = seed(&files, "seeder", &["--dht-node", &router.node]);
    let address = text(&ready, "listening_tcp");
    let torrent = files.name("data.torrent");
    let more = ["--peer", address, "--dht-node", NOBODY, "--seed"];
    let more = [&more[..], &["--tcp", "127.0.0.1:0"]].concat();
    let mut leecher = get(&files, &torrent, "got", &more);
    let listens = leecher.listens();
    leecher.json();
    router.await_peer(&ready, &listens);
}

#[test]
fn a_port_that_is_in_use_is_named_with_the_remedy() {
    let files = Files::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let torrent = files.name("data.torrent");
    let more = ["--dht-node", NOBODY, "--dht-port", &port];
    let more = [&more[..], &["--tcp", "127.0.0.1:0"]].concat();
    let mut download = get(&files, &torrent, "got", &more);
    assert_eq!(download.code(), Some(1));
    let log = download.log();
    assert!(log.contains(&port) && log.contains("--dht-port"), "{log}");
}

#[test]
fn a_node_is_at_the_port_of_its_flag_or_else_at_that_of_tcp() {
    let files = Files::new();
    // Not of those that the kernel gives to others, which bind any port.
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let is_free = |port: &u16| UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    let port = (first..30_000).find(is_free).unwrap().to_string();
    let flag = ["--dht-node", NOBODY, "--dht-port", &port];
    let (_seeder, ready) = seed(&files, "one", &flag);
    assert_eq!(node(&ready), format!("127.0.0.1:{port}"));
    let (_seeder, ready) = seed(&files, "two", &["--dht-node", NOBODY]);
    assert_eq!(node(&ready), text(&ready, "listening_tcp"));
}
