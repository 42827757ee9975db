//! Datagrams without QUIC over lanes of two hosts, whose ASes have two links.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hawser_endhost::lanes::{
    Doubt, Evidence, FlowId, Lane, LaneEnd, LaneReceiver, LaneUser, Lanes, PacketFormat, Probing,
};
use hawser_endhost::socket::Socket;
use hawser_endhost::{Endhost, Headers, Path, ScionAddr};
use hawser_path::Interface;

use crate::toy::{MTU, ToyNet, own_ip, unix_now};

/// Longest wait for an event that must happen, far longer than it takes.
const LONGEST: Duration = Duration::from_secs(60);
/// Every payload begins with a token, like that of a transfer's session.
const FORMAT: PacketFormat = PacketFormat {
    token: |payload| payload.first_chunk().copied(),
    min_payload: 1000,
};
const TOKEN: &[u8; 8] = b"a secret";
/// Payloads sent at once: as many as a toy router's socket holds.
const BATCH: usize = 40;

fn bind(host: &Endhost, last: u8) -> (Lanes, LaneReceiver) {
    let socket = Socket::bind(host, Some((own_ip(last), 0).into())).unwrap();
    Lanes::new(socket, FORMAT)
}

/// Two hosts, with one lane over each link between them.
struct Hosts {
    net: ToyNet,
    a: (Endhost, Lanes, LaneReceiver),
    b: (Endhost, Lanes, LaneReceiver),
    lanes: Vec<Lane>,
}

async fn hosts(a: u8, b: u8) -> Hosts {
    let net = ToyNet::with_links(2).await;
    let (host_a, host_b) = (net.a.endhost().await, net.b.endhost().await);
    let (lanes_a, receiver_a) = bind(&host_a, a);
    let (lanes_b, receiver_b) = bind(&host_b, b);
    let remote = lanes_b.socket().local_addr();
    let paths = host_a.paths(net.b_as).await.unwrap();
    let open = |path: Path| lanes_a.open(remote, path).unwrap();
    let lanes: Vec<Lane> = paths.into_iter().map(open).collect();
    assert_eq!(lanes.len(), 2);
    Hosts {
        net,
        a: (host_a, lanes_a, receiver_a),
        b: (host_b, lanes_b, receiver_b),
        lanes,
    }
}

/// A batch of `count` payloads of `size` bytes: the token, a number, and bytes that differ.
fn batch(first: usize, count: usize, size: usize) -> Vec<u8> {
    let payload = |number: usize| {
        let mut payload = [&TOKEN[..], &number.to_be_bytes()].concat();
        payload.extend((payload.len()..size).map(|at| (at ^ number) as u8));
        payload
    };
    (first..first + count).flat_map(payload).collect()
}

/// Receives `count` payloads; returns each with its flow.
async fn receive(receiver: &mut LaneReceiver, count: usize) -> Vec<(FlowId, Vec<u8>)> {
    let mut received = Vec::new();
    while received.len() < count {
        let datagrams = receiver.batch();
        received.extend(datagrams.map(|datagram| (datagram.flow, datagram.payload.to_vec())));
        if received.len() < count {
            poll_fn(|cx| receiver.poll_receive(cx)).await.unwrap();
        }
    }
    received
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONGEST, what).await.unwrap()
}

