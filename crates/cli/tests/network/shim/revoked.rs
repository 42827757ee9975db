//! Rights that are taken away while connections use them: both sides learn why they end.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::bed::{Bed, CLIENT, MAPPED, MPTCP, SERVER, accept};
use crate::support::eventually;

impl Bed {
    /// Writes a file of keys, in the folder of both shims' configuration.
    fn write_keys(&self, name: &str, text: &str) {
        let folder = self.folder.path().join("hawser");
        fs::create_dir_all(&folder).unwrap();
        let new = folder.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, folder.join(name)).unwrap();
    }

    /// A connection from the client, and the server's end of it.
    fn pair(&self) -> (TcpStream, TcpStream) {
        let (listener, port) = self.server.listen("127.0.0.1");
        let client = self.client.connect(&format!("{}:{port}", MAPPED[0]));
        let (server, _) = accept(&listener);
        (client, server)
    }

    /// Waits until the shim of an AS shows a failure with these words.
    fn wait_for_failure(&self, isd_as: &str, words: &str) {
        let mut failures = Vec::new();
        let shown = || {
            failures = self.failures(isd_as);
            failures.iter().any(|text| text.contains(words))
        };
        let is_shown = catch_unwind(AssertUnwindSafe(|| eventually(words, shown)));
        assert!(is_shown.is_ok(), "{isd_as} shows {failures:?}");
    }
}

/// Both ends must have been reset.
fn assert_reset(mut client: &TcpStream, mut server: &TcpStream, bed: &Bed) {
    let kind = |read: std::io::Result<usize>| read.map_err(|error| error.kind());
    let reset = Err(ErrorKind::ConnectionReset);
    let status = || [CLIENT, SERVER].map(|isd_as| bed.status(isd_as).to_string());
    assert_eq!(kind(client.read(&mut [0])), reset, "{:#?}", status());
    assert_eq!(kind(server.read(&mut [0])), reset, "{:#?}", status());
}

/// Takes the client's key from those that the server allows.
fn revoke(carrier: &str, refusal: &str) {
    let Some(bed) = Bed::new(&format!("shim-revoke-{carrier}")) else {
        return;
    };
    let none = bed.path("none.toml");
    let server = bed.up(SERVER, &["--expose", "all", "--map", &none]);
    let client = bed.use_carrier(&server, &["--carrier", carrier]);
    let own = format!("{} site A\n", client.key);
    bed.write_keys("allowed_keys", &own);
    let (program, service) = bed.pair();

    // Another key is taken away; then this one.
    bed.write_keys("allowed_keys", &format!("# nobody else\n{own}"));
    let (second, other) = bed.pair();
    let began = std::time::Instant::now();
    bed.write_keys("allowed_keys", "# nobody\n");
    assert_reset(&program, &service, &bed);
    println!("{carrier}: revoked after {:?}", began.elapsed());
    assert_reset(&second, &other, &bed);
    bed.wait_for_failure(CLIENT, "no longer");
    bed.wait_for_failure(SERVER, "no longer");
    let to = format!("{}:9", MAPPED[0]);
    let refused = bed.client.connect(&to);
    assert!((&refused).read(&mut [0]).is_err());
    bed.wait_for_failure(CLIENT, refusal);

    // It may come back.
    bed.write_keys("allowed_keys", &own);
    drop(bed.pair());
}

#[test]
fn connections_by_mptcp_end_with_the_key() {
    revoke("mptcp", "is not allowed here");
}

#[test]
fn connections_by_quic_end_with_the_key() {
    revoke("quic", "trusted by the other");
}

#[test]
fn connections_end_with_what_else_they_need() {
    let Some(bed) = Bed::new("shim-revoke-others") else {
        return;
    };
    // The key of the server.
    let server = bed.serve(&["--expose", "all"]);
    let known = format!("{} {}\n", server.address, server.key);
    bed.write_keys("known_hosts", &known);
    let map = bed.map(MAPPED.map(|ip| (ip, server.address.as_str())));
    let _client = bed.up(CLIENT, &[&MPTCP[..], &["--map", &map]].concat());
    let (program, service) = bed.pair();
    bed.write_keys("known_hosts", "");
    assert_reset(&program, &service, &bed);
    bed.wait_for_failure(CLIENT, "is no longer trusted here");
    bed.write_keys("known_hosts", &known);

    // What is served.
    let (program, service) = bed.pair();
    server.kill();
    let _server = bed.serve(&["--expose", "9"]);
    assert_reset(&program, &service, &bed);
    bed.wait_for_failure(SERVER, "is no longer served here");
}

#[test]
fn open_sessions_follow_their_policy() {
    let Some(bed) = Bed::new("shim-policy") else {
        return;
    };
    let server = bed.serve(&["--expose", "all"]);
    let policy = |acl: &str| {
        let new = bed.path("p.new");
        fs::write(&new, format!("all: {{acl: [{acl}]}}\n")).unwrap();
        fs::rename(new, bed.path("p.yml")).unwrap();
    };
    policy("'+'");
    let map = bed.path("map.toml");
    let entry = format!("{{ to = {:?}, policy = \"p.yml:all\" }}", server.address);
    fs::write(&map, format!("[destinations]\n{:?} = {entry}\n", MAPPED[0])).unwrap();
    let flags = ["--map", &map, "--server-key", &server.key, "--paths", "4"];
    let _client = bed.up(CLIENT, &flags);
    let _pair = bed.pair();
    bed.wait_for_paths(4);
    policy("'- 1-ff00:0:110#2', '+'");
    bed.wait_for_paths(3);
    policy("'+'");
    bed.wait_for_paths(4);
}
