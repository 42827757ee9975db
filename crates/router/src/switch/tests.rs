use std::io::IoSliceMut;
use std::sync::Arc;

use hawser_topology::LinkTo;
use noq_udp::{RecvMeta, UdpSocketState};

use super::*;
use crate::forwarder::ExternalInterface;
use crate::port::Port;
use crate::shared::Shared;
use crate::testing::{KEY, packet};

/// The interface of [`packet`].
const EGRESS: u16 = 4;

fn bind() -> std::net::UdpSocket {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// A switch of one of `threads` with an internal port and an external one to a neighbour at `remote`.
fn switch(remote: SocketAddr, threads: usize, now: Instant) -> Switch {
    let forwarder = Forwarder::new("1-1".parse().unwrap(), &KEY, [10, 0, 1, 254].into());
    let external = ExternalInterface {
        neighbour: "1-2".parse().unwrap(),
        link_to: LinkTo::Child,
        max_packet: None,
        up: true,
    };
    let ports = [(INTERNAL as u16, None), (EGRESS, Some(remote))];
    let ports =
        ports.map(|(id, remote)| Port::new(id, (bind(), remote), 1, Arc::new(Shared::new(now))));
    let thread = Thread {
        number: 0,
        count: threads,
    };
    let forwarder = forwarder.with_interface(EGRESS, external);
    Switch::new(forwarder, ports.into(), Neighbours::new(Vec::new()), thread)
}

const FLOWS: u8 = 50;
const ROUNDS: usize = 4;

/// Lets a switch of one of `threads` forward the packets of all flows to `neighbour`, those of each flow one by
/// one. Returns their length.
fn forward(neighbour: &std::net::UdpSocket, threads: usize) -> usize {
    let (host, now) = (bind(), Instant::now());
    let mut switch = switch(neighbour.local_addr().unwrap(), threads, now);
    let to = switch.ports[INTERNAL].socket.local_addr().unwrap();
    let ends = ["1-1,10.0.1.1:31000", "1-2,10.0.2.1:31001"];
    let mut packet = packet(ends, true, unix_time() as u32, &[1; 50]);
    for _ in 0..ROUNDS {
        for flow in 0..FLOWS {
            packet[3] = flow;
            host.send_to(&packet, to).unwrap();
        }
    }
    // Loopback has delivered them.
    let received = switch.receive(&mut vec![INTERNAL], now);
    assert_eq!(received, ROUNDS * usize::from(FLOWS));
    packet.len()
}

#[test]
fn packets_of_a_flow_leave_together() {
    let neighbour = bind();
    forward(&neighbour, 1);
    let mut buffer = [0; 2048];
    let arrived = std::iter::from_fn(|| neighbour.recv(&mut buffer).ok().map(|_| buffer[3]));
    let arrived: Vec<u8> = arrived.collect();
    let together = (0..FLOWS).flat_map(|flow| [flow; ROUNDS]);
    assert_eq!(arrived, together.collect::<Vec<_>>());
}

#[test]
fn small_batches_of_many_flows_leave_as_few_large_ones() {
    // Each send arrives as one batch. Threads do not mix flows: each has its own.
    for (threads, at_once) in [(1, 16 * ROUNDS), (2, ROUNDS)] {
        let neighbour = bind();
        let state = UdpSocketState::new((&neighbour).into()).unwrap();
        let length = forward(&neighbour, threads);
        let mut left = ROUNDS * usize::from(FLOWS);
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            let mut meta = [RecvMeta::default()];
            let slices = &mut [IoSliceMut::new(&mut buffer)];
            state.recv((&neighbour).into(), slices, &mut meta).unwrap();
            assert_eq!(meta[0].len, length * at_once.min(left));
            left -= meta[0].len / length;
        }
    }
}
