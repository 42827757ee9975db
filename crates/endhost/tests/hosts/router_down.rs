//! A border router that stops and starts again.

use std::future::poll_fn;
use std::sync::Arc;

use hawser_endhost::socket::{Arrival, ReceiveBuffer, Socket};
use hawser_endhost::{Headers, Path, ScionAddr};
use tokio::net::UdpSocket;
use tokio::sync::watch;

use crate::paths;
use crate::toy::{MTU, ToyNet, own_ip};

/// Waits until `count` paths are watched.
async fn until(watch: &mut watch::Receiver<Arc<Vec<Path>>>, count: usize) -> Path {
    let paths = paths::until(watch, count).await;
    paths
        .first()
        .cloned()
        .unwrap_or_else(|| Path::within(hawser_endhost::IsdAsn::WILDCARD, MTU))
}

fn send(socket: &Socket, headers: &Headers, payload: &[u8]) -> std::io::Result<usize> {
    socket.try_send(headers, payload, payload.len(), 0, &mut Vec::new())
}

#[tokio::test]
async fn a_missing_router_is_reported_by_the_first_packet() {
    let mut net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let socket = Socket::bind(&host, Some((own_ip(40), 0).into())).unwrap();
    let mut watch = host.watch(net.b_as);
    let path = until(&mut watch, 1).await;
    let mut outages = host.outages();
    let peer = ScionAddr::new(net.b_as, (own_ip(41), 31000).into());
    let headers = Headers::new(socket.local_addr(), peer, &path).unwrap();
    net.stop_routers().await;
    // One packet is enough, without another send or receive.
    send(&socket, &headers, b"lost").unwrap();
    assert_eq!(outages.recv().await.unwrap().to_string(), "1-ff00:0:110#1");
    assert!(watch.borrow().is_empty());
    // The socket still works: the error about that packet affects no other one.
    let inside = Path::within(net.a_as, MTU);
    let other = Socket::bind(&host, Some((own_ip(42), 0).into())).unwrap();
    let within = Headers::new(socket.local_addr(), other.local_addr(), &inside).unwrap();
    for _ in 0..10 {
        send(&socket, &headers, b"lost").unwrap();
        send(&socket, &within, b"found").unwrap();
        socket.writable().await.unwrap();
    }
    let (mut found, mut buffer) = (0, ReceiveBuffer::default());
    while found < 10 {
        poll_fn(|cx| other.poll_receive(cx, &mut buffer))
            .await
            .unwrap();
        for arrival in other.packets(&mut buffer) {
            assert!(matches!(arrival, Arrival::Datagram(datagram) if datagram.payload == b"found"));
            found += 1;
        }
    }
    // The path is tried again, and works once the router is back.
    let router = UdpSocket::bind(net.router_a()).await.unwrap();
    until(&mut watch, 1).await;
    send(&socket, &headers, b"through").unwrap();
    let mut bytes = [0; 2000];
    let (length, from) = router.recv_from(&mut bytes).await.unwrap();
    assert!(bytes[..length].ends_with(b"through"));
    assert_eq!(from, socket.local_addr().host);
}

#[tokio::test]
async fn a_missing_peer_is_not_a_missing_router() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let socket = Socket::bind(&host, Some((own_ip(43), 0).into())).unwrap();
    let mut watch = host.watch(net.b_as);
    until(&mut watch, 1).await;
    // Inside the AS packets go to the peer itself, where no socket is bound.
    let peer = ScionAddr::new(net.a_as, (own_ip(44), 31000).into());
    let inside = Path::within(net.a_as, MTU);
    let headers = Headers::new(socket.local_addr(), peer, &inside).unwrap();
    for _ in 0..10 {
        send(&socket, &headers, b"lost").unwrap();
        socket.writable().await.unwrap();
    }
    assert_eq!(watch.borrow().len(), 1);
}
