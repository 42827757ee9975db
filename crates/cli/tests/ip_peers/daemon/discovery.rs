//! Peers that the daemon finds by itself. No node of the DHT but those of the tests is ever asked.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::dht::{NOBODY, Router};

/// A daemon with a state and downloads of its own.
struct Host<'a> {
    files: &'a Files,
    name: &'a str,
    daemon: Running,
    /// What it printed when it was ready.
    ready: String,
}

impl<'a> Host<'a> {
    fn start(files: &'a Files, name: &'a str, flags: &[&str]) -> Self {
        let (state, downloads) = (files.name(&format!("{name}-state")), files.name(name));
        let args = ["daemon", "--state", &state, "--download-dir", &downloads];
        let more = ["--listen", "127.0.0.1:0", "--tcp", "127.0.0.1:0"];
        let args = [&args[..], &more, &["--no-scion"], flags].concat();
        let mut daemon = Running::start(&args);
        let mut ready = String::new();
        while !ready.contains("API at ") {
            let length = daemon.stdout.read_line(&mut ready).unwrap();
            assert!(length > 0, "{ready}{}", daemon.log());
        }
        Self {
            files,
            name,
            daemon,
            ready,
        }
    }

    /// The address at which its peers connect.
    fn listens(&self) -> &str {
        let at = self.ready.split_once("to IP peers at ");
        at.unwrap().1.lines().next().unwrap()
    }

    /// Switches a way to find peers on or off.
    fn switch(&self, way: &str, is_on: bool) {
        let api = self.ready.split_once("API at http://").unwrap().1;
        let api = api.lines().next().unwrap();
        let token = self.files.path(&format!("{}-state/token", self.name));
        let token = fs::read_to_string(token).unwrap();
        let body = serde_json::json!({"network": {way: is_on}}).to_string();
        let mut stream = TcpStream::connect(api).unwrap();
        write!(
            stream,
            "PATCH /api/v1/daemon HTTP/1.0\r\nHost: {api}\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len(),
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some("200"), "{answer}");
    }

