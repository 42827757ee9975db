use super::*;

const HERE: u16 = 1;
const THERE: u16 = 2;

fn addr(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

/// Two endpoints that hear each other at once.
struct Pair {
    here: Endpoint,
    there: Endpoint,
    now: Instant,
}

fn packets(endpoint: &mut Endpoint, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut packets = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = endpoint.transmit(&mut out, 10, now) {
        let chunks = out.chunks(transmit.stride);
        packets.extend(chunks.map(|it| (transmit.to, it.to_vec())));
        out.clear();
    }
    packets
}

impl Pair {
    fn new(config: Config) -> Self {
        let now = Instant::now();
        Self {
            here: Endpoint::new(config, Rng::with_seed(1), now),
            there: Endpoint::new(config, Rng::with_seed(2), now),
            now,
        }
    }

    fn exchange(&mut self) {
        loop {
            let sent = packets(&mut self.here, self.now);
            let answered = packets(&mut self.there, self.now);
            if sent.is_empty() && answered.is_empty() {
                return;
            }
            for (_, packet) in sent {
                self.there.receive(addr(HERE), &packet, self.now);
            }
            for (_, packet) in answered {
                self.here.receive(addr(THERE), &packet, self.now);
            }
        }
    }

    fn connect(&mut self) -> Handle {
        self.here.connect(addr(THERE), self.now).unwrap()
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.here.advance(self.now);
        self.there.advance(self.now);
        self.exchange();
    }
}

fn events(endpoint: &mut Endpoint) -> Vec<Event> {
    std::iter::from_fn(|| endpoint.poll()).collect()
}

#[test]
fn a_connection_is_opened_used_and_closed() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    assert!(!pair.here.is_connected(here));
    pair.exchange();
    assert!(pair.here.is_connected(here));
    assert_eq!(events(&mut pair.here), [Event::Writable(here)]);
    assert_eq!(events(&mut pair.there), [Event::Incoming]);
    let (there, from) = pair.there.accept().unwrap();
    assert_eq!(from, addr(HERE));
    assert_eq!(pair.here.write(here, b"request", pair.now), Ok(7));
    pair.exchange();
    assert_eq!(events(&mut pair.there), [Event::Readable(there)]);
    let mut room = [0; 100];
    assert_eq!(
        pair.there.read(there, &mut room, pair.now),
        Ok(Read::Bytes(7))
    );
    assert_eq!(
        pair.there.read(there, &mut room, pair.now),
        Ok(Read::Blocked)
    );
    // One direction ends, the other is used further.
    pair.here.finish(here, pair.now);
    pair.exchange();
    assert_eq!(pair.there.read(there, &mut room, pair.now), Ok(Read::End));
    assert_eq!(pair.there.write(there, b"answer", pair.now), Ok(6));
    pair.there.close(there, pair.now);
    pair.exchange();
    assert_eq!(
        pair.here.read(here, &mut room, pair.now),
        Ok(Read::Bytes(6))
    );
    assert_eq!(pair.here.read(here, &mut room, pair.now), Ok(Read::End));
    pair.here.close(here, pair.now);
    pair.pass(Duration::from_secs(10));
    assert_eq!((pair.here.kept(), pair.there.kept()), ((0, 0), (0, 0)));
    assert_eq!(pair.here.next_due(), None);
}

#[test]
fn an_unknown_connection_is_reset_and_the_user_hears_why() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    pair.exchange();
    pair.there = Endpoint::new(Config::default(), Rng::with_seed(3), pair.now);
    pair.here.write(here, b"lost", pair.now).unwrap();
    pair.exchange();
    let mut room = [0; 10];
    assert_eq!(pair.here.closed(here), Some(CloseReason::Reset));
    assert_eq!(
        pair.here.read(here, &mut room, pair.now),
        Err(CloseReason::Reset)
    );
    assert_eq!(
        pair.here.write(here, b"more", pair.now),
        Err(CloseReason::Reset)
    );
    // An endpoint that takes no connections says so.
    pair.there.config.backlog = 0;
    let refused = pair.connect();
    pair.exchange();
    assert_eq!(pair.here.closed(refused), Some(CloseReason::Refused));
}

