//! Sockets, echoes, and packets that must be dropped.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser_endhost::ping::next_hop;
use hawser_endhost::requests::{RequestError, Requests};
use hawser_endhost::socket::{Arrival, BindError, ReceiveBuffer, Socket};
use hawser_endhost::{Endhost, Headers, IsdAsn, Path, ScionAddr, ScmpError, responder};
use hawser_packet::Packet;

use crate::toy::{PORTS, ToyDaemon, ToyNet, isd_as, own_ip};

fn bind(host: &Endhost, ip: IpAddr) -> Socket {
    Socket::bind(host, Some((ip, 0).into())).unwrap()
}

/// Receives until a packet for the socket arrives.
async fn receive<T>(
    socket: &Socket,
    buffer: &mut ReceiveBuffer,
    mut take: impl FnMut(Arrival<'_>) -> T,
) -> Vec<T> {
    let mut taken = Vec::new();
    while taken.is_empty() {
        poll_fn(|cx| socket.poll_receive(cx, buffer)).await.unwrap();
        taken.extend(socket.packets(buffer).map(&mut take));
    }
    taken
}

/// Sends all of `contents` in payloads of `segment` bytes.
async fn send(socket: &Socket, headers: &Headers, contents: &[u8], segment: usize) {
    let (mut sent, mut scratch) = (0, Vec::new());
    while sent < contents.len() {
        match socket.try_send(headers, &contents[sent..], segment, 2, &mut scratch) {
            Ok(bytes) => sent += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                socket.writable().await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn payload(arrival: Arrival<'_>) -> Vec<u8> {
    match arrival {
        Arrival::Datagram(datagram) => datagram.payload.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn ports_are_in_the_dispatched_range() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let ip = own_ip(20);
    let (first, second) = (bind(&host, ip), bind(&host, ip));
    assert_eq!(first.local_addr().host.port(), PORTS.0);
    assert_eq!(second.local_addr().host.port(), PORTS.0 + 1);
    let taken = Socket::bind(&host, Some(first.local_addr().host)).unwrap_err();
    assert!(matches!(taken, BindError::Refused { .. }), "{taken}");
    let outside = Socket::bind(&host, Some((ip, 6881).into())).unwrap_err();
    assert_eq!(
        outside.to_string(),
        "port 6881 is outside the ports routers of this AS deliver to (31000-32767): \
         take one of those, or 0"
    );
    let any = Socket::bind(&host, Some("0.0.0.0:0".parse().unwrap())).unwrap_err();
    assert!(matches!(any, BindError::Unspecified(_)), "{any}");
    let nowhere = Socket::bind(&host, None).unwrap_err();
    assert!(
        nowhere.to_string().contains("has no border router"),
        "{nowhere}"
    );
}

#[tokio::test]
async fn without_dispatched_ports_any_port_is_allowed() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    daemon.answers.lock().unwrap().ports = (0, 0);
    let host = daemon.endhost().await;
    // A shim dispatcher receives all packets of such an AS and passes them to their port.
    let any = bind(&host, own_ip(21)).local_addr().host;
    assert_ne!(any.port(), 0);
    let wanted = Some((own_ip(21), 6881).into());
    assert_eq!(
        Socket::bind(&host, wanted)
            .unwrap()
            .local_addr()
            .host
            .port(),
        6881
    );
}

#[tokio::test]
async fn the_own_address_is_the_one_towards_the_router() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    // The router is on this host and loopback has no other address, so both share it.
    let socket = Socket::bind(&host, None).unwrap();
    assert_eq!(socket.local_addr().host.ip(), net.router_a().ip());
}

#[tokio::test]
async fn both_families_work() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    for ip in [own_ip(22), "::1".parse().unwrap()] {
        let (from, to) = (bind(&host, ip), bind(&host, ip));
        let path = Path::within(host.local_as(), 1472);
        let headers = Headers::new(from.local_addr(), to.local_addr(), &path).unwrap();
        send(&from, &headers, b"hello", 5).await;
        let mut buffer = ReceiveBuffer::default();
        assert_eq!(receive(&to, &mut buffer, payload).await, [b"hello"]);
    }
}

#[tokio::test]
async fn many_payloads_arrive_unchanged() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let (from, to) = (bind(&host, own_ip(23)), bind(&host, own_ip(23)));
    let path = Path::within(host.local_as(), 1472);
    let headers = Headers::new(from.local_addr(), to.local_addr(), &path).unwrap();
    let contents: Vec<u8> = (0..100_000u32).map(|at| (at / 7) as u8).collect();
    send(&from, &headers, &contents, 1300).await;
    let (mut received, mut sizes) = (Vec::new(), Vec::new());
    let mut buffer = ReceiveBuffer::default();
    while received.len() < contents.len() {
        let arrived = receive(&to, &mut buffer, |arrival| match arrival {
            Arrival::Datagram(datagram) => {
                assert_eq!(datagram.ecn(), 2);
                datagram.payload.to_vec()
            }
            other => panic!("{other:?}"),
        });
        for payload in arrived.await {
            sizes.push(payload.len());
            received.extend_from_slice(&payload);
        }
    }
    assert_eq!(received, contents);
    let (last, full) = sizes.split_last().unwrap();
    assert!(full.iter().all(|size| *size == 1300));
    assert_eq!(*last, 100_000 % 1300);
}

#[tokio::test]
async fn foreign_and_malformed_packets_are_dropped_and_counted() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let to = bind(&host, own_ip(24));
    let local = to.local_addr();
    let sender = std::net::UdpSocket::bind((own_ip(24), 0)).unwrap();
    let us = ScionAddr::new(local.isd_as, sender.local_addr().unwrap());
    let packet = |peer: ScionAddr| {
        let mut packet = Vec::new();
        let path = Path::within(peer.isd_as, 1472);
        let us = ScionAddr::new(peer.isd_as, us.host);
        Headers::new(us, peer, &path)
            .unwrap()
            .write(b"data", 0, &mut packet);
        packet
    };
    let mut changed = packet(local);
    *changed.last_mut().unwrap() ^= 1;
    let mut longer = packet(local);
    longer.push(0);
    let other_port = ScionAddr::new(local.isd_as, (local.host.ip(), 9).into());
    let other_host = ScionAddr::new(local.isd_as, (own_ip(99), local.host.port()).into());
    let other_as = ScionAddr::new(isd_as("1-ff00:0:9"), local.host);
    let unknown_protocol = {
        let mut packet = packet(local);
        packet[4] = 99;
        packet
    };
    let noise = vec![0xff; 100];
    let unusual = [
        changed,
        longer,
        packet(other_port),
        packet(other_host),
        packet(other_as),
    ];
    for bytes in unusual
        .iter()
        .chain([&unknown_protocol, &noise, &packet(local)])
    {
        sender.send_to(bytes, local.host).unwrap();
    }
    let mut buffer = ReceiveBuffer::default();
    assert_eq!(receive(&to, &mut buffer, payload).await, [b"data"]);
    let drops = to.drops();
    assert_eq!(drops.checksum, 1);
    assert_eq!(drops.malformed, 2);
    assert_eq!(drops.not_for_us, 3);
    assert_eq!(drops.unusable, 1);
}

