//! Hosts without hawser behind gateways.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command};
use std::time::Duration;

use hawser_kernel::namespace::NetNs;

use super::bed::{Bed, CLIENT, Host, MPTCP, SERVER, accept, finish, read_all};
use super::{Transfer, carrying};
use crate::support::eventually;

/// Longest wait of a program for the other one.
const PATIENCE: Duration = Duration::from_secs(300);

/// A host behind a gateway, which has the address 1 of its network.
pub struct Behind {
    pub namespace: NetNs,
    /// Shows the namespace to others.
    process: Child,
}

impl Drop for Behind {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Behind {
    /// The host with the address 7 of a `network`, as 10.201.0, from which packets to all others go
    /// through the gateway.
    pub fn new(gateway: &Host, network: &str) -> Self {
        let namespace = NetNs::create().unwrap();
        let sleep = || Command::new("sleep").arg("100000").spawn().unwrap();
        let process = namespace.run(sleep).unwrap();
        let there = process.id();
        let run = |commands: &[String]| {
            for command in commands {
                let output = Command::new("ip").args(command.split(' ')).output();
                let output = output.unwrap();
                assert!(output.status.success(), "{command}: {output:?}");
            }
        };
        gateway.run(|| {
            run(&[
                format!("link add inside type veth peer name outside netns {there}"),
                format!("address add {network}.1/24 dev inside"),
                "link set inside up".to_owned(),
            ]);
        });
        let configure = || {
            run(&[
                format!("address add {network}.7/24 dev outside"),
                "link set outside up".to_owned(),
                "link set lo up".to_owned(),
                format!("route add default via {network}.1"),
            ]);
        };
        namespace.run(configure).unwrap();
        Self { namespace, process }
    }

    fn connect(&self, to: &str) -> TcpStream {
        let connected = self.namespace.run(|| TcpStream::connect(to)).unwrap();
        let stream = connected.unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Whether the gateway, which is near, accepts a connection.
    fn is_accepted(&self, to: &str) -> bool {
        let to = to.parse().unwrap();
        let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(1));
        self.namespace.run(connect).unwrap().is_ok()
    }

    /// Whether datagrams to `to` are answered.
    fn is_answered(&self, to: &str) -> bool {
        let bind = || UdpSocket::bind("0.0.0.0:0");
        let socket = self.namespace.run(bind).unwrap().unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        socket.connect(to).unwrap();
        let (question, mut answer) = (fastrand::u64(..).to_be_bytes(), [0; 8]);
        let answered = socket
            .send(&question)
            .and_then(|_| socket.recv(&mut answer));
        answered.is_ok_and(|length| answer[..length] == question)
    }

    /// Answers datagrams at `at` with the same, for as long as the test runs.
    fn echo(&self, at: &str) {
        let bind = || UdpSocket::bind(at);
        let socket = self.namespace.run(bind).unwrap().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(&buffer[..length], from);
            }
        });
    }

    pub fn listen(&self, at: &str) -> TcpListener {
        self.namespace
            .run(|| TcpListener::bind(at))
            .unwrap()
            .unwrap()
    }
}