#[test]
fn a_connection_that_is_given_up_is_withdrawn() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    for (_, packet) in packets(&mut pair.here, pair.now) {
        pair.there.receive(addr(HERE), &packet, pair.now);
    }
    pair.here.close(here, pair.now);
    pair.exchange();
    assert!(pair.there.accept().is_none());
    assert_eq!((pair.here.kept(), pair.there.kept()), ((0, 0), (0, 0)));
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    let mut syns = packets(&mut pair.here, pair.now).len();
    while let Some(due) = pair.here.next_due() {
        pair.now = due.max(pair.now);
        pair.here.advance(pair.now);
        syns += packets(&mut pair.here, pair.now).len();
    }
    assert_eq!(
        (syns, pair.here.closed(here)),
        (4, Some(CloseReason::TimedOut))
    );
}

#[test]
fn connections_are_bounded_and_a_flood_of_syns_leaves_nothing() {
    let config = Config {
        backlog: 5,
        max_connections: 8,
        ..Config::default()
    };
    let mut pair = Pair::new(config);
    let header = |id: u16, kind| Header {
        kind,
        connection_id: id * 2,
        timestamp: 0,
        timestamp_difference: 0,
        window: 1000,
        sequence: 1,
        acknowledged: 0,
    };
    let mut received = 0;
    for id in 0..1000 {
        let mut syn = Vec::new();
        header(id, PacketKind::Syn).write(&[], &mut syn);
        received += syn.len();
        pair.there.receive(addr(HERE), &syn, pair.now);
    }
    assert_eq!(pair.there.kept().1, 5);
    let answers = packets(&mut pair.there, pair.now);
    assert_eq!(answers.len(), 5);
    // What is written before the address is confirmed is not sent.
    let (there, _) = pair.there.accept().unwrap();
    pair.there.write(there, &[0; 5000], pair.now).unwrap();
    assert_eq!(packets(&mut pair.there, pair.now), []);
    // Answers are no larger than what they answer, and the number that waits is bounded.
    for id in 0..1000 {
        let mut data = Vec::new();
        header(id + 5000, PacketKind::Data).write(&[], &mut data);
        received += data.len();
        pair.there.receive(addr(HERE), &data, pair.now);
    }
    let resets = packets(&mut pair.there, pair.now);
    assert_eq!(resets.len(), MAX_REPLIES);
    let sent = answers.iter().chain(&resets).map(|it| it.1.len());
    assert!(sent.sum::<usize>() <= received);
    while let Some(due) = pair.there.next_due() {
        pair.now = due.max(pair.now);
        pair.there.advance(pair.now);
        packets(&mut pair.there, pair.now);
    }
    assert_eq!(pair.there.kept().1, 1, "that which was accepted");
    pair.there.close(there, pair.now);
    assert_eq!(pair.there.kept().1, 0);
    for _ in 0..8 {
        pair.connect();
    }
    let error = pair.here.connect(addr(THERE), pair.now).unwrap_err();
    assert_eq!(error, ConnectError::TooMany(8));
}

#[test]
fn a_repeated_syn_opens_one_connection_and_another_one_of_the_same_number_none() {
    let mut pair = Pair::new(Config::default());
    pair.connect();
    let syn = packets(&mut pair.here, pair.now).remove(0).1;
    for _ in 0..3 {
        pair.there.receive(addr(HERE), &syn, pair.now);
    }
    assert_eq!(pair.there.kept().1, 1);
    assert_eq!(packets(&mut pair.there, pair.now).len(), 1);
    // Also long after it was answered.
    pair.now += Duration::from_secs(2);
    pair.here.advance(pair.now);
    pair.there.receive(addr(HERE), &syn, pair.now);
    pair.exchange();
    pair.there.receive(addr(HERE), &syn, pair.now);
    let (here, there) = (pair.here.kept().1, pair.there.kept().1);
    assert_eq!((here, there), (1, 1));
    let answer = packets(&mut pair.there, pair.now).remove(0).1;
    let header = Packet::parse(&answer).unwrap().header;
    assert_eq!(header.kind, PacketKind::State);
    let mut other = syn;
    other[16] ^= 1;
    pair.there.receive(addr(HERE), &other, pair.now);
    let answer = packets(&mut pair.there, pair.now).remove(0).1;
    assert_eq!(
        Packet::parse(&answer).unwrap().header.kind,
        PacketKind::Reset
    );
    assert_eq!(pair.there.kept().1, 1);
}