/// The SCMP `message` to the sender of `sent`, from a router of the AS `from`.
fn scmp(sent: &[u8], from: IsdAsn, router: SocketAddr, message: &[u8]) -> Vec<u8> {
    let sent = Packet::parse(sent).unwrap();
    let port = match sent.udp() {
        Ok(udp) => udp.src_port,
        Err(_) => u16::from_be_bytes([sent.payload()[4], sent.payload()[5]]),
    };
    let local = ScionAddr::new(from, router);
    Headers::reply(local, &sent, port, router)
        .unwrap()
        .scmp(message)
}

/// An SCMP message that interface 1 of an AS is down, which quotes `quoted`.
fn down(isd_as: IsdAsn, quoted: &[u8]) -> Vec<u8> {
    let (isd_as, interface) = (isd_as.to_be_bytes(), 1u64.to_be_bytes());
    [&[5, 0, 0, 0], &isd_as[..], &interface, quoted].concat()
}

/// An SCMP message that a link takes packets of `mtu` bytes, which quotes `quoted`.
fn too_big(mtu: u16, quoted: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 0], &mtu.to_be_bytes()[..], quoted].concat()
}

#[tokio::test]
async fn scmp_errors_about_packets_of_others_are_dropped() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let socket = bind(&host, own_ip(25));
    let path = host.paths(net.b_as).await.unwrap().remove(0);
    let peer: ScionAddr = "1-ff00:0:111,127.0.77.99:31000".parse().unwrap();
    let packet_of = |from: ScionAddr| {
        let mut bytes = Vec::new();
        let headers = Headers::new(from, peer, &path).unwrap();
        headers.write(b"lost", 0, &mut bytes);
        bytes
    };
    let local = socket.local_addr();
    let port = local.host.port() + 1;
    let stranger = packet_of(ScionAddr::new(local.isd_as, (local.host.ip(), port).into()));
    let ours = packet_of(local);
    let whole = u16::try_from(ours.len()).unwrap();
    let report = |from, message: &[u8]| scmp(&ours, from, net.router_a(), message);
    let unmatched = [
        // From another AS than that of the interface.
        report(net.b_as, &down(net.a_as, &ours)),
        // A quote that ends before the ports.
        report(net.a_as, &down(net.a_as, &ours[..ours.len() - 12 + 3])),
        // "Packet too big" for a packet that fits the MTU.
        report(net.a_as, &too_big(whole, &ours)),
    ];
    let possible = [
        report(net.a_as, &down(net.a_as, &ours)),
        report(net.b_as, &too_big(whole - 1, &ours)),
    ];
    let other = [report(net.a_as, &down(net.a_as, &stranger))];
    let sender = std::net::UdpSocket::bind((own_ip(25), 0)).unwrap();
    for packet in unmatched.iter().chain(&other).chain(&possible) {
        sender.send_to(packet, local.host).unwrap();
    }
    let headers = Headers::new(local, peer, &path).unwrap();
    let (mut reports, mut buffer) = (Vec::new(), ReceiveBuffer::default());
    while reports.len() < possible.len() {
        let arrived = receive(&socket, &mut buffer, |arrival| match arrival {
            Arrival::Report(report) => {
                assert!(headers.quoted_by(&report.quote));
                assert_eq!(report.quote.payload, b"lost");
                socket.reject(&report);
                report.error
            }
            other => panic!("{other:?}"),
        });
        reports.extend(arrived.await);
    }
    let (isd_as, interface) = (net.a_as, 1);
    let expected = [
        ScmpError::ExternalInterfaceDown { isd_as, interface },
        ScmpError::PacketTooBig { mtu: whole - 1 },
    ];
    assert_eq!(reports, expected);
    assert_eq!(socket.drops().not_for_us, 1);
    assert_eq!(socket.drops().unmatched, 3 + 2);
    // The socket alone does not know which packets were sent, so no path is withheld.
    assert!(host.paths(net.b_as).await.is_ok());
}

