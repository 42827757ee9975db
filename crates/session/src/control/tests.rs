//! Control streams over the loopback interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use bytes::Bytes;
use hawser_endhost::Endhost;
use hawser_quic::{Config, Endpoint};
use proptest::prelude::*;

use super::*;

/// What a message of the tests has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    /// A report of one of two states.
    Report(bool, u8),
}

/// A message whose length takes `N` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestMessage<const N: usize>(pub Body);

pub(super) type Short = TestMessage<2>;
pub(super) type Long = TestMessage<4>;

/// The type of a message, which is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("its type {0:?} is unknown")]
pub(super) struct Unknown(Option<u8>);

impl<const N: usize> ControlMessage for TestMessage<N> {
    type Error = Unknown;

    const MAX_LENGTH: usize = 65_535;

    fn encode_body(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Body::Bytes(bytes) => {
                out.push(1);
                out.extend(bytes);
            }
            Body::Report(state, value) => out.extend([2 + u8::from(*state), *value]),
        }
    }

    fn decode_body(body: Bytes) -> Result<Self, Unknown> {
        match *body {
            [1, ref bytes @ ..] => Ok(Self(Body::Bytes(bytes.to_vec()))),
            [state @ 2..=3, value] => Ok(Self(Body::Report(state == 3, value))),
            _ => Err(Unknown(body.first().copied())),
        }
    }

    fn encode_length(length: usize, out: &mut Vec<u8>) {
        out.extend(&(length as u64).to_be_bytes()[8 - N..]);
    }

    fn decode_length(bytes: &[u8]) -> Option<(u64, usize)> {
        let bytes = bytes.get(..N)?.iter();
        Some((
            bytes.fold(0, |length, byte| (length << 8) | u64::from(*byte)),
            N,
        ))
    }

    fn reported_state(&self) -> Option<u8> {
        match self.0 {
            Body::Bytes(_) => None,
            Body::Report(state, _) => Some(state.into()),
        }
    }
}

pub(super) fn bodies() -> impl Strategy<Value = Body> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60).prop_map(Body::Bytes),
        any::<(bool, u8)>().prop_map(|(state, value)| Body::Report(state, value)),
    ]
}

fn bytes(bytes: &[u8]) -> Short {
    TestMessage(Body::Bytes(bytes.to_vec()))
}

/// A message that needs room in the peer's window.
fn large() -> Short {
    bytes(&[7; 60_000])
}

