//! Unmodified TCP programs over the shim: nothing is lost when paths and processes die, and only what
//! is mapped, allowed and served gets through.

mod bed;
mod beside;
mod fail;
mod gateway;
mod lent;
mod paused;
mod quic;
mod refused;
mod revoked;
mod serving;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{Pid, Signal, kill_process};

use self::bed::{Bed, CLIENT, Carrier, MAPPED, SERVER, accept, content, finish, read_all};
use crate::support::{NARROW, eventually};

/// Bytes of a transfer, and of its last part.
const LENGTH: usize = 8_000_000;
const LAST: usize = 1000;

/// How long all paths are dead under connections that begin: longer than the kernel tries to connect
/// unless told otherwise, with the longest timeout that the shim sets (27 s).
const DEAD: Duration = Duration::from_secs(35);

/// A connection with content in both directions at once.
struct Transfer {
    client: TcpStream,
    server: TcpStream,
}

impl Transfer {
    fn new(bed: &Bed) -> Self {
        let (listener, port) = bed.server.listen("127.0.0.1");
        let client = bed.client.connect(&format!("{}:{port}", MAPPED[0]));
        let (server, _) = accept(&listener);
        Self { client, server }
    }

    /// Transfers content in both directions, of which this checks every byte; `disturb` runs once
    /// some has arrived, and before the last is sent.
    fn run(self, disturb: impl FnOnce(&Self)) {
        let arrived = AtomicUsize::new(0);
        let last_part = Mutex::new(());
        let held_back = last_part.lock().unwrap();
        thread::scope(|scope| {
            // Released also if `disturb` panics.
            let held_back = held_back;
            let (sent, received) = (content(1, LENGTH), content(2, LENGTH));
            for (stream, sends, expects) in [
                (&self.client, sent.clone(), received.clone()),
                (&self.server, received, sent),
            ] {
                let (arrived, last_part) = (&arrived, &last_part);
                scope.spawn(move || check(stream, &expects, arrived));
                scope.spawn(move || {
                    let mut stream = stream;
                    let (first, last) = sends.split_at(LENGTH - LAST);
                    stream.write_all(first).unwrap();
                    drop(last_part.lock());
                    stream.write_all(last).unwrap();
                    finish(stream);
                });
            }
            eventually("something arrives", || {
                arrived.load(Ordering::Relaxed) > LENGTH / 4
            });
            disturb(&self);
            drop(held_back);
        });
    }
}

/// Reads to the end of the stream, and compares with what is expected.
fn check(mut stream: &TcpStream, expected: &[u8], arrived: &AtomicUsize) {
    let mut buffer = vec![0; 1 << 16];
    let mut rest = expected;
    loop {
        let bytes = match stream.read(&mut buffer) {
            // The reader's thread may be interrupted at any time.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.unwrap(),
        };
        if bytes == 0 {
            break;
        }
        arrived.fetch_add(bytes, Ordering::Relaxed);
        let (next, after) = rest.split_at(bytes);
        assert!(buffer[..bytes] == *next, "the content differs");
        rest = after;
    }
    assert_eq!(rest.len(), 0, "the end is missing");
}

/// The number of paths that have carried a part of what was sent, by this count.
fn carrying(bed: &Bed, count: &str) -> usize {
    let carried = |path: &&serde_json::Value| path[count].as_u64() > Some(500_000);
    bed.paths().iter().filter(carried).count()
}

/// Waits until several paths have carried something. A lane that is replaced meanwhile, as on a busy
/// machine, takes its count with it: more is sent then.
fn several_carry(bed: &Bed, count: &str) {
    eventually("several paths carry", || {
        let is_it = carrying(bed, count) >= 2;
        if !is_it {
            Transfer::new(bed).run(|_| {});
        }
        is_it
    });
}

fn both(bed: &Bed) -> (Carrier, Carrier) {
    let server = bed.serve(&["--expose", "all"]);
    let client = bed.use_shim(&server, &[]);
    (server, client)
}

#[test]
fn a_path_of_the_smallest_mtu_carries_connections() {
    let Some(bed) = Bed::with_topology("shim-narrow", NARROW) else {
        return;
    };
    let _carriers = both(&bed);
    Transfer::new(&bed).run(|_| {});
}

