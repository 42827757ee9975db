//! Peers found on the own network, which here is the loopback.

use super::finding::link;
use super::*;

#[test]
fn a_download_that_begins_later_is_dialed_by_the_seeder() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    let (torrent, content) = (files.name("data.torrent"), files.name("data"));
    let local = ["--find", "local", "--tcp", "127.0.0.1:0"];
    let args = ["seed", &torrent, &content, "--json", "--no-scion"];
    let mut seeder = Running::start(&[&args[..], &local].concat());
    seeder.json();
    // It cannot have heard the announcement of the seeder, and announces itself.
    let mut leecher = files.get("got", &local);
    leecher.listens();
    assert_eq!(leecher.json()["fetched_bytes"], SIZE);
    leecher.end();
    assert!(files.same("got"));
    seeder.signal("TERM");
    assert_eq!(seeder.code(), Some(0));
    assert_eq!(seeder.log(), "");
}

#[test]
fn a_download_that_is_there_first_hears_the_seeder() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    // Another torrent than that of other tests, which are on the same network.
    fs::write(files.path("data"), vec![9; 500_000]).unwrap();
    let (torrent, content) = (files.name("data.torrent"), files.name("data"));
    let create = ["torrent", "create", &content, "-o", &torrent, "--force"];
    assert!(command(&create).output().unwrap().status.success());
    let (link, into) = (link(&files, &[]), files.name("got"));
    let local = ["--find", "local", "--tcp", "127.0.0.1:0"];
    // It announces nothing as long as it does not know whether the torrent is private.
    let get = ["get", &link, "-o", &into, "--json"];
    let mut leecher = Running::start(&[&get[..], &local].concat());
    let deadline = Instant::now() + PATIENCE;
    while !leecher.has_udp_port(6771) {
        assert!(Instant::now() < deadline, "it does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let args = ["seed", &torrent, &content, "--json", "--no-scion"];
    let mut seeder = Running::start(&[&args[..], &local].concat());
    seeder.json();
    leecher.listens();
    assert_eq!(leecher.json()["fetched_bytes"], 500_000);
    leecher.end();
    assert!(files.same("got"));
}
