//! Control streams of connections over the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};

use hawser_endhost::Endhost;
use hawser_quic::{Config, Endpoint};
use tokio::sync::mpsc::channel;

use super::*;
use crate::plane::lane::tests::{Bed, Made};
use crate::protocol::RefusalCode;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The ends of connections.
fn ends(host: &Endhost) -> (Endpoint, Endpoint) {
    let bind = || Endpoint::bind(host.clone(), Some(ANY), Config::default()).unwrap();
    (bind(), bind())
}

/// A connection, the dialing side first.
async fn connect(host: &Endhost, ends: &(Endpoint, Endpoint)) -> (Connection, Connection) {
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (there, here) = tokio::join!(ends.0.connect(ends.1.local_addr(), path), ends.1.accept());
    (there.unwrap(), here.unwrap())
}

/// The control stream of a new connection on both sides, after a message from the dialing one.
async fn control(host: &Endhost, ends: &(Endpoint, Endpoint)) -> (Control, Control) {
    let (client, server) = connect(host, ends).await;
    let mut control = Control::open(client).await.unwrap();
    control.write(&Message::Bye).await.unwrap();
    let (other, first) = Control::accept(server).await.unwrap();
    assert_eq!(first, Ok(Message::Bye));
    (control, other)
}

fn refusal() -> Message {
    Message::Refuse {
        code: RefusalCode::KEY,
        text: "the key is not allowed here".to_owned(),
    }
}

#[tokio::test]
async fn a_refusal_is_read_though_there_is_more_to_send_and_the_connection_is_closed() {
    let bed = Bed::new();
    let ends = ends(&bed.host);
    // Which of both is done first is a matter of chance.
    for round in 0..16 {
        let (control, other) = control(&bed.host, &ends).await;
        let connection = control.connection().clone();
        other.refuse(&refusal()).await;
        connection.closed().await;

        let (received, mut arrived) = channel(4);
        let Made {
            lane,
            outgoing,
            mut events,
        } = bed.lane(round);
        lane.send(Message::Bye);
        run(control, lane, outgoing, received).await;
        let first = arrived.try_recv().ok();
        assert_eq!(first, Some((LaneKey(round), refusal())));
        assert!(matches!(events.try_recv(), Ok((_, LaneEvent::Failed(_)))));
    }
}

/// More than a connection takes that nobody reads from.
fn flood(lane: &SealedLane) {
    for _ in 0..400 {
        let packet = vec![0; 60_000];
        lane.send(Message::Packet { packet });
    }
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_still_heard() {
    let bed = Bed::new();
    let (control, mut other) = control(&bed.host, &ends(&bed.host)).await;
    let (received, mut arrived) = channel(4);
    let Made { lane, outgoing, .. } = bed.lane(1);
    flood(&lane);
    let running = tokio::spawn(run(control, Arc::clone(&lane), outgoing, received));
    for _ in 0..20 {
        other.write(&Message::Bye).await.unwrap();
        assert_eq!(arrived.recv().await, Some((LaneKey(1), Message::Bye)));
        // Its writes wait for room meanwhile.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    lane.close();
    running.await.unwrap();
}

#[tokio::test]
async fn the_last_message_of_a_closed_lane_arrives() {
    let bed = Bed::new();
    let ends = ends(&bed.host);
    for round in 0..16 {
        let (control, mut other) = control(&bed.host, &ends).await;
        let (received, _arrived) = channel(4);
        let Made { lane, outgoing, .. } = bed.lane(round);
        for _ in 0..round {
            let packet = vec![0; 60_000];
            lane.send(Message::Packet { packet });
        }
        let running = tokio::spawn(run(control, Arc::clone(&lane), outgoing, received));
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        lane.close_with(refusal());
        let last = loop {
            match other.read().await.unwrap() {
                Message::Packet { .. } => {}
                message => break message,
            }
        };
        assert_eq!(last, refusal());
        drop(other);
        running.await.unwrap();
    }
}