#[tokio::test]
async fn a_lane_ends_with_its_link_and_the_other_continues() {
    let mut hosts = hosts(1, 2).await;
    let size = usize::from(hosts.lanes[0].max_payload());
    // 36 bytes of path, common and address header, UDP.
    assert_eq!(size, usize::from(MTU) - 36 - 12 - 24 - 8);
    let (mut to_b, mut to_a) = (hosts.a.1.sender(), hosts.b.1.sender());
    let mut back = Vec::new();
    for (at, lane) in hosts.lanes.iter().enumerate() {
        let contents = batch(BATCH * at, BATCH, size);
        let sending = to_b.send(lane, &contents, size);
        let (sent, received) = tokio::join!(sending, within(receive(&mut hosts.b.2, BATCH)));
        sent.unwrap();
        let (flows, payloads): (Vec<_>, Vec<_>) = received.into_iter().unzip();
        assert!(payloads.concat() == contents);
        assert!(flows.iter().all(|flow| *flow == flows[0]));
        let answering = hosts.b.1.accept(flows[0], None).unwrap();
        assert_eq!(answering.remote(), hosts.a.1.socket().local_addr());
        // Until the path is looked up only what its packets show is known, which is enough here.
        assert_eq!(answering.path(), None);
        let fingerprint = answering.fingerprint();
        let path = answering.look_up().await.unwrap();
        assert_eq!(fingerprint, path.fingerprint());
        assert_eq!(answering.fingerprint(), fingerprint);
        let first = lane.path().unwrap().info().interfaces[0];
        assert!(path.info().interfaces.contains(&first));
        back.push(answering);
    }
    assert_ne!(back[0].flow().id, back[1].flow().id);
    // Each answer arrives over the lane that it belongs to.
    for (lane, answering) in hosts.lanes.iter().zip(&back) {
        to_a.send(answering, &batch(0, 10, size), size)
            .await
            .unwrap();
        for (flow, payload) in within(receive(&mut hosts.a.2, 10)).await {
            assert_eq!(flow, lane.flow().id);
            assert!(payload.starts_with(TOKEN));
        }
    }
    // A lane refuses payloads that its path does not take.
    let refused = to_b.send(&hosts.lanes[0], &[0; 2000], size + 1).await;
    assert_eq!(
        refused.unwrap_err().kind(),
        std::io::ErrorKind::InvalidInput
    );
    assert_eq!(hosts.lanes[0].end(), None);

    hosts.net.links[0]
        .conduct
        .down
        .store(true, Ordering::SeqCst);
    to_b.send(&hosts.lanes[0], &batch(0, 5, size), size)
        .await
        .unwrap();
    // The receiver also reads SCMP errors.
    let reading = tokio::spawn(async move {
        let received = receive(&mut hosts.a.2, 10).await;
        (received, hosts.a.2)
    });
    let id = Interface {
        isd_as: hosts.net.a_as,
        id: 1,
    };
    let end = within(hosts.lanes[0].ended()).await;
    assert_eq!(
        end,
        LaneEnd::PathDown(hawser_endhost::Outage::Interface(id))
    );
    assert_eq!(hosts.lanes[0].end(), Some(end));
    // No socket of this host is offered the path; the other lane still carries data in both
    // directions.
    assert_eq!(hosts.a.0.paths(hosts.net.b_as).await.unwrap().len(), 1);
    assert_eq!(hosts.lanes[1].end(), None);
    for round in 0..5 {
        let contents = batch(BATCH * round, BATCH, size);
        let sending = to_b.send(&hosts.lanes[1], &contents, size);
        let (sent, received) = tokio::join!(sending, within(receive(&mut hosts.b.2, BATCH)));
        sent.unwrap();
        let (flows, payloads): (Vec<_>, Vec<_>) = received.into_iter().unzip();
        assert!(flows.iter().all(|flow| *flow == back[1].flow().id));
        assert!(payloads.concat() == contents);
    }
    to_a.send(&back[1], &batch(0, 10, size), size)
        .await
        .unwrap();
    let (received, _receiver) = within(reading).await.unwrap();
    assert!(
        received
            .iter()
            .all(|(flow, _)| *flow == hosts.lanes[1].flow().id)
    );
    assert_eq!(hosts.lanes[1].end(), None);
}