#[test]
fn hosts_behind_gateways_reach_each_other() {
    let Some(bed) = Bed::new("shim-gateway") else {
        return;
    };
    let forward = |how: &'static str| {
        let write = || std::fs::write("/proc/sys/net/ipv4/ip_forward", how);
        bed.client.run(write).unwrap();
    };
    // A namespace begins with what the machine has, which container engines change.
    forward("0");
    let here = Behind::new(&bed.client, "10.201.0");
    let there = Behind::new(&bed.server, "10.202.0");
    let served = [
        "--expose-network",
        "10.202.0.0/24",
        "--proxy-protocol",
        "v1",
    ];
    let server = bed.serve(&served);
    let entry = format!("10.202.0.0/16={}", server.address);
    let none = bed.path("none.toml");
    let flags = [&MPTCP[..], &["--map", &none, "--server-key", &server.key]].concat();
    let paths = ["--paths", "4", "--gateway", &entry];
    let client = bed.up(CLIENT, &[&flags[..], &paths].concat());

    // The server sees the client's own address.
    let listener = there.listen("10.202.0.7:7000");
    let program = here.connect("10.202.0.7:7000");
    let (stream, from) = accept(&listener);
    let own = program.local_addr().unwrap();
    assert_eq!(own.ip().to_string(), "10.201.0.7");
    assert_eq!(from.ip().to_string(), "10.202.0.1");
    finish(&program);
    let header = format!("PROXY TCP4 10.201.0.7 10.202.0.7 {} 7000\r\n", own.port());
    assert_eq!(String::from_utf8(read_all(&stream)).unwrap(), header);

    // Several paths carry what it sends, one of which dies.
    server.kill();
    let server = bed.serve(&served[..2]);
    let client_end = here.connect("10.202.0.7:7000");
    let (server_end, _) = accept(&listener);
    let transfer = Transfer {
        client: client_end,
        server: server_end,
    };
    bed.wait_for_paths(4);
    transfer.run(|_| bed.lab.set(&format!("{CLIENT}#2"), &["--down"]));
    // A lane that is replaced meanwhile takes its count with it.
    eventually("several paths carry", || {
        let is_it = carrying(&bed, "sent_bytes") >= 2;
        if !is_it {
            let client = here.connect("10.202.0.7:7000");
            let (server, _) = accept(&listener);
            Transfer { client, server }.run(|_| {});
        }
        is_it
    });
    // So do programs of the gateway itself.
    let program = bed.client.connect("10.202.0.7:7000");
    let (stream, _) = accept(&listener);
    finish(&program);
    assert_eq!(read_all(&stream), b"");
    assert_eq!(bed.failures(SERVER), [""; 0]);

    // Datagrams as well, where the gateway forwards packets.
    there.echo("10.202.0.7:7000");
    assert!(!here.is_answered("10.202.0.7:7000"));
    forward("1");
    eventually("datagrams are answered", || {
        here.is_answered("10.202.0.7:7000")
    });
    assert!(!here.is_answered("10.202.9.9:7000"));

    // What is not served is refused, and what is not mapped is not captured.
    let refused = here.connect("10.202.9.9:7000");
    assert!(std::io::Read::read(&mut &refused, &mut [0]).is_err());
    eventually("the refusal is shown", || {
        let mut failures = bed.failures(CLIENT).into_iter();
        failures.any(|text| text.contains("10.201.0.7") && text.contains("10.202.9.9:7000"))
    });
    assert!(!here.is_accepted("10.203.0.7:7000"));

    // Without the flag other hosts' connections are not captured any more, but the gateway's own are.
    client.kill();
    let map = bed.map([("10.202.0.0/16", server.address.as_str())]);
    let flags = ["--map", &map, "--server-key", &server.key];
    let _client = bed.up(CLIENT, &flags);
    eventually("they are not captured", || {
        !here.is_accepted("10.202.0.7:7000") && !here.is_answered("10.202.0.7:7000")
    });
    drop(bed.client.connect("10.202.0.7:7000"));
}

#[test]
fn a_gateway_takes_no_connection_to_itself_for_a_captured_one() {
    let Some(bed) = Bed::new("shim-loop") else {
        return;
    };
    let here = Behind::new(&bed.client, "10.201.0");
    let there = Behind::new(&bed.server, "10.202.0");
    let server = bed.serve(&["--expose-network", "10.202.0.0/24"]);
    let entry = format!("10.202.0.0/16={}", server.address);
    let none = bed.path("none.toml");
    let flags = [
        "--map",
        &none,
        "--server-key",
        &server.key,
        "--gateway",
        &entry,
    ];
    let _client = bed.up(CLIENT, &[&flags[..], &["--redirect-port", "4555"]].concat());

    let listener = there.listen("10.202.0.7:7000");
    let program = here.connect("10.202.0.7:7000");
    let (stream, _) = accept(&listener);
    finish(&program);
    assert_eq!(read_all(&stream), b"");

    let before = bed.descriptors(CLIENT);
    for _ in 0..20 {
        assert!(!here.is_accepted("10.201.0.1:4555"));
        assert!(
            bed.client
                .run(|| TcpStream::connect("127.0.0.1:4555"))
                .is_err()
        );
    }
    assert!(bed.descriptors(CLIENT) <= before);
    assert_eq!(bed.failures(CLIENT), [""; 0]);

    // The port is the holder's as long as it lives.
    let other = [&["up"], &flags[..], &["--redirect-port", "4556"]].concat();
    let key = bed.path(&format!("{CLIENT}.key"));
    drop(_client);
    let refused = bed.shim(CLIENT, &[&other[..], &["--key", &key]].concat());
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(
        error.contains("4555") && error.contains("hawser shim down"),
        "{error}"
    );
}
