//! Control streams of connections over the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use hawser_endhost::Endhost;
use hawser_endhost::lanes::Lanes;
use hawser_endhost::socket::Socket;
use hawser_quic::{Config, Endpoint};
use hawser_seal::{Cipher, SECRET};
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::address::Block;
use crate::carrier::lane::{LaneKeys, NewLane};
use crate::carrier::table::SlotTable;
use crate::link::Role;
use crate::protocol::RefusalCode;
use crate::protocol::datagram::FORMAT;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A connection, the dialing side first.
async fn connect(host: &Endhost, ends: &(Endpoint, Endpoint)) -> (Connection, Connection) {
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (there, here) = tokio::join!(ends.0.connect(ends.1.local_addr(), path), ends.1.accept());
    (there.unwrap(), here.unwrap())
}

#[tokio::test]
async fn a_refusal_is_read_though_there_is_more_to_send_and_the_connection_is_closed() {
    let host = Endhost::on_plain_ip(None);
    let bind = || Endpoint::bind(host.clone(), Some(ANY), Config::default()).unwrap();
    let ends = (bind(), bind());
    let socket = Socket::bind_blocking(&host, Some(ANY)).unwrap();
    let (lanes, _receiver) = Lanes::new(socket, FORMAT);
    let refusal = Message::Refuse {
        code: RefusalCode::KEY,
        text: "the key is not allowed here".to_owned(),
    };
    // Which of both is done first is a matter of chance.
    for round in 0..16 {
        let (client, server) = connect(&host, &ends).await;
        let remote = client.peer();
        let mut control = Control::open(client).await.unwrap();
        control.write(&Message::Bye).await.unwrap();
        let mut other = Control::accept(server).await.unwrap();
        other.read().await.unwrap();
        other.write(&refusal).await.unwrap();
        other.finish().await;
        control.connection.closed().await;

        let (messages, outgoing) = unbounded_channel();
        let (events, mut happened) = unbounded_channel();
        let (received, mut arrived) = unbounded_channel();
        let [own, peer] = [1, 2].map(|tag| Block::of(&control.connection.peer_key(), tag));
        let lane = Arc::new(SealedLane::new(NewLane {
            key: LaneKey(round),
            keys: LaneKeys {
                cipher: Cipher::Aes128Gcm,
                here: [0; SECRET],
                there: [0; SECRET],
            },
            remote,
            table: Arc::new(SlotTable::new(Role::Client, own, peer)),
            sender: lanes.sender(),
            messages,
            events,
            began: Instant::now(),
        }));
        lane.send(Message::Bye);
        control.run(lane, outgoing, received).await;
        let first = arrived.try_recv().ok();
        assert_eq!(first, Some((LaneKey(round), refusal.clone())));
        assert!(matches!(happened.try_recv(), Ok((_, LaneEvent::Failed(_)))));
    }
}