#[tokio::test]
async fn forged_errors_about_echoes_do_not_count() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let path = host.paths(net.b_as).await.unwrap().remove(0);
    let mut outages = host.outages();
    let router = tokio::net::UdpSocket::bind((own_ip(30), 0)).await.unwrap();
    let at = router.local_addr().unwrap();
    let path = Path::new(path.info().clone(), path.raw().to_vec(), Some(at)).unwrap();
    let target = own_ip(31);
    let pinger = Requests::bind(&host, Some(own_ip(32)), next_hop(&path, target)).unwrap();
    let echo = pinger.echo(target, &path, 32, Duration::from_secs(3600));
    // One bit of the quote is wrong: in addresses, hop fields, sequence number or data.
    let forge = async {
        let mut request = vec![0; 2000];
        let (length, sender) = router.recv_from(&mut request).await.unwrap();
        request.truncate(length);
        let message = length - Packet::parse(&request).unwrap().payload().len();
        let hop = message - 12;
        for byte in [
            15,
            31,
            35,
            hop + 3,
            hop + 9,
            message + 5,
            message + 7,
            message + 9,
        ] {
            let mut other = request.clone();
            other[byte] ^= 1;
            let report = scmp(&request, net.a_as, at, &down(net.a_as, &other));
            router.send_to(&report, sender).await.unwrap();
        }
        request
    };
    tokio::pin!(echo);
    let request = tokio::select! {
        early = &mut echo => panic!("{early:?}"),
        request = forge => request,
    };
    let report = scmp(&request, net.a_as, at, &down(net.a_as, &request));
    let asked_from = pinger.local_addr().host;
    router.send_to(&report, asked_from).await.unwrap();
    let error = echo.await.unwrap_err();
    assert_eq!(error.to_string(), "interface 1-ff00:0:110#1 is down");
    // The forged errors arrived before: only the genuine one is reported.
    assert_eq!(outages.recv().await.unwrap().to_string(), "1-ff00:0:110#1");
    assert!(outages.try_recv().is_err());
    assert!(host.paths(net.b_as).await.is_err(), "the path is out");
}