/// A shim follows its files by itself: SIGHUP, which administrators send once they have changed one,
/// ends no connection.
#[test]
fn connections_outlive_sighup() {
    let Some(bed) = Bed::new("shim-sighup") else {
        return;
    };
    let carriers = both(&bed);
    Transfer::new(&bed).run(|_| {
        for carrier in [&carriers.0, &carriers.1] {
            let pid = Pid::from_raw(i32::try_from(carrier.pid()).unwrap()).unwrap();
            kill_process(pid, Signal::HUP).unwrap();
        }
    });
    Transfer::new(&bed).run(|_| {});
}

#[test]
fn connections_outlive_paths_and_carriers() {
    let Some(bed) = Bed::new("shim-lives") else {
        return;
    };
    let (server, client) = both(&bed);

    // A path dies.
    let transfer = Transfer::new(&bed);
    bed.wait_for_paths(4);
    transfer.run(|_| bed.lab.set("1-ff00:0:110#2", &["--down"]));
    several_carry(&bed, "sent_bytes");
    assert_eq!(bed.failures(CLIENT), [""; 0]);
    eventually("the dead path is left", || bed.paths().len() == 3);
    bed.lab.set("1-ff00:0:110#2", &["--up"]);

    // All paths die, for longer than it takes to leave every path.
    Transfer::new(&bed).run(|_| {
        bed.set_links("--down");
        eventually("every path is left", || bed.paths().is_empty());
        bed.set_links("--up");
    });

    // Either carrier is killed, and started again.
    let mut client = Some(client);
    Transfer::new(&bed).run(|_| {
        client.take().unwrap().kill();
        let status = bed.shim(CLIENT, &["status", "--json"]);
        assert_eq!(status.status.code(), Some(1), "{status:?}");
        client = Some(bed.use_shim(&server, &[]));
    });
    let mut server = Some(server);
    Transfer::new(&bed).run(|_| {
        server.take().unwrap().kill();
        server = Some(bed.serve(&["--expose", "all"]));
    });
    // Both at once.
    Transfer::new(&bed).run(|_| {
        client.take().unwrap().kill();
        server.take().unwrap().kill();
        let again = bed.serve(&["--expose", "all"]);
        client = Some(bed.use_shim(&again, &[]));
        server = Some(again);
    });
    for isd_as in [CLIENT, SERVER] {
        assert_eq!(bed.failures(isd_as), [""; 0]);
    }

    // When the shim is taken down, its connections end.
    let Transfer { client, server } = Transfer::new(&bed);
    let down = bed.shim(CLIENT, &["down"]);
    assert!(down.status.success(), "{down:?}");
    let ended = (&client).read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    drop(server);
}

#[test]
fn connections_that_begin_while_all_paths_are_dead_wait_for_one() {
    let Some(bed) = Bed::new("shim-begin") else {
        return;
    };
    let _shims = both(&bed);
    let _session = Transfer::new(&bed);
    bed.wait_for_paths(4);
    let (listener, port) = bed.server.listen("127.0.0.1");
    let connect = |to: &str| bed.client.connect(&format!("{to}:{port}"));
    bed.set_links("--down");
    // The first packets of this one are lost, and of the other one none is sent.
    let first = connect(MAPPED[0]);
    eventually("every path is left", || bed.paths().is_empty());
    let second = connect(MAPPED[1]);
    // For longer than TCP tries in half a minute.
    thread::sleep(DEAD);
    assert_eq!(bed.failures(CLIENT), [""; 0]);
    bed.set_links("--up");
    let clients = [(first, content(1, 40_000)), (second, content(2, 40_000))];
    for (client, sent) in &clients {
        let mut stream = client;
        stream.write_all(sent).unwrap();
        finish(client);
    }
    // They arrive in any order: each gets back what it has sent.
    for _ in &clients {
        let (server, _) = accept(&listener);
        (&server).write_all(&read_all(&server)).unwrap();
    }
    for (client, sent) in &clients {
        assert!(read_all(client) == *sent, "the content differs");
    }
    assert_eq!(bed.failures(CLIENT), [""; 0]);
}

#[test]
fn connections_whose_directions_have_ended_outlive_all_paths() {
    let Some(bed) = Bed::new("shim-ended") else {
        return;
    };
    let _shims = both(&bed);
    let Transfer { client, server } = Transfer::new(&bed);
    bed.wait_for_paths(4);
    bed.set_links("--down");
    // The kernel takes no further subflow for them from here on.
    let (sent, received) = (content(1, 40_000), content(2, 40_000));
    (&client).write_all(&sent).unwrap();
    finish(&client);
    (&server).write_all(&received).unwrap();
    finish(&server);
    eventually("every path is left", || bed.paths().is_empty());
    bed.set_links("--up");
    assert!(read_all(&server) == sent, "the content differs");
    assert!(read_all(&client) == received, "the content differs");
    for isd_as in [CLIENT, SERVER] {
        assert_eq!(bed.failures(isd_as), [""; 0]);
    }
}

