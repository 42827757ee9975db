//! Plain IP beside SCION.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Transfer;
use super::bed::{Bed, CLIENT, MAPPED, SERVER, accept};
use crate::support::eventually;

/// Plain IP between both hosts, over a wire that SCION does not use, at 100 Mbit/s: else it would
/// carry all.
fn wire(bed: &Bed, server: &str) {
    let there = bed.lab.leave_behind(SERVER).to_string();
    let pair = ["type", "veth", "peer", "name", "plain-b", "netns", &there];
    let run = |command: &str, more: &[&str]| {
        let mut words = command.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        let output = command.args(words).args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let rate = "root tbf rate 100mbit burst 64kb latency 50ms";
    bed.client.run(|| {
        run("ip link add plain-a", &pair);
        run("ip address add 192.168.77.1/24 dev plain-a", &[]);
        run("ip link set plain-a up", &[]);
        run(&format!("tc qdisc add dev plain-a {rate}"), &[]);
        // The lab has a route of its own to that address, which follows the links.
        run("ip rule add priority 100 lookup 77 to", &[server]);
        run("ip route add table 77 via 192.168.77.2", &[server]);
    });
    bed.server.run(|| {
        run("ip address add 192.168.77.2/24 dev plain-b", &[]);
        run("ip link set plain-b up", &[]);
        run(&format!("tc qdisc add dev plain-b {rate}"), &[]);
    });
}

/// Sets all links of SCION.
fn links(bed: &Bed, change: &str) {
    for link in 1..=4 {
        bed.lab.set(&format!("{CLIENT}#{link}"), &[change]);
    }
}

/// What delivers: the paths, and plain IP.
fn working(bed: &Bed) -> (Vec<Value>, Vec<Value>) {
    let paths = bed.paths().into_iter();
    let paths = paths.filter(|path| path["state"] == "up");
    paths.partition(|path| path["plain_ip"].is_null())
}

/// Waits until these numbers of lanes over paths and over plain IP work, and returns the latter as they were then:
/// on a loaded machine a lane may be down again a moment later.
fn wait_for(bed: &Bed, what: &str, paths: usize, plain: usize) -> Vec<Value> {
    let mut found = Vec::new();
    eventually(what, || {
        let (over_paths, over_ip) = working(bed);
        let is_it = (over_paths.len(), over_ip.len()) == (paths, plain);
        found = over_ip;
        is_it
    });
    found
}

/// Bytes that the paths have carried.
fn carried(bed: &Bed) -> u64 {
    let (over_paths, _) = working(bed);
    let sent = over_paths
        .iter()
        .map(|path| path["sent_bytes"].as_u64().unwrap());
    sent.sum()
}

#[test]
fn connections_over_plain_ip_outlive_that_their_destination_is_mapped() {
    let Some(bed) = Bed::new("shim-mapped-later") else {
        return;
    };
    let server = bed.serve(&["--expose", "all"]);
    let ip = server.address.split(',').nth(1).unwrap();
    wire(&bed, ip.rsplit_once(':').unwrap().0);
    let _client = bed.use_shim(&server, &[]);
    let (listener, port) = bed.server.listen("0.0.0.0");
    let to = format!("192.168.77.2:{port}");
    let open = bed.client.connect(&to);
    let (open_server, from) = accept(&listener);
    assert_eq!(from.ip().to_string(), "192.168.77.1");
    let exchange = |text: &[u8]| {
        for (mut from, mut to) in [(&open, &open_server), (&open_server, &open)] {
            let mut received = vec![0; text.len()];
            from.write_all(text).unwrap();
            to.read_exact(&mut received).unwrap();
            assert_eq!(received, text);
        }
    };
    exchange(b"before");
    bed.map([("192.168.77.2", server.address.as_str())]);
    eventually("new connections go over SCION", || {
        let _new = bed.client.connect(&to);
        accept(&listener).1.ip() != from.ip()
    });
    exchange(b"while it is mapped");
    // Datagrams go over SCION as well, though there is a route.
    let socket = bed
        .server
        .run(|| UdpSocket::bind("192.168.77.2:0"))
        .unwrap();
    let datagrams = socket.local_addr().unwrap();
    let program = bed.client.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    // Datagrams may be dropped.
    let mut from = None;
    eventually("a datagram arrives", || {
        program.send_to(b"datagram", datagrams).unwrap();
        from = socket.recv_from(&mut [0; 8]).ok();
        from.is_some()
    });
    let (_, from) = from.unwrap();
    assert_ne!(from.ip().to_string(), "192.168.77.1");
    bed.map(MAPPED.map(|ip| (ip, server.address.as_str())));
    eventually("new connections go over plain IP", || {
        let _new = bed.client.connect(&to);
        accept(&listener).1.ip().to_string() == "192.168.77.1"
    });
    exchange(b"afterwards");
}

#[test]
fn plain_ip_carries_on_while_no_path_works() {
    let Some(bed) = Bed::new("shim-plain") else {
        return;
    };
    let serve = |flags: &[&str]| bed.serve(&[&["--expose", "all"], flags].concat());
    // The server's host has one address for both.
    let server = serve(&[]);
    let ip = server.address.split(',').nth(1).unwrap();
    let ip = ip.rsplit_once(':').unwrap().0.to_owned();
    server.kill();
    wire(&bed, &ip);
    let server = serve(&["--plain", &ip]);
    let plain_ip = format!("{ip}:30800");

    // Without the flag plain IP is not used, though it is announced.
    let client = bed.use_shim(&server, &[]);
    Transfer::new(&bed).run(|_| {});
    wait_for(&bed, "all paths are used", 4, 0);
    client.kill();

    let client = bed.use_shim(&server, &["--plain"]);
    let transfer = Transfer::new(&bed);
    let over_ip = wait_for(&bed, "the announced address is used", 4, 1);
    assert_eq!(over_ip[0]["plain_ip"], plain_ip);
    transfer.run(|_| {
        links(&bed, "--down");
        wait_for(&bed, "only plain IP is left", 0, 1);
    });
    // A connection that begins now, and SCION returns while it lasts.
    Transfer::new(&bed).run(|_| {
        links(&bed, "--up");
        wait_for(&bed, "the paths are back", 4, 1);
    });
    let before = carried(&bed);
    // A lane that is replaced meanwhile takes its count with it.
    eventually("SCION carries", || {
        Transfer::new(&bed).run(|_| {});
        carried(&bed) > before + 200_000
    });
    client.kill();

    // The session itself begins over plain IP.
    links(&bed, "--down");
    let client = bed.use_shim(&server, &["--plain"]);
    Transfer::new(&bed).run(|_| {
        let over_ip = wait_for(&bed, "the session begins over plain IP", 0, 1);
        assert_eq!(over_ip[0]["plain_ip"], plain_ip);
        links(&bed, "--up");
        wait_for(&bed, "the paths have joined", 4, 1);
    });
    for isd_as in [CLIENT, SERVER] {
        assert_eq!(bed.failures(isd_as), [""; 0]);
    }
    client.kill();

    // Without the flag there is no way then.
    links(&bed, "--down");
    let _client = bed.use_shim(&server, &[]);
    let stream = bed.client.connect(&format!("{}:7000", MAPPED[0]));
    assert!(std::io::Read::read(&mut &stream, &mut [0]).is_err());
}
