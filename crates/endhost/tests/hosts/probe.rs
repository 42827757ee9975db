//! Traceroute and probes, against routers that answer, stay silent or refuse.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hawser_endhost::probe::{Status, probe};
use hawser_endhost::requests::{RequestError, Requests};
use hawser_endhost::{Headers, IsdAsn, Path, ScionAddr, ScmpError};
use hawser_packet::{Body, Packet, Scmp};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::toy::{MTU, ToyDaemon, interface_down, isd_as, own_ip, path_over, unix_now};

/// The conduct of a router towards packets whose alert is set.
#[derive(Clone, Copy)]
enum Conduct {
    /// Answers as the router of the requested interface.
    Answers,
    /// Answers as a router of this AS.
    Claims(&'static str),
    Silent,
    /// Answers that the link is down.
    Refuses,
}

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";

/// The border router of A whose links lead to B, which also answers for the router of B.
struct Routers {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Routers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The path header of these tests: meta and info field, then hop fields of 12 bytes.
const HOPS_AT: usize = 4 + 8;

impl Routers {
    async fn start(conduct: impl Fn(u16) -> Conduct + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 65536];
            loop {
                let (length, sender) = socket.recv_from(&mut buffer).await.unwrap();
                let packet = Packet::parse(&buffer[..length]).unwrap();
                if let Some(answer) = answer(&packet, address, &conduct) {
                    socket.send_to(&answer, sender).await.unwrap();
                }
            }
        });
        Self { address, task }
    }

    /// The path that leaves A by `interface`, as A's daemon hands it out.
    fn path(&self, interface: u16) -> hawser_proto::daemon::Path {
        let (from, to) = ((isd_as(A), interface), (isd_as(B), interface + 100));
        path_over(from, to, self.address, unix_now() as u32)
    }
}

/// The answer of the router whose alert is set.
fn answer(
    packet: &Packet<'_>,
    router: SocketAddr,
    conduct: impl Fn(u16) -> Conduct,
) -> Option<Vec<u8>> {
    let Ok(Scmp::Query {
        reply: false,
        id,
        sequence,
        body: Body::Traceroute { .. },
    }) = Scmp::parse(packet)
    else {
        panic!("a host sends another message");
    };
    let hop = |at: usize| &packet.path()[HOPS_AT + at * 12..];
    let id_at = |at: usize, byte: usize| u16::from_be_bytes([hop(at)[byte], hop(at)[byte + 1]]);
    // In construction direction: a packet leaves the first hop by its egress and enters the second.
    let (alerted, interface) = match (hop(0)[0], hop(1)[0]) {
        (0b01, 0) => (A, id_at(0, 4)),
        (0, 0b10) => (B, id_at(1, 2)),
        flags => panic!("alerts {flags:?}"),
    };
    let alerted = match conduct(id_at(0, 4)) {
        Conduct::Silent => return None,
        Conduct::Refuses => return interface_down(packet, (isd_as(A), interface), router),
        Conduct::Claims(other) => isd_as(other),
        Conduct::Answers => isd_as(alerted),
    };
    let local = ScionAddr::new(alerted, router);
    let headers = Headers::reply(local, packet, id, router).unwrap();
    let reply = Scmp::Query {
        reply: true,
        id,
        sequence,
        body: Body::Traceroute {
            isd_as: alerted,
            interface,
        },
    };
    Some(headers.scmp(&reply.to_bytes()))
}

/// A's daemon, with paths to B that leave by these interfaces.
async fn daemon(routers: &Routers, interfaces: &[u16]) -> ToyDaemon {
    let daemon = ToyDaemon::alone(isd_as(A)).await;
    let names = interfaces
        .iter()
        .map(|id| ((*id).into(), routers.address.to_string()));
    daemon.answers.lock().unwrap().interfaces = names.collect();
    let paths = interfaces.iter().map(|id| routers.path(*id)).collect();
    daemon.set_paths(isd_as(B), paths);
    daemon
}