#[tokio::test]
async fn echoes_cross_the_link_and_find_the_responder() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let target = own_ip(26);
    let answering = tokio::spawn(responder::run(SocketAddr::new(target, responder::PORT)));
    let path = host.paths(net.b_as).await.unwrap().remove(0);
    let pinger = Requests::bind(&host, Some(own_ip(27)), next_hop(&path, target)).unwrap();
    let timeout = Duration::from_secs(10);
    // The responder may not listen yet; echoes are lost like other packets.
    let reply = loop {
        match pinger
            .echo(target, &path, 100, Duration::from_millis(100))
            .await
        {
            Err(RequestError::TimedOut(_)) => {}
            reply => break reply.unwrap(),
        }
    };
    assert_eq!(reply.from.to_string(), format!("1-ff00:0:111,{target}:0"));
    assert_eq!(reply.size, 12 + 24 + 36 + 8 + 100);
    let many = (0..50).map(|_| pinger.echo(target, &path, 10, timeout));
    for reply in futures_join_all(many).await {
        reply.unwrap();
    }
    let inside = Path::within(net.a_as, 1472);
    let reply = pinger.echo(target, &inside, 0, timeout).await.unwrap();
    assert_eq!(reply.from.to_string(), format!("1-ff00:0:110,{target}:0"));
    answering.abort();
}

/// Waits for all futures concurrently.
async fn futures_join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|cx| {
        for (future, output) in &mut waiting {
            if output.is_none()
                && let std::task::Poll::Ready(done) = future.as_mut().poll(cx)
            {
                *output = Some(done);
            }
        }
        if waiting.iter().all(|(_, output)| output.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    waiting
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}

#[tokio::test]
async fn an_echo_without_a_reply_fails_with_the_reason() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let path = host.paths(net.b_as).await.unwrap().remove(0);
    let target = own_ip(29);
    let pinger = Requests::bind(&host, Some(own_ip(28)), next_hop(&path, target)).unwrap();
    let timeout = Duration::from_millis(50);
    let error = pinger.echo(target, &path, 10, timeout).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer within 50ms");
    net.conduct.down.store(true, Ordering::SeqCst);
    let error = pinger
        .echo(target, &path, 10, Duration::from_secs(10))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "interface 1-ff00:0:110#1 is down");
    let error = pinger.echo(target, &path, 1400, timeout).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "1400 bytes of data make a packet of 1480 bytes: the path takes 1472"
    );
    assert_eq!(pinger.echo_size(target, &path, 1400).unwrap(), 1480);
    // Inside the AS, but of another family than the requested local address.
    let (inside, target) = (Path::within(net.a_as, 1472), "::1".parse().unwrap());
    let error = pinger.echo(target, &inside, 0, timeout).await.unwrap_err();
    assert!(error.to_string().contains("of another family"), "{error}");
    // Without a requested address, one of that family is found.
    let pinger = Requests::bind(&host, None, next_hop(&inside, target)).unwrap();
    assert_eq!(pinger.local_addr().host.ip(), target);
}
