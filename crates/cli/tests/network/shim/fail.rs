//! A shim that dies: what becomes of mapped destinations.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};

use hawser_kernel::netlink::Netlink;

use super::bed::{Bed, CLIENT, Carrier, MAPPED, accept};
use super::gateway::Behind;
use crate::support::{self, eventually};

/// A server that has a mapped address, and is reached by ordinary routes of the client.
struct Bypass {
    _host: Behind,
    listener: TcpListener,
}

impl Bypass {
    fn new(bed: &Bed) -> Self {
        let host = Behind::new(&bed.client, "10.203.0");
        let ip = |command: &str| {
            let output = std::process::Command::new("ip")
                .args(command.split(' '))
                .output();
            let output = output.unwrap();
            assert!(output.status.success(), "{command}: {output:?}");
        };
        let mapped = MAPPED[0];
        let address = || ip(&format!("address add {mapped}/32 dev lo"));
        host.namespace.run(address).unwrap();
        bed.client
            .run(|| ip(&format!("route add {mapped}/32 via 10.203.0.7")));
        let listener = host.listen(&format!("{mapped}:7000"));
        Self {
            _host: host,
            listener,
        }
    }
}

/// How a connection and a datagram to the mapped address fail.
fn failures(bed: &Bed) -> (Option<ErrorKind>, Option<ErrorKind>) {
    let to = format!("{}:7000", MAPPED[0]);
    let send = || {
        let tcp = TcpStream::connect(&to).err().map(|error| error.kind());
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        (
            tcp,
            socket
                .send_to(b"hello", &to)
                .err()
                .map(|error| error.kind()),
        )
    };
    bed.client.run(send)
}

/// Kills the holder, with which the carrier ends.
fn kill(bed: &Bed, carrier: Carrier) {
    // Its tables, listeners and devices go with its last descriptors.
    support::kill(&[bed.holder(CLIENT).into()]);
    carrier.wait();
    eventually("the device is gone", || {
        bed.client.run(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.interface("hawser0").unwrap().is_none()
        })
    });
}

#[test]
fn a_dead_shim_lets_nothing_out_if_it_fails_closed() {
    let Some(bed) = Bed::new("shim-fails") else {
        return;
    };
    let server = bed.serve(&["--expose", "all"]);
    let bypass = Bypass::new(&bed);
    assert_eq!(failures(&bed), (None, None));
    accept(&bypass.listener);
    let works = || {
        let (listener, port) = bed.server.listen("127.0.0.1");
        let _program = bed.client.connect(&format!("{}:{port}", MAPPED[0]));
        accept(&listener);
    };

    let client = bed.use_shim(&server, &["--fail", "closed"]);
    works();
    kill(&bed, client);
    let (tcp, udp) = failures(&bed);
    assert_eq!(tcp, Some(ErrorKind::ConnectionRefused));
    assert!(udp.is_some());
    let status = bed.shim(CLIENT, &["status"]);
    let error = String::from_utf8_lossy(&status.stderr);
    assert!(error.contains("rejected (--fail closed)"), "{error}");

    // Another one takes over what it left.
    let client = bed.use_shim(&server, &["--fail", "closed"]);
    works();
    kill(&bed, client);
    assert_eq!(failures(&bed).0, Some(ErrorKind::ConnectionRefused));

    // One that is taken down leaves nothing.
    let down = bed.shim(CLIENT, &["down"]);
    assert!(down.status.success(), "{down:?}");
    assert_eq!(failures(&bed), (None, None));
    accept(&bypass.listener);
    let client = bed.use_shim(&server, &["--fail", "closed"]);
    works();
    let down = bed.shim(CLIENT, &["down"]);
    assert!(down.status.success(), "{down:?}");
    client.wait();
    assert_eq!(failures(&bed), (None, None));
    accept(&bypass.listener);

    // Without the flag.
    let client = bed.use_shim(&server, &["--fail", "closed"]);
    kill(&bed, client);
    let client = bed.use_shim(&server, &[]);
    works();
    kill(&bed, client);
    assert_eq!(failures(&bed), (None, None));
    accept(&bypass.listener);
}