#[test]
fn forged_packets_do_not_end_a_connection_or_confirm_what_was_not_sent() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    pair.exchange();
    pair.here.write(here, b"bytes", pair.now).unwrap();
    let ids = pair.here.connections[&here].connection.ids;
    for kind in [PacketKind::Reset, PacketKind::State, PacketKind::Fin] {
        let sent = packets(&mut pair.here, pair.now);
        let last = sent
            .first()
            .map_or(0, |it| Packet::parse(&it.1).unwrap().header.sequence);
        let mut forged = Vec::new();
        let header = Header {
            kind,
            connection_id: ids.receive,
            timestamp: 9,
            timestamp_difference: 9,
            window: 9,
            sequence: 77,
            acknowledged: last.wrapping_add(5000),
        };
        header.write(&[], &mut forged);
        pair.here.receive(addr(THERE), &forged, pair.now);
        assert_eq!(pair.here.closed(here), None);
    }
    // A reset from another address is not for this connection.
    pair.here.receive(
        addr(9),
        &reset_for(&Header {
            kind: PacketKind::State,
            connection_id: ids.receive,
            timestamp: 0,
            timestamp_difference: 0,
            window: 0,
            sequence: 0,
            acknowledged: 0,
        }),
        pair.now,
    );
    assert_eq!(pair.here.closed(here), None);
}

#[test]
fn only_the_answer_to_the_syn_connects() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    let syn = packets(&mut pair.here, pair.now).remove(0).1;
    let syn = Packet::parse(&syn).unwrap().header;
    for (kind, behind, connects) in [
        (PacketKind::State, 1, false),
        (PacketKind::Data, 0, false),
        (PacketKind::State, u16::MAX, false),
        (PacketKind::State, 0, true),
    ] {
        let mut answer = Vec::new();
        let header = Header {
            kind,
            acknowledged: syn.sequence.wrapping_sub(behind),
            sequence: 99,
            ..syn
        };
        header.write(&[], &mut answer);
        pair.here.receive(addr(THERE), &answer, pair.now);
        assert_eq!(pair.here.is_connected(here), connects);
    }
}

#[test]
fn silent_connections_stay_while_the_peer_is_there_and_end_without_it() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    pair.exchange();
    let (there, _) = pair.there.accept().unwrap();
    for _ in 0..120 {
        pair.pass(Duration::from_secs(5));
    }
    assert_eq!(
        (pair.here.closed(here), pair.there.closed(there)),
        (None, None)
    );
    let end = pair.now + Duration::from_secs(200);
    while let Some(due) = pair.here.next_due().filter(|due| *due <= end) {
        pair.now = due.max(pair.now);
        pair.here.advance(pair.now);
        packets(&mut pair.here, pair.now);
    }
    assert_eq!(pair.here.closed(here), Some(CloseReason::TimedOut));
}

#[test]
fn an_endpoint_that_ends_tells_its_peers() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    pair.exchange();
    let (there, _) = pair.there.accept().unwrap();
    pair.there.abort(pair.now);
    pair.exchange();
    assert_eq!(pair.here.closed(here), Some(CloseReason::Reset));
    assert_eq!(pair.there.closed(there), Some(CloseReason::Closed));
}

#[test]
fn no_datagram_panics_and_memory_stays_bounded() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    pair.exchange();
    pair.here.write(here, &[1; 9000], pair.now).unwrap();
    let mut valid: Vec<Vec<u8>> = packets(&mut pair.here, pair.now)
        .into_iter()
        .map(|it| it.1)
        .collect();
    let (there, _) = pair.there.accept().unwrap();
    pair.there.write(there, &[2; 9000], pair.now).unwrap();
    let peers = packets(&mut pair.there, pair.now);
    valid.extend(peers.into_iter().map(|it| it.1));
    hawser_fuzz::fuzz(&valid, |input| {
        pair.now += Duration::from_micros(300);
        for endpoint in [&mut pair.here, &mut pair.there] {
            for from in [HERE, THERE] {
                endpoint.receive(addr(from), input, pair.now);
            }
            endpoint.advance(pair.now);
            packets(endpoint, pair.now);
            while endpoint.accept().is_some() {}
            let (kept, connections) = endpoint.kept();
            assert!(connections <= 600 && kept <= connections * (3 << 20));
            events(endpoint);
        }
    });
}

#[test]
fn a_connection_that_is_closed_before_its_syn_was_sent_is_gone() {
    let mut pair = Pair::new(Config::default());
    let here = pair.connect();
    pair.here.close(here, pair.now);
    pair.exchange();
    assert_eq!((pair.here.kept(), pair.there.kept()), ((0, 0), (0, 0)));
    let here = pair.connect();
    pair.exchange();
    assert!(pair.here.is_connected(here));
}
