//! Over the loopback interface.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hawser_endhost::Endhost;
use hawser_endhost::lanes::{LaneReceiver, PacketFormat};
use hawser_endhost::socket::Socket;

use super::*;

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// No packet is one of ours.
const FORMAT: PacketFormat = PacketFormat {
    token: |_| None,
    min_payload: 1200,
};

fn lanes(host: &Endhost) -> (Lanes, LaneReceiver) {
    let socket = Socket::bind_blocking(host, Some(ANY)).unwrap();
    Lanes::new(socket, FORMAT)
}

/// What the datagrams show that arrive next, each a subflow named by its first byte; `known` are those over
/// which some had opened before.
async fn next(receiver: &mut LaneReceiver, known: &[u8]) -> Sightings<u8> {
    let mut sightings = Sightings::default();
    let arriving = async {
        loop {
            match receiver.try_receive() {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    let arrived = tokio::time::timeout(PATIENCE, arriving).await;
    arrived.expect("a datagram arrives");
    for datagram in receiver.batch() {
        let subflow = datagram.payload[0];
        sightings.opened(&datagram, known.contains(&subflow), None, || subflow);
    }
    sightings
}

#[tokio::test]
async fn a_first_datagram_has_a_lane_to_its_sender_and_to_nobody_else() {
    let host = Endhost::on_plain_ip(None);
    let ((dialed, mut receiver), (dialing, _kept)) = (lanes(&host), lanes(&host));
    let [here, there] = [&dialed, &dialing].map(|lanes| lanes.socket().local_addr());
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (lane, mut sender) = (dialing.open(here, path).unwrap(), dialing.sender());

    sender.try_send(lane.flow(), &[7; 100], 100, 0).unwrap();
    let first = next(&mut receiver, &[]).await.apply(&dialed);
    let [first] = &first[..] else {
        panic!("{first:?}");
    };
    assert_eq!(first.subflow, 7);
    assert!(first.accept(&dialed, here).is_none());
    let back = first.accept(&dialed, there).unwrap();
    assert_eq!(back.remote(), there);

    // Of a subflow that is known, no lane is asked for.
    sender.try_send(lane.flow(), &[7; 100], 100, 0).unwrap();
    assert!(next(&mut receiver, &[7]).await.apply(&dialed).is_empty());
}