proptest! {
    #[test]
    fn messages_survive_in_any_pieces(
        bodies in prop::collection::vec(bodies(), 1..10),
        pieces in prop::collection::vec(1..50_usize, 1..20),
    ) {
        let mut bytes = Vec::new();
        let messages: Vec<_> = bodies.into_iter().map(TestMessage::<4>).collect();
        messages.iter().for_each(|message| message.encode(&mut bytes));
        let (mut framing, mut popped, mut rest) = (Framing::<Long>::default(), Vec::new(), &bytes[..]);
        for piece in pieces.iter().cycle() {
            let (piece, after) = rest.split_at(rest.len().min(*piece));
            framing.push(piece);
            while let Some(message) = framing.pop().unwrap() {
                popped.push(message);
            }
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert!(framing.is_empty());
        prop_assert_eq!(popped, messages);
    }

    #[test]
    fn what_waits_is_counted_and_only_reports_are_replaced(
        steps in prop::collection::vec(prop::option::weighted(0.8, bodies()), 0..40),
    ) {
        let (sender, mut queue) = message_queue::<Short>();
        let (mut sent, mut taken) = (Vec::new(), Framing::<Short>::default());
        let mut written = 0;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for step in steps {
            match step {
                Some(body) => {
                    sender.send(&TestMessage(body.clone()));
                    sent.push(body);
                }
                None if sender.waiting() > written => {
                    let bytes = runtime.block_on(queue.next()).unwrap();
                    written = bytes.len();
                    prop_assert_eq!(sender.waiting(), written);
                    taken.push(&bytes);
                }
                None => {}
            }
        }
        sender.close();
        sender.send(&bytes(b"too late"));
        while let Some(bytes) = runtime.block_on(queue.next()) {
            taken.push(&bytes);
        }
        prop_assert_eq!(sender.waiting(), 0);
        let received: Vec<_> = std::iter::from_fn(|| taken.pop().unwrap()).map(|one| one.0).collect();
        let all = |bodies: &[Body]| bodies.iter().filter(|one| matches!(one, Body::Bytes(_))).cloned().collect::<Vec<_>>();
        prop_assert_eq!(all(&received), all(&sent));
        for of in [false, true] {
            let last = |bodies: &[Body]| bodies.iter().rev().find(|one| matches!(one, Body::Report(state, _) if *state == of)).cloned();
            prop_assert_eq!(last(&received), last(&sent));
        }
    }
}

#[test]
fn too_long_messages_are_refused_before_they_arrive() {
    let mut framing = Framing::<Long>::default();
    framing.push(&65_536_u32.to_be_bytes());
    let error = ControlError::TooLong {
        length: 65_536,
        max: 65_535,
    };
    assert_eq!(framing.pop(), Err(error));
}

#[tokio::test]
async fn of_reports_one_waits_and_of_others_as_many_bytes_as_the_sender_allows() {
    let (sender, mut queue) = message_queue::<Short>();
    for value in 0..200 {
        sender.send(&TestMessage(Body::Report(false, value)));
        sender.send(&TestMessage(Body::Report(true, value)));
    }
    // With their lengths.
    assert_eq!(sender.waiting(), 2 * (2 + 2));
    let sent = (0..1000)
        .filter(|_| sender.try_send(&large(), 1 << 20))
        .count();
    assert_eq!(sent, (1_usize << 20).div_ceil(60_003));
    // What was taken counts until it is written.
    let before = sender.waiting();
    let taken = queue.next().await.unwrap();
    assert!(taken.len() < before && sender.waiting() == before);
    assert!(!sender.try_send(&large(), 1 << 20));
    queue.next().await.unwrap();
    assert_eq!(sender.waiting(), before - taken.len());
    assert!(sender.try_send(&large(), 1 << 20));
    // A last message takes the place of what was not taken.
    sender.close_with(&bytes(b"last"));
    assert!(!sender.try_send(&large(), usize::MAX));
    let mut framing = Framing::<Short>::default();
    framing.push(&queue.next().await.unwrap());
    assert_eq!(framing.pop(), Ok(Some(bytes(b"last"))));
    assert_eq!((queue.next().await, sender.waiting()), (None, 0));
}

/// Two endpoints on plain IP.
struct Bed {
    host: Endhost,
    ends: (Endpoint, Endpoint),
}

/// What arrives at one side.
type Arrived = mpsc::Receiver<Short>;

impl Bed {
    fn new() -> Self {
        let host = Endhost::on_plain_ip(None);
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let bind = || Endpoint::bind(host.clone(), Some(any), Config::default()).unwrap();
        let ends = (bind(), bind());
        Self { host, ends }
    }

    /// A connection, the dialing side first.
    async fn connect(&self) -> (Connection, Connection) {
        let path = self
            .host
            .paths(self.host.local_as())
            .await
            .unwrap()
            .remove(0);
        let (client, server) = &self.ends;
        let (there, here) =
            tokio::join!(client.connect(server.local_addr(), path), server.accept());
        (there.unwrap(), here.unwrap())
    }

    /// The control stream of a new connection on both sides, after a first message.
    async fn control(&self) -> (Control<Short>, Control<Short>) {
        let (client, server) = self.connect().await;
        let mut control = Control::open(client).await.unwrap();
        control.write(&bytes(b"first")).await.unwrap();
        let (other, first) = Control::accept(server).await.unwrap();
        assert_eq!(first, Ok(bytes(b"first")));
        (control, other)
    }
}

type Running = tokio::task::JoinHandle<Result<(), ControlError<Unknown>>>;

/// Runs a stream with an inbox for `room` messages.
fn run(control: Control<Short>, room: usize) -> (MessageSender<Short>, Arrived, Running) {
    let (sender, queue) = message_queue();
    let (inbox, arrived) = mpsc::channel(room);
    let running = tokio::spawn(control.run(queue, inbox, |message| message));
    (sender, arrived, running)
}

#[tokio::test]
async fn a_peer_that_writes_nothing_is_not_waited_for_for_ever() {
    let bed = Bed::new();
    let (client, server) = bed.connect().await;
    let began = Instant::now();
    let first = Control::<Short>::accept(server).await;
    assert_eq!(first.err(), Some(ControlError::Silent));
    assert!(began.elapsed() >= FIRST_MESSAGE_TIMEOUT);
    drop(client);
}

#[tokio::test]
async fn what_is_no_message_can_be_refused() {
    let bed = Bed::new();
    let cases = [
        (
            &[0, 2, 9, 9][..],
            false,
            ControlError::Invalid(Unknown(Some(9))),
        ),
        (&[0, 0], false, ControlError::Invalid(Unknown(None))),
        (&[0, 9, 1], true, ControlError::Truncated),
    ];
    for (written, ends, error) in cases {
        let (client, server) = bed.connect().await;
        let mut control = Control::<Short>::open(client).await.unwrap();
        control.write_encoded(written).await.unwrap();
        if ends {
            control.send.finish().unwrap();
        }
        let (other, first) = Control::<Short>::accept(server).await.unwrap();
        assert_eq!(first, Err(error));
        let refused = tokio::spawn(async move { other.refuse(&bytes(b"no")).await });
        assert_eq!(control.read().await, Ok(bytes(b"no")));
        assert_eq!(control.read().await, Err(ControlError::Ended));
        refused.await.unwrap();
    }
}

#[tokio::test]
async fn messages_arrive_in_order_in_both_directions_up_to_the_end() {
    let bed = Bed::new();
    let (control, other) = bed.control().await;
    let (client, mut at_client, client_runs) = run(control, 4);
    let (server, mut at_server, server_runs) = run(other, 4);
    for number in 0..200 {
        client.send(&bytes(&[number]));
        server.send(&large());
    }
    let received = async {
        for number in 0..200 {
            assert_eq!(at_server.recv().await, Some(bytes(&[number])));
            assert_eq!(at_client.recv().await, Some(large()));
        }
    };
    received.await;
    client.finish().await;
    assert_eq!(client_runs.await.unwrap(), Ok(()));
    // It has ended only for the other side.
    assert_eq!(server_runs.await.unwrap(), Err(ControlError::Ended));
    assert_eq!(at_server.recv().await, None);
}

#[tokio::test]
async fn both_sides_may_end_at_once() {
    let bed = Bed::new();
    for _ in 0..16 {
        let (control, other) = bed.control().await;
        let (client, mut at_client, client_runs) = run(control, 4);
        let (server, mut at_server, server_runs) = run(other, 4);
        client.send(&bytes(b"done"));
        server.send(&bytes(b"done"));
        assert_eq!(at_server.recv().await, Some(bytes(b"done")));
        assert_eq!(at_client.recv().await, Some(bytes(b"done")));
        let (one, two) = (client.finish(), server.finish());
        tokio::join!(one, two);
        assert_eq!(client_runs.await.unwrap(), Ok(()));
        assert_eq!(server_runs.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn no_more_is_read_than_there_is_room_for_and_the_sender_never_waits() {
    let bed = Bed::new();
    let (control, other) = bed.control().await;
    let (client, mut at_client, _runs) = run(control, 4);
    let (server, mut at_server, _runs_too) = run(other, 4);
    // More than the window of a connection on which nothing is read.
    let count = 1000;
    for _ in 0..count {
        client.send(&large());
    }
    // Nobody takes them, and still messages arrive in the other direction.
    for number in 0..20 {
        server.send(&bytes(&[number]));
        assert_eq!(at_client.recv().await, Some(bytes(&[number])));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(client.waiting() > 0);
    assert_eq!(at_server.len(), 4);
    for _ in 0..count {
        assert_eq!(at_server.recv().await, Some(large()));
    }
    assert_eq!(client.waiting(), 0);
}

#[tokio::test]
async fn what_arrived_before_the_connection_was_lost_is_passed_on_though_there_is_more_to_send() {
    let bed = Bed::new();
    // Which direction fails first is a matter of chance.
    for _ in 0..16 {
        let (control, other) = bed.control().await;
        let refused = tokio::spawn(async move { other.refuse(&bytes(b"no")).await });
        refused.await.unwrap();
        control.connection().closed().await;
        let (sender, queue) = message_queue();
        // Without room when the failure shows.
        let (inbox, mut arrived) = mpsc::channel(1);
        inbox.send(bytes(b"before")).await.unwrap();
        sender.send(&large());
        let running = tokio::spawn(control.run(queue, inbox, |message| message));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(arrived.recv().await, Some(bytes(b"before")));
        assert_eq!(arrived.recv().await, Some(bytes(b"no")));
        assert!(running.await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_peer_that_takes_nothing_is_left_after_a_while() {
    let bed = Bed::new();
    let (control, other) = bed.control().await;
    let (client, _at_client, client_runs) = run(control, 4);
    for _ in 0..1000 {
        client.send(&large());
    }
    let began = Instant::now();
    client.finish().await;
    assert!(began.elapsed() >= CLOSE_TIMEOUT);
    assert_eq!(client_runs.await.unwrap(), Ok(()));
    drop(other);
}

#[tokio::test]
async fn a_sender_whose_stream_has_ended_does_not_wait() {
    let (sender, queue) = message_queue::<Short>();
    sender.send(&bytes(b"nobody takes it"));
    drop(queue);
    sender.send(&bytes(b"nor this"));
    assert_eq!(sender.waiting(), 0);
    sender.finish().await;
}