#[tokio::test]
async fn a_lane_is_refreshed_before_its_path_expires() {
    let mut hosts = hosts(3, 4).await;
    let lane = hosts.lanes[1].clone();
    let size = usize::from(lane.max_payload());
    let (mut to_b, mut to_a) = (hosts.a.1.sender(), hosts.b.1.sender());
    to_b.send(&lane, &batch(0, 10, size), size).await.unwrap();
    let flow = within(receive(&mut hosts.b.2, 10)).await[0].0;
    let back = hosts.b.1.accept(flow, None).unwrap();
    let (old, expiry) = (lane.path().unwrap(), lane.flow().expiry());
    assert_eq!((old.expiry(), back.flow().expiry()), (expiry, expiry));
    hosts.net.offer(unix_now() as u32 + 600);
    let fresh = async {
        while lane.flow().expiry() == expiry {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(fresh).await;
    assert!(unix_now() < expiry, "the old path still worked");
    assert!(lane.flow().expiry() >= expiry + 600);
    let path = lane.path().unwrap();
    assert_eq!(
        (path.expiry(), path.fingerprint()),
        (lane.flow().expiry(), old.fingerprint())
    );
    assert_ne!(path.raw(), old.raw());
    // Its packets take the fresh path and belong to the same flow. Answers keep the old one until
    // shortly before it expires.
    to_b.send(&lane, &batch(10, 10, size), size).await.unwrap();
    let received = within(receive(&mut hosts.b.2, 10)).await;
    assert!(received.iter().all(|(at, _)| *at == flow));
    assert_eq!(back.flow().expiry(), expiry);
    to_a.send(&back, &batch(0, 10, size), size).await.unwrap();
    let received = within(receive(&mut hosts.a.2, 10)).await;
    assert!(received.iter().all(|(at, _)| *at == lane.flow().id));
}

/// SCMP errors from a host of `from`'s AS that quote packets to `to` over `path`, whose payload
/// begins with `token`.
fn errors(from: ScionAddr, to: ScionAddr, path: &Path, token: &[u8]) -> Vec<Vec<u8>> {
    let mut quoted = Vec::new();
    let payload = [token, &[7; 1200]].concat();
    Headers::new(from, to, path)
        .unwrap()
        .write(&payload, 0, &mut quoted);
    let near = path.info().interfaces[0];
    let (isd_as, id) = (near.isd_as.to_be_bytes(), u64::from(near.id).to_be_bytes());
    let down = [&[5, 0, 0, 0], &isd_as[..], &id].concat();
    let unreachable = vec![1, 0, 0, 0, 0, 0, 0, 0];
    let inside = Path::within(from.isd_as, MTU);
    let back = Headers::new(from, from, &inside).unwrap();
    let errors = [down, unreachable];
    errors
        .map(|error| back.scmp(&[error, quoted.clone()].concat()))
        .into()
}

/// Counts probes, and answers them with a verdict.
struct Counting(Evidence, AtomicUsize);

impl LaneUser for Counting {
    fn probe<'a>(&'a self, _: &'a Doubt) -> Probing<'a> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { self.0 })
    }

    fn on_end(&self, end: &LaneEnd) {
        panic!("a lane that works ended: {end}");
    }
}

#[tokio::test]
async fn forged_errors_do_not_count_and_genuine_ones_start_a_probe() {
    let mut hosts = hosts(5, 6).await;
    let lane = hosts.lanes[0].clone();
    let (from, to) = (hosts.a.1.socket().local_addr(), lane.remote());
    let size = usize::from(lane.max_payload());
    let mut to_b = hosts.a.1.sender();
    to_b.send(&lane, &batch(0, 10, size), size).await.unwrap();
    let path = lane.path().unwrap();
    let attacker = tokio::net::UdpSocket::bind((own_ip(7), 0)).await.unwrap();
    let mut unmatched = 0;
    for error in errors(from, to, &path, b"not it!!") {
        attacker.send_to(&error, from.host).await.unwrap();
        unmatched += 1;
    }
    // No packet with this token was sent over the path of the other lane.
    let other = hosts.lanes[1].path().unwrap();
    for error in errors(from, to, &other, TOKEN) {
        attacker.send_to(&error, from.host).await.unwrap();
        unmatched += 1;
    }
    let reading = async {
        while hosts.a.1.socket().drops().unmatched < unmatched {
            assert_eq!(hosts.a.2.batch().count(), 0);
            let _ = tokio::time::timeout(
                Duration::from_millis(10),
                poll_fn(|cx| hosts.a.2.poll_receive(cx)),
            )
            .await;
        }
    };
    within(reading).await;
    assert_eq!(lane.end(), None);
    // An error that the user's probe refutes ends no lane, and withholds no path.
    let user = Arc::new(Counting(
        Evidence::Alive(Instant::now() + LONGEST),
        AtomicUsize::new(0),
    ));
    lane.attach(Arc::clone(&user) as _);
    for error in errors(from, to, &path, TOKEN) {
        attacker.send_to(&error, from.host).await.unwrap();
    }
    let probed = async {
        while user.1.load(Ordering::SeqCst) == 0 {
            assert_eq!(hosts.a.2.batch().count(), 0);
            let _ = tokio::time::timeout(
                Duration::from_millis(10),
                poll_fn(|cx| hosts.a.2.poll_receive(cx)),
            )
            .await;
        }
    };
    within(probed).await;
    assert_eq!((lane.end(), hosts.lanes[1].end()), (None, None));
    assert_eq!(hosts.a.0.paths(hosts.net.b_as).await.unwrap().len(), 2);
    assert_eq!(hosts.a.1.socket().drops().unmatched, unmatched);
}
