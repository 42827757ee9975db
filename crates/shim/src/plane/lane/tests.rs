//! Lanes over the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};

use hawser_endhost::Endhost;
use hawser_endhost::lanes::{LaneReceiver, Lanes};
use hawser_endhost::socket::Socket;
use hawser_keys::PeerKey;
use hawser_session::{MessageQueue, message_queue};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::address::Block;
use crate::protocol::datagram::FORMAT;
use crate::protocol::{Epoch, Role};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A socket for datagrams on plain IP.
pub(crate) struct Bed {
    pub host: Endhost,
    lanes: Lanes,
    _receiver: LaneReceiver,
}

/// A lane, and what it sends over its connection and to its session.
pub(crate) struct Made {
    pub lane: Arc<SealedLane>,
    pub outgoing: MessageQueue<Message>,
    pub events: UnboundedReceiver<(LaneKey, LaneEvent)>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let host = Endhost::on_plain_ip(None);
        let socket = Socket::bind_blocking(&host, Some(ANY)).unwrap();
        let (lanes, receiver) = Lanes::new(socket, FORMAT);
        Self {
            host,
            lanes,
            _receiver: receiver,
        }
    }

    /// A lane to this socket itself, in a session of its own.
    pub(crate) fn lane(&self, number: u64) -> Made {
        let (messages, outgoing) = message_queue();
        let (events, happened) = unbounded_channel();
        let [own, peer] = [1, 2].map(|tag| Block::of(&PeerKey([7; 32]), tag));
        let new = NewLane {
            key: LaneKey(number),
            keys: LaneKeys {
                cipher: Cipher::Aes128Gcm,
                here: [0; SECRET],
                there: [0; SECRET],
            },
            remote: self.lanes.socket().local_addr(),
            table: Arc::new(SlotTable::new(Role::Server, own, peer)),
            sender: self.lanes.sender(),
            messages,
            events,
        };
        let lane = Arc::new(SealedLane::new(new, Instant::now()));
        Made {
            lane,
            outgoing,
            events: happened,
        }
    }

    async fn open(&self, lane: &Arc<SealedLane>) {
        let path = self
            .host
            .paths(self.host.local_as())
            .await
            .unwrap()
            .remove(0);
        lane.set_path(self.lanes.open(lane.remote, path).unwrap());
    }
}

fn bound(epoch: u8) -> SlotEpoch {
    SlotEpoch {
        slot: 1,
        epoch: Epoch(epoch),
        ecn: 0,
    }
}

#[tokio::test]
async fn a_late_datagram_does_not_put_a_removed_lane_under_its_slot_again() {
    let bed = Bed::new();
    let lane = bed.lane(1).lane;
    let table = Arc::clone(&lane.table);
    assert!(table.learn(bound(1), &lane));
    lane.close();
    assert_eq!(table.unbind(lane.key).len(), 1);
    assert!(!table.learn(bound(2), &lane));
    assert!(table.binding(1).is_none());

    // Whichever of both is first.
    for number in 2..200 {
        let lane = bed.lane(number).lane;
        let table = Arc::clone(&lane.table);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for epoch in 1..20 {
                    table.learn(bound(epoch), &lane);
                }
            });
            lane.close();
            table.unbind(lane.key);
        });
        assert!(table.binding(1).is_none());
    }
}

#[tokio::test]
async fn what_was_dropped_does_not_count_as_sent() {
    let bed = Bed::new();
    let lane = bed.lane(1).lane;
    bed.open(&lane).await;
    lane.probe(bound(1), 1000, true);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counters = &lane.counters;
    assert_eq!(
        (count(&counters.sent_packets), count(&counters.dropped)),
        (1, 0)
    );
    // Larger than any datagram.
    lane.probe(bound(1), 100_000, true);
    assert_eq!(
        (count(&counters.sent_packets), count(&counters.dropped)),
        (1, 1)
    );
    assert_eq!(count(&counters.sent_bytes), 1000);
}

#[tokio::test]
async fn what_waits_for_the_connection_is_bounded() {
    let made = Bed::new().lane(1);
    for _ in 0..2000 {
        made.lane.push_packet(&[0; 1300]);
    }
    // Each with its type and length.
    let (size, waiting) = (1303, made.lane.messages.waiting());
    assert_eq!(waiting, MAX_WAITING_PACKETS.next_multiple_of(size));
    let dropped = made.lane.counters.dropped.load(Ordering::Relaxed);
    assert_eq!(dropped as usize, 2000 - waiting / size);
    // What the session says does not wait behind them.
    made.lane.send(Message::Bye);
    assert_eq!(made.lane.messages.waiting(), waiting + 3);
    // So is what the session learns.
    for _ in 0..10 {
        made.lane.report(LaneEvent::Bound);
        made.lane.report(LaneEvent::Failed("again".to_owned()));
    }
    assert_eq!(made.events.len(), 2);
    made.lane.on_bound_handled();
    made.lane.report(LaneEvent::Bound);
    assert_eq!(made.events.len(), 3);
}