#[tokio::test]
async fn a_traceroute_queries_each_router_on_the_path() {
    let routers = Routers::start(|_| Conduct::Answers).await;
    let daemon = daemon(&routers, &[7]).await;
    let host = daemon.endhost().await;
    let path = host.paths(isd_as(B)).await.unwrap().remove(0);
    let tracer = Requests::bind(&host, Some(own_ip(60)), routers.address).unwrap();
    assert_eq!(tracer.local_addr().host.ip(), own_ip(60));
    let (target, timeout) = (own_ip(61), Duration::from_secs(10));
    for (index, expected) in path.info().interfaces.iter().enumerate() {
        let router = tracer.trace(target, &path, index, timeout).await.unwrap();
        assert_eq!(
            (router.isd_as, router.interface),
            (expected.isd_as, expected.id)
        );
        assert_eq!(router.ip, routers.address.ip());
    }
    let beyond = tracer.trace(target, &path, 2, timeout).await.unwrap_err();
    assert!(matches!(
        beyond,
        RequestError::NoInterface { index: 2, count: 2 }
    ));
    let inside = Path::within(isd_as(A), MTU);
    let error = tracer.trace(target, &inside, 0, timeout).await.unwrap_err();
    assert!(matches!(
        error,
        RequestError::NoInterface { index: 0, count: 0 }
    ));
}

#[tokio::test]
async fn a_traceroute_without_an_answer_fails_with_the_reason() {
    let conduct = |interface| match interface {
        7 => Conduct::Silent,
        _ => Conduct::Refuses,
    };
    let routers = Routers::start(conduct).await;
    let daemon = daemon(&routers, &[7, 8]).await;
    let host = daemon.endhost().await;
    let paths = host.paths(isd_as(B)).await.unwrap();
    let tracer = Requests::bind(&host, Some(own_ip(62)), routers.address).unwrap();
    let ask = |at: usize, timeout| tracer.trace(own_ip(63), &paths[at], 0, timeout);
    let silent = ask(0, Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(silent.to_string(), "no answer within 20ms");
    let down = ask(1, Duration::from_secs(10)).await.unwrap_err();
    assert_eq!(down.to_string(), "interface 1-ff00:0:110#8 is down");
}

#[tokio::test]
async fn probes_find_which_paths_work() {
    let conduct = |interface| match interface {
        7 => Conduct::Silent,
        8 => Conduct::Refuses,
        9 => Conduct::Claims("1-ff00:0:112"),
        _ => Conduct::Answers,
    };
    let routers = Routers::start(conduct).await;
    let all: Vec<u16> = (1..=40).collect();
    let daemon = daemon(&routers, &all).await;
    let host = daemon.endhost().await;
    let paths = host.paths(isd_as(B)).await.unwrap();
    assert_eq!(paths.len(), all.len());
    // Longer than the answers take on a busy machine; the silent path costs that much.
    let timeout = Duration::from_secs(4);
    let probes = probe(&host, &paths, timeout).await;
    assert_eq!(probes.len(), all.len());
    for (interface, probe) in all.iter().zip(probes) {
        // The router is on this host and loopback has no other address, so both share it.
        assert_eq!(probe.local, Some(IpAddr::from([127, 0, 0, 1])));
        match (interface, probe.status) {
            (7, Status::TimedOut) => {}
            (8, Status::Scmp(error)) => {
                let isd_as: IsdAsn = isd_as(A);
                let interface = 108;
                let down = ScmpError::ExternalInterfaceDown { isd_as, interface };
                assert_eq!(error, down);
            }
            (9, Status::Unknown(why)) => assert_eq!(why, "1-ff00:0:112#109 answered instead"),
            (_, Status::Alive(rtt)) => assert!(rtt <= timeout),
            (_, other) => panic!("{interface}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_lost_probe_does_not_make_a_path_dead() {
    let lost = AtomicUsize::new(0);
    let conduct = move |_| match lost.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Conduct::Silent,
        _ => Conduct::Answers,
    };
    let routers = Routers::start(conduct).await;
    let daemon = daemon(&routers, &[7]).await;
    let host = daemon.endhost().await;
    let paths = host.paths(isd_as(B)).await.unwrap();
    let probes = probe(&host, &paths, Duration::from_secs(20)).await;
    let status = &probes[0].status;
    assert!(matches!(status, Status::Alive(_)), "{status:?}");
}

#[tokio::test]
async fn a_path_inside_the_as_is_alive() {
    let daemon = ToyDaemon::alone(isd_as(A)).await;
    let host = daemon.endhost().await;
    let paths = [Path::within(isd_as(A), MTU)];
    let probes = probe(&host, &paths, Duration::from_secs(1)).await;
    assert_eq!(probes[0].status, Status::Alive(Duration::ZERO));
    assert_eq!(probes[0].local, None);
}
