//! Connections that are carried by QUIC: nothing is lost when paths die, and refusals are told apart.

use std::io::{ErrorKind, Read, Write};

use super::bed::{Bed, CLIENT, MAPPED, SERVER, accept, content, finish, read_all};
use super::{Transfer, several_carry};
use crate::support::eventually;

const QUIC: &[&str] = &["--carrier", "quic"];

/// What carries the client's connections.
fn carriers(bed: &Bed) -> Vec<String> {
    let status = bed.status(CLIENT);
    let connections = status["connections"].as_array().unwrap();
    let carriers = connections.iter().filter_map(|one| one["carrier"].as_str());
    carriers.map(str::to_owned).collect()
}

#[test]
fn streams_outlive_paths_and_end_with_the_carrier() {
    let Some(bed) = Bed::new("shim-quic") else {
        return;
    };
    let server = bed.serve(&["--expose", "all"]);
    let client = bed.use_carrier(&server, QUIC);

    // A path dies.
    let transfer = Transfer::new(&bed);
    bed.wait_for_paths(4);
    transfer.run(|_| {
        // The server may have the connection before the client's holder lists it.
        eventually("QUIC carries", || carriers(&bed) == ["quic"]);
        bed.lab.set("1-ff00:0:110#2", &["--down"]);
    });
    several_carry(&bed, "stream_bytes");
    eventually("the dead path is left", || bed.paths().len() == 3);
    bed.lab.set("1-ff00:0:110#2", &["--up"]);

    // All paths die, until every lane has ended.
    let links = ["#1", "#2", "#3", "#4"].map(|link| format!("{CLIENT}{link}"));
    Transfer::new(&bed).run(|_| {
        links.iter().for_each(|link| bed.lab.set(link, &["--down"]));
        eventually("every lane is ended", || bed.paths().is_empty());
        links.iter().for_each(|link| bed.lab.set(link, &["--up"]));
    });
    for isd_as in [CLIENT, SERVER] {
        assert_eq!(bed.failures(isd_as), [""; 0]);
    }
    eventually("no connection is left", || carriers(&bed).is_empty());

    // The carrier is killed: its connections end, at both ends, and new ones can be made.
    let Transfer {
        client: program,
        server: served,
    } = Transfer::new(&bed);
    client.kill();
    assert!(!matches!((&program).read(&mut [0]), Ok(1..)));
    let client = bed.use_carrier(&server, QUIC);
    Transfer::new(&bed).run(|_| {});
    assert!(!matches!((&served).read(&mut [0]), Ok(1..)));

    // The same of the other end.
    let Transfer {
        client: program,
        server: served,
    } = Transfer::new(&bed);
    server.kill();
    assert!(!matches!((&served).read(&mut [0]), Ok(1..)));
    let _server = bed.serve(&["--expose", "all"]);
    assert!(!matches!((&program).read(&mut [0]), Ok(1..)));
    Transfer::new(&bed).run(|_| {});
    drop(client);
}

#[test]
fn servers_and_programs_meet_by_quic_as_without_a_shim() {
    let Some(bed) = Bed::new("shim-quic-meets") else {
        return;
    };
    let (listener, port) = bed.server.listen("127.0.0.1");
    let (_unserved, other) = bed.server.listen("127.0.0.1");
    let serve = port.to_string();
    let serve = ["--expose", &serve, "--proxy-protocol", "v1"];
    let server = bed.serve(&serve);
    let _client = bed.use_carrier(&server, QUIC);

    let connect = |port: u16| bed.client.connect(&format!("{}:{port}", MAPPED[0]));
    // The server speaks first; the program ends its direction, and receives still.
    let program = connect(port);
    let (served, _) = accept(&listener);
    (&served).write_all(b"220 ready").unwrap();
    let mut greeting = [0; 9];
    (&program).read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"220 ready");
    let (question, answer) = (content(1, 300_000), content(2, 700_000));
    (&program).write_all(&question).unwrap();
    finish(&program);
    let from = program.local_addr().unwrap();
    let (own, to) = (from.ip(), program.peer_addr().unwrap().ip());
    let header = format!("PROXY TCP4 {own} {to} {} {port}\r\n", from.port());
    assert!(read_all(&served) == [header.as_bytes(), &question].concat());
    (&served).write_all(&answer).unwrap();
    drop(served);
    assert!(read_all(&program) == answer);

    // The program ends in haste.
    let program = connect(port);
    let (served, _) = accept(&listener);
    (&served).write_all(b"unread").unwrap();
    eventually("it arrives", || program.peek(&mut [0; 8]).unwrap() == 6);
    drop(program);
    let read = (&served).read(&mut [0; 200]).and_then(|_| {
        // The header comes first.
        (&served).read(&mut [0])
    });
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);

    // What is refused.
    drop(listener);
    for (port, reason) in [(other, "not serve"), (port, "nothing listens on the port")] {
        let error = (&connect(port)).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        eventually(reason, || {
            let to = format!("{}:{port} at {SERVER}", MAPPED[0]);
            let is_shown = |text: &String| text.contains(&to) && text.contains(reason);
            bed.failures(CLIENT).iter().any(is_shown)
        });
    }
}

#[test]
fn a_host_without_mptcp_refuses_it_and_takes_the_default() {
    let Some(bed) = Bed::new("shim-quic-only") else {
        return;
    };
    let server = bed.serve_without_mptcp(&["--expose", "all"]);
    let client = bed.use_shim(&server, &[]);
    let stream = bed.client.connect(&format!("{}:9", MAPPED[0]));
    assert!((&stream).read(&mut [0]).is_err());
    eventually("the reason is shown", || {
        let failures = bed.failures(CLIENT);
        failures
            .iter()
            .any(|text| text.contains("use --carrier quic"))
    });
    client.kill();
    let client = bed.use_carrier(&server, &[]);
    Transfer::new(&bed).run(|_| {
        eventually("QUIC carries", || carriers(&bed) == ["quic"]);
    });
    drop((server, client));
}
