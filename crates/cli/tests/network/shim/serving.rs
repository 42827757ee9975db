//! What servers and programs see of the shim.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::bed::{Bed, CLIENT, MAPPED, SERVER, accept, content, finish, read_all};
use crate::support::eventually;

/// The error of a program that connects to `to`, and the shim's reason.
fn failure(bed: &Bed, to: &str) -> (ErrorKind, String) {
    let failures = || {
        let mut failures = bed.failures(CLIENT);
        failures.retain(|text| text.contains(to));
        failures.pop()
    };
    let stream = bed.client.connect(to);
    let error = (&stream).read(&mut [0]).unwrap_err();
    eventually("the failure is shown", || failures().is_some());
    (error.kind(), failures().unwrap())
}

/// Connects through the shim; returns both ends.
fn meet(bed: &Bed, listener: &TcpListener, ip: &str) -> (TcpStream, TcpStream, SocketAddr) {
    let port = listener.local_addr().unwrap().port();
    let to: SocketAddr = (ip.parse::<std::net::IpAddr>().unwrap(), port).into();
    let client = bed.client.connect(&to.to_string());
    let (server, from) = accept(listener);
    (client, server, from)
}

#[test]
fn servers_and_programs_meet_as_without_a_shim() {
    let Some(bed) = Bed::new("shim-serving") else {
        return;
    };
    let (listener, port) = bed.server.listen("127.0.0.1");
    let other = bed.server.listen("127.0.0.1");
    let only = format!("{port},8080=127.0.0.1:{port}");
    let server = bed.serve(&["--expose", &only]);
    let client = bed.use_shim(&server, &[]);

    for ip in MAPPED {
        // The server speaks first, and the program after it has ended its direction receives still.
        let (client, server, _) = meet(&bed, &listener, ip);
        (&server).write_all(b"220 ready").unwrap();
        let mut greeting = [0; 9];
        (&client).read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"220 ready");
        let (question, answer) = (content(1, 300_000), content(2, 700_000));
        (&client).write_all(&question).unwrap();
        finish(&client);
        assert!(read_all(&server) == question);
        (&server).write_all(&answer).unwrap();
        drop(server);
        assert!(read_all(&client) == answer);

        // The other way round.
        let (client, server, _) = meet(&bed, &listener, ip);
        finish(&server);
        assert_eq!(read_all(&client), b"");
        (&client).write_all(&question).unwrap();
        drop(client);
        assert!(read_all(&server) == question);
    }

    // A server elsewhere; one that closes at once; one that is not served; none.
    let stream = bed.client.connect(&format!("{}:8080", MAPPED[0]));
    let (server_end, _) = accept(&listener);
    drop(server_end);
    assert_eq!(read_all(&stream), b"");
    let (kind, reason) = failure(&bed, &format!("{}:{}", MAPPED[0], other.1));
    assert_eq!(kind, ErrorKind::ConnectionReset);
    assert!(reason.contains("does not serve this port"), "{reason}");
    drop(listener);
    let (kind, reason) = failure(&bed, &format!("{}:{port}", MAPPED[0]));
    assert_eq!(kind, ErrorKind::ConnectionReset);
    assert!(reason.contains("nothing listens on the port"), "{reason}");

    // The map changes. Connections to what is not mapped do not reach the shim.
    let (listener, port) = bed.server.listen("127.0.0.1");
    let to = ["10.99.0.1", "10.98.0.1"].map(|ip| format!("{ip}:{port}"));
    server.kill();
    let server = bed.serve(&["--expose", "all"]);
    let is_mapped = |to: &str| bed.client.run(|| TcpStream::connect(to)).is_ok();
    assert!(is_mapped(&to[0]) && !is_mapped(&to[1]));
    let kept = bed.client.connect(&to[0]);
    let (kept_server, _) = accept_from(&listener, &kept);
    bed.map([("10.98.0.0/16", server.address.as_str())]);
    eventually("the map is followed", || {
        is_mapped(&to[1]) && !is_mapped(&to[0])
    });
    // Connections that exist live on.
    (&kept).write_all(b"still").unwrap();
    finish(&kept);
    assert_eq!(read_all(&kept_server), b"still");
    // A wrong map leaves the former one in force.
    std::fs::write(bed.path("map.toml"), "[destinations]\nx").unwrap();
    assert!(is_mapped(&to[1]));
    drop((server, client));
}

/// Accepts connections until that of `client` is among them.
fn accept_from(listener: &TcpListener, mut client: &TcpStream) -> (TcpStream, SocketAddr) {
    client.write_all(b"!").unwrap();
    loop {
        let (stream, from) = accept(listener);
        let mut first = [0];
        if (&stream).read_exact(&mut first).is_ok() {
            assert_eq!(&first, b"!");
            return (stream, from);
        }
    }
}

#[test]
fn servers_learn_the_address_of_the_program_if_they_want() {
    let Some(bed) = Bed::new("shim-proxy") else {
        return;
    };
    let (listener, port) = bed.server.listen("127.0.0.1");
    let server = bed.serve(&["--expose", "all"]);
    let _client = bed.use_shim(&server, &[]);
    let mut server = Some(server);
    for version in ["v1", "v2"] {
        server.take().unwrap().kill();
        let flags = ["--expose", "all", "--proxy-protocol", version];
        server = Some(bed.serve(&flags));
        for ip in MAPPED {
            let (client, server, _) = meet(&bed, &listener, ip);
            let from = client.local_addr().unwrap();
            (&client).write_all(b"hello").unwrap();
            finish(&client);
            let received = read_all(&server);
            let header = received.strip_suffix(b"hello").unwrap();
            let (own, to) = (from.ip(), client.peer_addr().unwrap().ip());
            if version == "v1" {
                let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
                let line = format!("PROXY {family} {own} {to} {} {port}\r\n", from.port());
                assert_eq!(String::from_utf8_lossy(header), line);
            } else {
                let length = if from.is_ipv4() { 12 } else { 36 };
                assert_eq!(
                    (&header[..12], header.len()),
                    (&b"\r\n\r\n\0\r\nQUIT\n"[..], 16 + length)
                );
                let ports = &header[header.len() - 4..];
                let expected = [from.port().to_be_bytes(), port.to_be_bytes()].concat();
                assert_eq!(ports, expected);
            }
        }
    }
    drop(bed.shim(SERVER, &["down"]));
}