#[test]
fn a_connection_that_the_other_host_has_lost_ends_with_the_reason() {
    let Some(bed) = Bed::new("shim-unknown") else {
        return;
    };
    let _shims = both(&bed);
    let Transfer { client, server } = Transfer::new(&bed);
    bed.wait_for_paths(4);
    eventually("the connection has a subflow over each path", || {
        let subflows = bed.status(CLIENT)["connections"][0]["subflows"].clone();
        subflows.as_array().is_some_and(|all| all.len() == 4)
    });
    bed.set_links("--down");
    eventually("every path is left", || {
        let at_server = bed.status(SERVER)["sessions"][0]["paths"].clone();
        bed.paths().is_empty() && at_server.as_array().is_some_and(Vec::is_empty)
    });
    // The reset does not get through.
    let ended = bed.status(SERVER)["connections_ended"].clone();
    sockopt::set_socket_linger(&server, Some(Duration::ZERO)).unwrap();
    drop(server);
    eventually("the server's side has ended", || {
        bed.status(SERVER)["connections_ended"] != ended
    });
    bed.set_links("--up");
    let read = (&client).read(&mut [0]).map_err(|error| error.kind());
    let status = || [CLIENT, SERVER].map(|isd_as| bed.status(isd_as).to_string());
    assert_eq!(read, Err(ErrorKind::ConnectionReset), "{:#?}", status());
    let failures = bed.failures(CLIENT);
    let [failure] = &failures[..] else {
        panic!("{failures:?}");
    };
    let reason = "the other host no longer knows the connection";
    assert!(failure.ends_with(reason), "{failure}");
}

#[test]
fn connections_from_one_port_to_two_destinations_have_their_own_content() {
    let Some(bed) = Bed::new("shim-one-port") else {
        return;
    };
    let _shims = both(&bed);
    let servers = [(); 2].map(|()| bed.server.listen("127.0.0.1"));
    let connect = |to: u16, from: u16| {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        let from = SocketAddr::from(([0, 0, 0, 0], from));
        rustix::net::bind(&socket, &from).unwrap();
        let to: SocketAddr = format!("{}:{to}", MAPPED[0]).parse().unwrap();
        rustix::net::connect(&socket, &to).unwrap();
        TcpStream::from(socket)
    };
    let mut source = 0;
    let pairs = servers.each_ref().map(|(listener, port)| {
        let client = bed.client.run(|| connect(*port, source));
        source = client.local_addr().unwrap().port();
        (client, accept(listener).0)
    });
    for (seed, (client, server)) in (1..).zip(pairs) {
        let sent = content(seed, 40_000);
        (&client).write_all(&sent).unwrap();
        finish(&client);
        assert!(read_all(&server) == sent, "the content differs");
        drop(server);
        assert!(read_all(&client).is_empty());
    }
    assert_eq!(bed.failures(CLIENT), [""; 0]);
}

#[test]
fn two_hundred_connections_at_once_have_their_own_content() {
    let Some(bed) = Bed::new("shim-many") else {
        return;
    };
    let _shims = both(&bed);
    let (listener, port) = bed.server.listen("127.0.0.1");
    const COUNT: u64 = 200;
    let length = |seed: u64| 2_000 + 500 * seed as usize;
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..COUNT {
                let (stream, _) = accept(&listener);
                // Sends back what it has received.
                scope.spawn(move || {
                    (&stream).write_all(&read_all(&stream)).unwrap();
                });
            }
        });
        for seed in 0..COUNT {
            let bed = &bed;
            scope.spawn(move || {
                let to = format!("{}:{port}", MAPPED[seed as usize % 2]);
                let stream = bed.client.connect(&to);
                let sent = content(seed, length(seed));
                (&stream).write_all(&sent).unwrap();
                finish(&stream);
                let received = read_all(&stream);
                let difference = received
                    .iter()
                    .zip(&sent)
                    .position(|(one, other)| one != other);
                assert!(
                    received == sent,
                    "connection {seed}: {} bytes of {}, differs at {difference:?}",
                    received.len(),
                    sent.len(),
                );
            });
        }
    });
    eventually("all have ended", || {
        assert_eq!(bed.failures(CLIENT), [""; 0]);
        bed.status(CLIENT)["connections_ended"] == COUNT
    });
}
