//! Programs that know nothing of SCION: this test's own binary, started again.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, connect, ipproto, recv, send, socket, sockopt,
};

/// What such a program is to do.
pub const JOB: &str = "HAWSER_TEST_JOB";
/// Longest wait for the other side.
const PATIENCE: Duration = Duration::from_secs(300);

/// The words of its command.
pub fn words() -> [String; 4] {
    let own = std::env::current_exe().unwrap();
    let name = "shim_run::program::program";
    let words = [own.to_str().unwrap(), name, "--exact", "--nocapture"];
    words.map(str::to_owned)
}

#[test]
fn program() {
    let Ok(job) = std::env::var(JOB) else {
        return;
    };
    let words: Vec<&str> = job.split(' ').collect();
    match words[..] {
        ["tcp", to, bytes] => tcp(to.parse().unwrap(), bytes.parse().unwrap()),
        ["send", to, bytes] => send_only(to.parse().unwrap(), bytes.parse().unwrap()),
        ["udp", to, bytes] => udp(to.parse().unwrap(), bytes.parse().unwrap()),
        ["refused", to] => refused(to.parse().unwrap()),
        ["echo", to] => echo(to.parse().unwrap()),
        _ => panic!("{job}"),
    }
}

/// Sends bytes, which come back.
fn tcp(to: SocketAddr, bytes: usize) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut sent = vec![0; bytes];
    fastrand::Rng::with_seed(7).fill(&mut sent);
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert!(received == sent, "{} of {bytes} bytes", received.len());
}

/// Sends bytes, and waits for nothing.
fn send_only(to: SocketAddr, bytes: usize) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(&vec![7; bytes]).unwrap();
}

fn datagrams(to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends a datagram, which comes back.
fn udp(to: SocketAddr, bytes: usize) {
    let socket = datagrams(to);
    let sent = vec![b'x'; bytes];
    socket.send(&sent).unwrap();
    let mut buffer = vec![0; 65_536];
    let length = socket.recv(&mut buffer).unwrap();
    assert!(buffer[..length] == sent, "{length} of {bytes} bytes");
}

/// Sends a datagram to a port that is closed.
fn refused(to: SocketAddr) {
    let socket = datagrams(to);
    socket.send(b"x").unwrap();
    let error = socket.recv(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

/// Sends an echo request.
fn echo(to: IpAddr) {
    let (family, protocol, request, reply) = match to {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, 8, 0),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, 128, 129),
    };
    let opened = socket(family, SocketType::DGRAM, Some(protocol));
    let socket = opened.expect("net.ipv4.ping_group_range allows root");
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE)).unwrap();
    connect(&socket, &SocketAddr::new(to, 0)).unwrap();
    let message = [request, 0, 0, 0, 0, 0, 0, 5, b'h', b'i'];
    send(&socket, &message, SendFlags::empty()).unwrap();
    let mut buffer = [0; 100];
    let (length, _) = recv(&socket, &mut buffer, RecvFlags::empty()).unwrap();
    assert_eq!(buffer[0], reply);
    assert_eq!(buffer[6..length], message[6..]);
}
