use std::collections::VecDeque;

use hawser_congestion::RateControl;
use hawser_endhost::lanes::{Lane, Lanes};
use hawser_endhost::socket::Socket;
use hawser_seal::{Cipher, SECRET};

use super::*;
use crate::algorithm::{Algorithm, Start};
use crate::data::{Keys, NewSubflow};
use crate::protocol::FORMAT;
use crate::toy::{ToyNet, own_ip};

const KEY: SubflowKey = SubflowKey(1);
const RANGES: u64 = 40;

/// Limits nothing.
#[derive(Debug)]
struct Free;

impl RateControl for Free {
    fn sent(&mut self, _: Instant, _: u64, _: u64) {}
    fn acked(&mut self, _: Instant, _: u64, _: Instant, _: u64) {}
    fn lost(&mut self, _: Instant, _: u64, _: Instant, _: u64) {}
    fn end(&mut self, _: Instant, _: u64, _: bool) {}
    fn timed_out(&mut self, _: Instant) {}
    fn rate(&self) -> f64 {
        1e12
    }
    fn window(&self) -> u64 {
        1 << 40
    }
    fn name(&self) -> &'static str {
        "free"
    }
}

#[test]
fn ranges_that_were_sent_before_they_are_read_take_no_place_of_others() {
    let gate = Arc::new(Gate::new(RANGES as usize));
    let mut outgoing = Outgoing::new(1 << 40, Arc::clone(&gate), Allowance::default());
    let content = Content::zeros(RANGES * tree::RANGE).unwrap();
    outgoing.set_content(Arc::new(content));
    outgoing.want(0..RANGES);
    let mut now = Instant::now();
    let source = &mut outgoing.source;
    source.add_subflow(KEY, 1400, Box::new(Free), None, now);
    loop {
        match source.poll(KEY, now) {
            Transmit::Wait(Some(at)) => now = at,
            Transmit::Wait(None) => break,
            Transmit::Data { .. } | Transmit::Probe { .. } => {}
        }
    }
    // More than are read ahead: the reader waits without end where one takes a place for good.
    for range in 0..RANGES {
        assert!(gate.enter(range));
        let bytes = Arc::default();
        outgoing.load(Loaded { range, bytes });
    }
    assert_eq!(gate.held() as u64, RANGES);
    outgoing.confirm(0..RANGES);
    assert!(outgoing.loaded.is_empty());
}

/// A path over which nothing is lost.
const RTT: Duration = Duration::from_millis(50);
const BYTES_PER_SECOND: f64 = 100e6;
const SECOND: Duration = Duration::from_secs(1);

/// A source of content that suffices, with one subflow over `lane`.
fn sending(lanes: &Lanes, lane: &Lane, now: Instant) -> Outgoing {
    let gate = Arc::new(Gate::new(RANGES as usize));
    let mut outgoing = Outgoing::new(1 << 40, gate, Allowance::default());
    let ranges = (1 << 30) / tree::RANGE;
    let content = Content::zeros(ranges * tree::RANGE).unwrap();
    outgoing.set_content(Arc::new(content));
    outgoing.want(0..ranges);
    let added = NewSubflow {
        keys: Keys {
            cipher: Cipher::ChaCha20Poly1305,
            here: [1; SECRET],
            there: [2; SECRET],
        },
        remote: lane.remote(),
        lane: Some(lane.clone()),
        datagram: 1300,
        rtt: None,
        start: Start::unknown(Algorithm::Auto),
    };
    let subflow = Subflow::new(added, lanes.sender());
    outgoing.add(KEY, &subflow, now);
    outgoing
}

/// Sends over that path for so much time. Returns the bytes of content that were sent.
fn run(outgoing: &mut Outgoing, mut now: Instant, time: Duration) -> u64 {
    let (mut sent, until) = (0, now + time);
    // When the link is idle, and what arrives.
    let mut idle = now;
    let mut arriving: VecDeque<(Instant, Range<u64>)> = VecDeque::new();
    while now < until {
        while let Some((_, numbers)) = arriving.pop_front_if(|(at, _)| *at <= now) {
            let ack = Ack {
                ranges: vec![numbers.clone()],
                ..Ack::of(numbers.end - 1)
            };
            outgoing.on_ack(KEY, &ack, now).unwrap();
        }
        outgoing.source.timeout(now);
        loop {
            let (numbers, bytes) = match outgoing.source.poll(KEY, now) {
                Transmit::Wait(_) => break,
                Transmit::Probe { number, size } => (number..number + 1, size as u64),
                Transmit::Data {
                    number,
                    packets,
                    content,
                    ..
                } => (number..number + packets, content.end - content.start),
            };
            idle = idle.max(now) + Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND);
            arriving.push_back((idle + RTT, numbers));
            sent += bytes;
        }
        now += SECOND / 8000;
    }
    sent
}

#[tokio::test]
async fn a_subflow_begins_with_what_the_one_before_has_carried() {
    let net = ToyNet::start().await;
    let host = net.a.endhost().await;
    let path = host.paths(net.b_as).await.unwrap().remove(0);
    let socket = Socket::bind(&host, Some((own_ip(8), 0).into())).unwrap();
    let remote = hawser_endhost::ScionAddr::new(net.b_as, (own_ip(9), 443).into());
    let (lanes, _receiver) = Lanes::new(socket, FORMAT);
    let lane = lanes.open(remote, path).unwrap();
    let start = Instant::now();
    let last = |at| lane.rate_record().last(at);
    // Until the first train is sent.
    let begin = |at| run(&mut sending(&lanes, &lane, at), at, RTT * 3 / 2);
    let unknown = begin(start);
    // The subflow ends, or its session does, or it stores the rate meanwhile.
    for (round, ends) in (0..).zip(["subflow", "session", "not"]) {
        let start = start + round * 7200 * SECOND;
        let mut first = sending(&lanes, &lane, start);
        let time = if ends == "not" {
            3 * SECOND
        } else {
            3 * SECOND / 2
        };
        let carried = run(&mut first, start, time);
        assert_eq!(last(start).is_some(), ends == "not", "{ends}");
        match ends {
            "subflow" => first.remove(KEY),
            "session" => drop(first),
            _ => {}
        }
        let at = start + 3 * SECOND;
        let known = last(at).unwrap();
        let part = known.rate / BYTES_PER_SECOND;
        assert!(
            (0.7..1.1).contains(&part),
            "{ends}: {known:?}, {carried} bytes"
        );
        let again = begin(at);
        assert!(
            again > 3 * unknown,
            "{ends}: {again} bytes, {unknown} before"
        );
        let later = begin(at + 3600 * SECOND);
        assert!(
            later < 2 * unknown,
            "{ends}: {later} bytes, {unknown} before"
        );
    }
}
