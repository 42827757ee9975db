//! The thread on a real socket, with a peer whose packets the test makes.

use std::future::poll_fn;

use hawser_endhost::lanes::{FlowId, LaneReceiver, LaneSender};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::subflow::DRAIN_TIMEOUT;
use super::*;
use crate::algorithm::Algorithm;
use crate::content::tree;
use crate::protocol::{Ack, Opener, Payload, RangeSet, Sealer};
use crate::toy::{ToyNet, own_ip, unix_now};

/// Longest wait for an event that must happen, far longer than it takes.
const LONGEST: Duration = Duration::from_secs(300);
/// Time between two probes of a subflow that may not be known yet.
const AGAIN: Duration = Duration::from_millis(50);
/// Time without a packet after which a source counts as waiting for acknowledgements.
const QUIET: Duration = Duration::from_millis(150);
/// How long the paths of a [`ToyNet`] last, in seconds.
const LIFETIME: u64 = 6 * 3600;
const CIPHER: Cipher = Cipher::ChaCha20Poly1305;
const PROBE: usize = 1000;

/// The side that dials: it seals probes, and opens what answers them.
struct Peer {
    lane: Lane,
    sender: LaneSender,
    receiver: LaneReceiver,
    opener: Opener,
    sealer: Sealer,
}

impl Peer {
    /// A probe, and its number.
    fn seal(&mut self) -> (u64, Vec<u8>) {
        let mut probe = Vec::new();
        let number = self.sealer.seal_probe(&mut probe, PROBE);
        (number, probe)
    }

    async fn send(&mut self, probe: &[u8]) {
        (self.sender.send(&self.lane, probe, PROBE).await).unwrap();
    }