    fn object(&self, args: &[&str]) -> Value {
        let state = self.files.name(&format!("{}-state", self.name));
        let args = [&["torrent"], args, &["--state", &state, "--json"]].concat();
        let output = command(&args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Adds a torrent or a link, and waits until it is complete in a folder.
    fn fetch(&self, what: &str, folder: &str) {
        let into = self.files.name(folder);
        let added = self.object(&["add", what, "-o", &into]);
        let settled = self.object(&["wait", text(&added, "info_hash")]);
        assert_eq!(settled["status"], "seeding", "{settled}");
        assert!(self.files.same(folder));
    }

    /// Adds a torrent whose content is in a folder already.
    fn seed(&self, torrent: &str, folder: &str) {
        fs::create_dir(self.files.path(folder)).unwrap();
        let to = self.files.path(folder).join("data");
        fs::copy(self.files.path("data"), to).unwrap();
        self.fetch(torrent, folder);
    }

    fn end(mut self) {
        self.daemon.signal("TERM");
        assert_eq!(self.daemon.code(), Some(0));
        assert_eq!(self.daemon.log(), "");
    }
}

/// What `torrent show` says of a torrent.
fn show(torrent: &str) -> Value {
    let show = command(&["torrent", "show", torrent, "--json"]).output();
    serde_json::from_slice(&show.unwrap().stdout).unwrap()
}

#[test]
fn daemons_and_a_download_find_each_other_by_the_dht_alone() {
    if !no_scion_here() {
        return;
    }
    let (files, router) = (Files::new(), Router::start());
    let torrent = files.name("data.torrent");
    let shown = show(&torrent);
    let flags = ["--find", "dht", "--dht-node", router.node()];
    let first = Host::start(&files, "first", &flags);
    assert!(first.ready.contains("nodes of the DHT at 127.0.0.1:"));
    first.seed(&torrent, "seeded");
    router.await_peer(&shown, first.listens());
    // By a link, which names neither peers nor trackers.
    let second = Host::start(&files, "second", &flags);
    second.fetch(&finding::link(&files, &[]), "fetched");
    router.await_peer(&shown, second.listens());
    let left = second.listens().to_owned();
    first.end();
    let mut third = files.get("third", &flags);
    assert_eq!(peers(&third.json()), [left]);
    third.end();
    assert!(files.same("third"));
    // With the nodes of the last run alone, and what it has on disk.
    second.end();
    assert!(files.path("second-state/dht/ipv4").exists());
    let again = Host::start(&files, "second", &["--dht-node", NOBODY]);
    router.await_peer(&shown, again.listens());
    again.end();
}

#[test]
fn daemons_and_a_download_find_each_other_on_the_own_network_alone() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    // Another torrent than that of other tests, which are on the same network.
    fs::write(files.path("data"), vec![23; 400_000]).unwrap();
    let (content, torrent) = (files.name("data"), files.name("data.torrent"));
    let create = ["torrent", "create", &content, "-o", &torrent, "--force"];
    assert!(command(&create).output().unwrap().status.success());
    let local = ["--find", "local"];
    let first = Host::start(&files, "first", &local);
    first.seed(&torrent, "seeded");
    // It cannot have heard the announcement of the first, and announces itself.
    let second = Host::start(&files, "second", &local);
    second.fetch(&torrent, "fetched");
    let mut third = files.get("third", &[&local[..], &["--tcp", "127.0.0.1:0"]].concat());
    third.listens();
    assert_eq!(third.json()["fetched_bytes"], 400_000);
    third.end();
    assert!(files.same("third"));
    first.end();
    second.end();
}

#[test]
fn a_private_torrent_is_not_announced_by_a_daemon() {
    if !no_scion_here() {
        return;
    }
    let (files, router) = (Files::new(), Router::start());
    let (content, private) = (files.name("data"), files.name("private.torrent"));
    let create = ["torrent", "create", &content, "-o", &private, "--private"];
    assert!(command(&create).output().unwrap().status.success());
    let public = files.name("data.torrent");
    let host = Host::start(&files, "host", &["--dht-node", router.node()]);
    host.seed(&private, "private");
    // The other one begins later, and where it is announced the first would be, too.
    host.seed(&public, "public");
    router.await_peer(&show(&public), host.listens());
    assert!(!router.has_peer(&show(&private), host.listens()));
    host.end();
}

#[test]
fn ways_that_exclude_each_other_are_wrong_use_of_a_daemon() {
    let refused = |flags: &[&str]| {
        let output = command(&[&["daemon"], flags].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--find", "none,dht"]).contains("none excludes"));
}

#[test]
fn a_daemon_finds_peers_by_ways_that_are_switched_on_while_it_runs() {
    if !no_scion_here() {
        return;
    }
    let (files, router) = (Files::new(), Router::start());
    fs::write(files.path("data"), vec![29; 400_000]).unwrap();
    let (content, torrent) = (files.name("data"), files.name("data.torrent"));
    let create = ["torrent", "create", &content, "-o", &torrent, "--force"];
    assert!(command(&create).output().unwrap().status.success());
    let flags = |ways| match ways {
        // It does without.
        "local" => vec!["--find", ways],
        _ => vec!["--find", ways, "--dht-node", router.node()],
    };
    for way in ["dht", "local"] {
        let seeder = Host::start(&files, way, &flags(way));
        seeder.seed(&torrent, &format!("{way}-seeded"));
        let state = format!("{way}-fetcher");
        let fetcher = Host::start(&files, &state, &flags("none"));
        assert!(!fetcher.ready.contains("nodes of the DHT"));
        let folder = files.name(&format!("{way}-fetched"));
        let added = fetcher.object(&["add", &torrent, "-o", &folder]);
        fetcher.switch(way, true);
        let settled = fetcher.object(&["wait", text(&added, "info_hash")]);
        assert_eq!(settled["status"], "seeding", "{settled}");
        assert!(files.same(&format!("{way}-fetched")));
        if way == "dht" {
            router.await_peer(&show(&torrent), fetcher.listens());
        }
        fetcher.end();
        // What is switched on is kept.
        let again = Host::start(&files, &state, &flags("none"));
        let has_nodes = again.ready.contains("nodes of the DHT");
        assert_eq!(has_nodes, way == "dht");
        again.end();
        seeder.end();
    }
}