    /// Waits for the acknowledgement of a probe. Returns all numbers acknowledged with it.
    async fn acknowledged(&mut self, number: u64) -> RangeSet {
        let mut scratch = Vec::new();
        loop {
            for datagram in self.receiver.batch() {
                let opened = self.opener.open(datagram.payload, &mut scratch);
                match opened.unwrap().payload {
                    Payload::Ack(ack) if ack.largest >= number => {
                        return ack.ranges.into_iter().collect();
                    }
                    Payload::Ack(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            let ready = poll_fn(|cx| self.receiver.poll_receive(cx));
            tokio::time::timeout(LONGEST, ready).await.unwrap().unwrap();
        }
    }
}

/// A copy of `path` that expires at `expiry`.
fn until(path: &Path, expiry: u64) -> Path {
    let (mut info, mut raw) = (path.info().clone(), path.raw().to_vec());
    info.metadata.expiry = expiry;
    let timestamp = u32::try_from(expiry - LIFETIME).unwrap();
    raw[8..12].copy_from_slice(&timestamp.to_be_bytes());
    Path::new(info, raw, path.next_hop()).unwrap()
}

#[tokio::test]
async fn only_packets_that_open_change_the_path_of_answers() {
    let net = ToyNet::start().await;
    // A path that expires soon: another one may replace it.
    let soon = unix_now() + 55;
    net.offer((soon - LIFETIME) as u32);
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let bind = |host, last| Socket::bind(host, Some((own_ip(last), 0).into())).unwrap();
    let (lanes, receiver) = Lanes::new(bind(&a, 1), FORMAT);
    let data = Data::start(bind(&b, 2), || {}).unwrap();
    let (from, to) = (lanes.socket().local_addr(), data.local_addr());
    let path = a.paths(net.b_as).await.unwrap().remove(0);
    let expiry = || data.lanes.flow(FlowId(1)).unwrap().expiry();

    let attacker = UdpSocket::bind((own_ip(3), 0)).await.unwrap();
    let send_over = async |path: &Path, payload: &[u8]| {
        let (headers, mut packet) = (Headers::new(from, to, path).unwrap(), Vec::new());
        headers.write(payload, 0, &mut packet);
        attacker.send_to(&packet, headers.next_hop).await.unwrap();
    };
    // The first packet of the flow is the attacker's.
    send_over(&until(&path, soon + 5000), b"stray").await;

    let secrets = ([1; SECRET], [2; SECRET]);
    let (events, mut reports) = unbounded_channel();
    let (session, subflow) = (SessionKey(1), SubflowKey(1));
    data.commands().give(Command::Receive {
        session,
        credit: 1 << 20,
        promised: Arc::default(),
        events,
    });
    let added = NewSubflow {
        keys: Keys {
            cipher: CIPHER,
            here: secrets.1,
            there: secrets.0,
        },
        remote: from,
        lane: None,
        datagram: PROBE,
        rtt: None,
        start: Start::unknown(Algorithm::Auto),
    };
    data.commands()
        .give(Command::Add(session, subflow, Box::new(added)));
    let mut peer = Peer {
        lane: lanes.open(to, path.clone()).unwrap(),
        sender: lanes.sender(),
        receiver,
        opener: Opener::new(CIPHER, &secrets.1),
        sealer: Sealer::new(CIPHER, &secrets.0),
    };
    let up = async {
        loop {
            let (_, probe) = peer.seal();
            peer.send(&probe).await;
            let report = tokio::time::timeout(AGAIN, reports.recv()).await;
            if let Ok(Some(DataEvent::Up(up))) = report {
                return up;
            }
        }
    };
    assert_eq!(tokio::time::timeout(LONGEST, up).await.unwrap(), subflow);
    assert_eq!(expiry(), soon, "the lane answers its peer's packet");

    // Over a fresher path, a packet that was changed, and a copy of one that has arrived.
    let (_, probe) = peer.seal();
    let mut changed = probe.clone();
    changed[PROBE - 1] ^= 1;
    send_over(&until(&path, soon + 6000), &changed).await;
    peer.send(&probe).await;
    send_over(&until(&path, soon + 6000), &probe).await;
    let (last, probe) = peer.seal();
    peer.send(&probe).await;
    peer.acknowledged(last).await;
    assert_eq!(expiry(), soon);

    let (fresh, probe) = peer.seal();
    send_over(&until(&path, soon + 600), &probe).await;
    peer.acknowledged(fresh).await;
    assert_eq!(expiry(), soon + 600);

    // Measurements are an answer of their own, whatever events wait or follow; none once the session ended.
    let measure = async || {
        let (answer, measured) = oneshot::channel();
        data.commands().give(Command::Measure(session, answer));
        tokio::time::timeout(LONGEST, measured).await.unwrap()
    };
    let (all, _) = measure().await.unwrap();
    assert_eq!(
        all.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
        [subflow]
    );
    data.commands().give(Command::End(session));
    assert!(measure().await.is_err());
}

#[tokio::test]
async fn the_first_packet_is_acknowledged_and_a_hostile_source_holds_no_more_than_its_credit() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let bind = |host, last| Socket::bind(host, Some((own_ip(last), 0).into())).unwrap();
    let (lanes, receiver) = Lanes::new(bind(&a, 4), FORMAT);
    let data = Data::start(bind(&b, 5), || {}).unwrap();
    let (from, to) = (lanes.socket().local_addr(), data.local_addr());
    let path = a.paths(net.b_as).await.unwrap().remove(0);
    let secrets = ([1; SECRET], [2; SECRET]);
    let (events, mut reports) = unbounded_channel();
    let (session, subflow) = (SessionKey(1), SubflowKey(1));
    let credit = 8 << 20;
    data.commands().give(Command::Receive {
        session,
        credit,
        promised: Arc::default(),
        events,
    });
    let content = Command::Content(session, 1 << 40, Queues(Vec::new()));
    data.commands().give(content);
    let added = NewSubflow {
        keys: Keys {
            cipher: CIPHER,
            here: secrets.1,
            there: secrets.0,
        },
        remote: from,
        lane: None,
        datagram: 0,
        rtt: None,
        start: Start::unknown(Algorithm::Auto),
    };
    let add = Command::Add(session, subflow, Box::new(added));
    data.commands().give(add);
    let mut peer = Peer {
        lane: lanes.open(to, path).unwrap(),
        sender: lanes.sender(),
        receiver,
        opener: Opener::new(CIPHER, &secrets.1),
        sealer: Sealer::new(CIPHER, &secrets.0),
    };
    // Nothing has shown the lane yet: the packet that does is acknowledged itself.
    let (first, probe) = peer.seal();
    peer.send(&probe).await;
    assert!(peer.acknowledged(first).await.contains(&(0..1)));
    let up = async {
        while !matches!(reports.recv().await, Some(DataEvent::Up(up)) if up == subflow) {}
    };
    tokio::time::timeout(LONGEST, up).await.unwrap();

    // A byte in each of many ranges, sent so that none is lost on the way.
    let mut acknowledged = RangeSet::new();
    for range in 0..40 {
        let mut packet = Vec::new();
        let position = range * tree::RANGE;
        let sealer = &mut peer.sealer;
        sealer.seal_data(&mut packet, position, &[7], 1, true);
        peer.send(&packet).await;
        let (last, probe) = peer.seal();
        peer.send(&probe).await;
        acknowledged.extend(peer.acknowledged(last).await.iter());
    }
    // The first probe, and two packets each time; of the bytes, those that there is room for.
    let kept = acknowledged.len() - 1 - 40;
    assert_eq!(kept, (credit + SLACK) / tree::RANGE);
}

/// The content and the numbers of the packets that arrive at `peer`, until none arrives for [`QUIET`].
async fn arriving(peer: &mut Peer) -> (RangeSet, RangeSet) {
    let (mut content, mut numbers) = (RangeSet::new(), RangeSet::new());
    let mut scratch = Vec::new();
    loop {
        for datagram in peer.receiver.batch() {
            let opened = peer.opener.open(datagram.payload, &mut scratch).unwrap();
            numbers.insert(opened.number..opened.number + 1);
            if let Payload::Data {
                position,
                content: bytes,
            } = opened.payload
            {
                content.insert(position..position + bytes.len() as u64);
            }
        }
        let ready = poll_fn(|cx| peer.receiver.poll_receive(cx));
        match tokio::time::timeout(QUIET, ready).await {
            Ok(ready) => ready.unwrap(),
            Err(_) => return (content, numbers),
        }
    }
}

/// Acknowledges all packets that have arrived.
async fn acknowledge(peer: &mut Peer, numbers: &RangeSet) {
    let mut ranges: Vec<_> = numbers.iter().collect();
    ranges.reverse();
    let ack = Ack {
        largest: ranges[0].end - 1,
        credit: 1 << 30,
        ranges,
        ..Ack::of(0)
    };
    let mut packet = Vec::new();
    peer.sealer.seal_ack(&mut packet, &ack, 1000);
    (peer.sender.send(&peer.lane, &packet, packet.len()).await).unwrap();
}

/// Waits until a subflow is drained.
async fn drained(reports: &mut UnboundedReceiver<DataEvent>) -> SubflowKey {
    let drained = async {
        loop {
            if let Some(DataEvent::Drained(subflow)) = reports.recv().await {
                return subflow;
            }
        }
    };
    tokio::time::timeout(LONGEST, drained).await.unwrap()
}

/// Whether a subflow was reported as drained.
fn is_drained(reports: &mut UnboundedReceiver<DataEvent>) -> bool {
    std::iter::from_fn(|| reports.try_recv().ok()).any(|one| matches!(one, DataEvent::Drained(_)))
}

#[tokio::test]
async fn a_subflow_that_drains_gets_nothing_new_and_ends_once_all_is_acknowledged_or_in_time() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let bind = |host, last| Socket::bind(host, Some((own_ip(last), 0).into())).unwrap();
    let (lanes, receiver) = Lanes::new(bind(&a, 6), FORMAT);
    let data = Data::start(bind(&b, 7), || {}).unwrap();
    let (from, to) = (lanes.socket().local_addr(), data.local_addr());
    let path = a.paths(net.b_as).await.unwrap().remove(0);
    let secrets = ([1; SECRET], [2; SECRET]);
    let (events, mut reports) = unbounded_channel();
    let (session, subflow) = (SessionKey(1), SubflowKey(1));
    let give = |command| data.commands().give(command);
    give(Command::Send {
        session,
        credit: 1 << 30,
        gate: Arc::new(Gate::new(1 << 30)),
        limit: None,
        events,
    });
    let content = Arc::new(Source::zeros(64 * tree::RANGE).unwrap());
    give(Command::Offer(session, content));
    give(Command::Want(session, 0..64));
    let mut peer = Peer {
        lane: lanes.open(to, path).unwrap(),
        sender: lanes.sender(),
        receiver,
        opener: Opener::new(CIPHER, &secrets.1),
        sealer: Sealer::new(CIPHER, &secrets.0),
    };
    let added = NewSubflow {
        keys: Keys {
            cipher: CIPHER,
            here: secrets.1,
            there: secrets.0,
        },
        remote: from,
        lane: None,
        datagram: 0,
        rtt: None,
        start: Start::unknown(Algorithm::Auto),
    };
    give(Command::Add(session, subflow, Box::new(added)));
    let (_, probe) = peer.seal();
    peer.send(&probe).await;
    let (mut content, mut numbers) = arriving(&mut peer).await;
    assert!(!content.is_empty());
    // More follows what is acknowledged, as long as it does not drain.
    acknowledge(&mut peer, &numbers).await;
    let (more, further) = arriving(&mut peer).await;
    assert!(more.iter().any(|range| !content.contains(&range)));
    content.extend(more.iter());
    numbers.extend(further.iter());

    let is_new = |more: &RangeSet| more.iter().any(|range| !content.contains(&range));
    give(Command::Drain(session, subflow));
    let began = Instant::now();
    let (more, further) = arriving(&mut peer).await;
    assert!(!is_new(&more));
    numbers.extend(further.iter());
    let is_over = is_drained(&mut reports);
    assert!(
        !is_over || began.elapsed() >= DRAIN_TIMEOUT,
        "something is in flight"
    );
    acknowledge(&mut peer, &numbers).await;
    if !is_over {
        assert_eq!(drained(&mut reports).await, subflow);
    }
    let (more, _) = arriving(&mut peer).await;
    assert!(!is_new(&more));

    // Without acknowledgements it ends all the same.
    give(Command::Hold(session, subflow, false));
    let (more, _) = arriving(&mut peer).await;
    assert!(is_new(&more));
    give(Command::Drain(session, subflow));
    assert_eq!(drained(&mut reports).await, subflow);
    assert!(!is_drained(&mut reports), "it is reported once");
}
