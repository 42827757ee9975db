#![expect(clippy::single_range_in_vec_init, reason = "they are lists of ranges")]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
const A: SubflowKey = SubflowKey(0);
const B: SubflowKey = SubflowKey(1);

/// A control with a fixed rate and window.
#[derive(Debug, Clone, Copy)]
struct Constant {
    rate: f64,
    window: u64,
}

impl RateControl for Constant {
    fn sent(&mut self, _: Instant, _: u64, _: u64) {}
    fn acked(&mut self, _: Instant, _: u64, _: Instant, _: u64) {}
    fn lost(&mut self, _: Instant, _: u64, _: Instant, _: u64) {}
    fn end(&mut self, _: Instant, _: u64, _: bool) {}
    fn timed_out(&mut self, _: Instant) {}
    fn rate(&self) -> f64 {
        self.rate
    }
    fn window(&self) -> u64 {
        self.window
    }
    fn name(&self) -> &'static str {
        "constant"
    }
}

/// 1000 packets of 100 bytes of content a second, two in a batch.
const RATE: f64 = 137_000.0;

fn add(source: &mut Source, key: SubflowKey, rtt: Duration, now: Instant) {
    let control = Constant {
        rate: RATE,
        window: 1_000_000,
    };
    source.add_subflow(key, 100, Box::new(control), Some(rtt), now);
}

fn source(content: u64, credit: u64) -> (Source, Instant) {
    let now = Instant::now();
    let mut source = Source::new(content, credit);
    source.want(0..content);
    add(&mut source, A, 20 * MS, now);
    (source, now)
}

/// The content of the next batch, which is due.
fn data(source: &mut Source, key: SubflowKey, now: Instant) -> Range<u64> {
    match source.poll(key, now) {
        Transmit::Data { content, .. } => content,
        other => panic!("{other:?} is no data"),
    }
}

fn waits(source: &mut Source, key: SubflowKey, now: Instant) -> bool {
    matches!(source.poll(key, now), Transmit::Wait(_))
}

fn ack(ranges: impl IntoIterator<Item = Range<u64>>, credit: u64) -> Ack {
    let ranges: Vec<_> = ranges.into_iter().collect();
    Ack {
        largest: ranges[0].end - 1,
        ranges,
        credit,
        ..Ack::of(0)
    }
}

#[test]
fn batches_are_paced_runs_with_increasing_numbers() {
    let (mut source, now) = source(350, 1000);
    let first = Transmit::Data {
        number: 0,
        content: 0..200,
        packets: 2,
        per_packet: 100,
        ask: true,
    };
    assert_eq!(source.poll(A, now), first);
    // Two packets take 2 ms.
    assert_eq!(source.poll(A, now), Transmit::Wait(Some(now + 2 * MS)));
    let second = Transmit::Data {
        number: 2,
        content: 200..350,
        packets: 2,
        per_packet: 100,
        ask: true,
    };
    assert_eq!(source.poll(A, now + 2 * MS), second);
    let acked = source.on_ack(A, &ack([0..4], 1000), now + 22 * MS).unwrap();
    assert_eq!((acked.delivered, acked.packets, acked.lost), (350, 4, 0));
    assert_eq!(acked.rtt, Some(20 * MS));
    assert!(source.is_delivered());
    assert_eq!(source.next_timeout(), None);
    assert!(waits(&mut source, A, now + 30 * MS));
}

#[test]
fn the_window_bounds_what_is_in_flight() {
    let now = Instant::now();
    let mut source = Source::new(10_000, 10_000);
    source.want(0..10_000);
    let control = Constant {
        rate: 1e9,
        window: 5 * 137,
    };
    source.add_subflow(A, 100, Box::new(control), None, now);
    assert_eq!(data(&mut source, A, now), 0..500);
    assert_eq!(source.poll(A, now + MS), Transmit::Wait(None));
    source.on_ack(A, &ack([0..3], 0), now + 10 * MS).unwrap();
    assert_eq!(data(&mut source, A, now + 10 * MS), 500..800);
    assert_eq!(source.stats(A).unwrap().in_flight, 5 * 137);
}

#[test]
fn overtaken_packets_are_lost_and_sent_again_first() {
    let (mut source, now) = source(10_000, 10_000);
    for batch in 0..5 {
        data(&mut source, A, now + 2 * batch * MS);
    }
    // Packets 1 and 2 are missing, and 5 is the third after 2.
    let acked = source
        .on_ack(A, &ack([3..5, 0..1], 10_000), now + 25 * MS)
        .unwrap();
    assert_eq!((acked.lost, acked.delivered), (1, 300));
    let acked = source
        .on_ack(A, &ack([3..6, 0..1], 10_000), now + 26 * MS)
        .unwrap();
    assert_eq!((acked.lost, acked.delivered), (1, 100));
    assert_eq!(data(&mut source, A, now + 26 * MS), 100..300);
    // They were only late: nothing is sent a third time.
    let acked = source
        .on_ack(A, &ack([0..6], 10_000), now + 27 * MS)
        .unwrap();
    assert_eq!((acked.spurious, acked.delivered), (2, 200));
    // Four packets may overtake another from now on.
    source
        .on_ack(A, &ack([9..10, 0..6], 10_000), now + 28 * MS)
        .unwrap();
    assert_eq!(source.stats(A).unwrap().lost, 2);
}

#[test]
fn packets_that_are_late_by_an_eighth_are_lost() {
    let (mut source, now) = source(10_000, 10_000);
    data(&mut source, A, now);
    source
        .on_ack(A, &ack([1..2], 10_000), now + 20 * MS)
        .unwrap();
    let late = now + 22 * MS + MS / 2;
    assert_eq!(source.next_timeout(), Some(late));
    source.timeout(late);
    assert_eq!(source.stats(A).unwrap().lost, 1);
    assert_eq!(data(&mut source, A, late), 0..100);
}

#[test]
fn silence_stalls_a_subflow_after_three_probes() {
    let (mut source, mut now) = source(200, 1000);
    data(&mut source, A, now);
    for timeouts in 1..=3 {
        now = source.next_timeout().unwrap();
        source.timeout(now);
        assert_eq!(source.stats(A).unwrap().stalled, timeouts == 3);
        assert!(matches!(source.poll(A, now), Transmit::Probe { .. }));
        // What is possibly lost takes another subflow, but the window of a stalled one is closed.
        if timeouts == 1 {
            add(&mut source, B, 20 * MS, now);
            assert_eq!(data(&mut source, B, now), 0..200);
            source.on_ack(B, &ack([0..2], 1000), now + MS).unwrap();
        }
        assert!(waits(&mut source, A, now));
    }
    assert_eq!(source.stats(A).unwrap().in_flight, 0);
    // The last probe is answered: the subflow is of use again.
    let acked = source.on_ack(A, &ack([4..5], 1000), now + 20 * MS).unwrap();
    assert_eq!((acked.packets, acked.delivered), (1, 0));
    assert!(!source.stats(A).unwrap().stalled);
    source.remove_subflow(B);
    source.want(0..200);
    assert_eq!(data(&mut source, A, now + 20 * MS), 0..200);
}

#[test]
fn removed_subflows_return_what_they_had_in_flight() {
    let (mut source, now) = source(400, 1000);
    add(&mut source, B, 20 * MS, now);
    assert_eq!(data(&mut source, A, now), 0..200);
    assert_eq!(data(&mut source, B, now), 200..400);
    source.on_ack(A, &ack([0..1], 1000), now + 20 * MS).unwrap();
    source.remove_subflow(A);
    assert_eq!(data(&mut source, B, now + 20 * MS), 100..200);
    assert_eq!(
        (source.stats(A), source.poll(A, now)),
        (None, Transmit::Wait(None))
    );
}

#[test]
fn over_a_held_subflow_nothing_is_sent_and_nothing_is_left_to_it() {
    let (mut source, now) = source(600, 1000);
    add(&mut source, B, 200 * MS, now);
    assert_eq!(data(&mut source, A, now), 0..200);
    let now = now + 20 * MS;
    source.on_ack(A, &ack([0..1], 1000), now).unwrap();
    // The rest would arrive earlier over the faster one.
    assert!(waits(&mut source, B, now));
    source.hold(A, true);
    assert_eq!(source.poll(A, now), Transmit::Wait(None));
    assert_eq!(data(&mut source, B, now), 200..400);
    // What it has in flight counts as soon as it arrives.
    assert_eq!(source.stats(A).unwrap().in_flight, 137);
    let acked = source.on_ack(A, &ack([0..2], 1000), now + MS).unwrap();
    assert_eq!(
        (acked.delivered, source.stats(A).unwrap().in_flight),
        (100, 0)
    );
    source.hold(A, false);
    assert_eq!(data(&mut source, A, now + MS), 400..600);
}

#[test]
fn credit_bounds_new_content_and_is_asked_for() {
    let (mut source, now) = source(1000, 150);
    assert_eq!(data(&mut source, A, now), 0..150);
    assert!(waits(&mut source, A, now + 2 * MS));
    source.on_ack(A, &ack([0..1], 150), now + 20 * MS).unwrap();
    // Packet 1 is lost: sent again without credit.
    let late = source.next_timeout().unwrap();
    assert!(waits(&mut source, A, late - MS / 10));
    source.on_ack(A, &ack([0..2], 150), now + 21 * MS).unwrap();
    assert!(waits(&mut source, A, now + 21 * MS));
    let ask = source.next_timeout().unwrap();
    assert_eq!(ask, now + 21 * MS + Duration::from_millis(250));
    source.timeout(ask);
    let probe = Transmit::Probe {
        number: 2,
        size: 29,
    };
    assert_eq!(source.poll(A, ask), probe);
    source.on_ack(A, &ack([0..3], 160), ask + 20 * MS).unwrap();
    assert_eq!(data(&mut source, A, ask + 20 * MS), 150..160);
    // A smaller credit changes nothing.
    source.on_ack(A, &ack([0..4], 10), ask + 40 * MS).unwrap();
    assert_eq!(source.credit(), 160);
}

#[test]
fn what_was_forgotten_is_sent_again_though_it_is_acknowledged() {
    let (mut source, now) = source(400, 400);
    data(&mut source, A, now);
    data(&mut source, A, now + 2 * MS);
    source.on_ack(A, &ack([0..2], 400), now + 20 * MS).unwrap();
    source.want(0..300);
    // The acknowledgement is of packets that the sink may have forgotten.
    source.on_ack(A, &ack([0..4], 400), now + 22 * MS).unwrap();
    assert_eq!(source.missing().iter().collect::<Vec<_>>(), vec![0..400]);
    assert_eq!(data(&mut source, A, now + 22 * MS), 0..200);
    assert_eq!(data(&mut source, A, now + 24 * MS), 200..400);
    source.on_ack(A, &ack([0..8], 400), now + 44 * MS).unwrap();
    assert!(source.is_delivered());
}

fn probe(source: &mut Source, now: Instant) -> Option<(u64, usize)> {
    match source.poll(A, now) {
        Transmit::Probe { number, size } => Some((number, size)),
        _ => None,
    }
}

#[test]
fn packets_have_the_announced_size_once_a_probe_has_arrived() {
    let (mut source, now) = source(2000, 2000);
    source.try_larger(A, 437, 400);
    // Content does not wait for it.
    assert_eq!(probe(&mut source, now), Some((0, 437)));
    assert_eq!(data(&mut source, A, now), 0..200);
    assert_eq!(data(&mut source, A, now + 2 * MS), 200..400);
    // Lost: no sign of congestion, and tried again.
    let acked = source.on_ack(A, &ack([1..5], 2000), now + 22 * MS).unwrap();
    assert_eq!(acked.lost, 0);
    assert_eq!(probe(&mut source, now + 22 * MS), Some((5, 437)));
    assert_eq!(data(&mut source, A, now + 22 * MS), 400..600);
    source.on_ack(A, &ack([1..8], 2000), now + 44 * MS).unwrap();
    assert_eq!(data(&mut source, A, now + 44 * MS), 600..1400);
}

#[test]
fn a_path_that_takes_less_than_announced_keeps_small_packets() {
    let (mut source, mut now) = source(100_000, 100_000);
    source.try_larger(A, 9000, 8963);
    let mut arrived = RangeSet::new();
    let mut probes = Vec::new();
    for _ in 0..20 {
        match source.poll(A, now) {
            Transmit::Probe { size, .. } => probes.push(size),
            Transmit::Data {
                number,
                packets,
                per_packet,
                ..
            } => {
                assert_eq!(per_packet, 100);
                arrived.insert(number..number + packets);
            }
            Transmit::Wait(_) => {
                now += 25 * MS;
                source.timeout(now);
                let ack = ack(arrived.iter().rev(), 100_000);
                source.on_ack(A, &ack, now).unwrap();
            }
        }
    }
    assert_eq!(probes, [9000; 3]);
}

#[test]
fn packets_that_were_not_sent_cannot_be_acknowledged() {
    let (mut source, now) = source(1000, 1000);
    source.set_next_number(A, 5);
    data(&mut source, A, now);
    let error = SourceError::NotSent {
        acknowledged: 7,
        sent: 7,
    };
    assert_eq!(source.on_ack(A, &ack([0..8], 9999), now), Err(error));
    assert_eq!(source.credit(), 1000);
    // Those before the first are not the source's.
    let acked = source.on_ack(A, &ack([0..6], 1000), now + 20 * MS).unwrap();
    assert_eq!((acked.packets, acked.delivered), (1, 100));
}

#[test]
fn the_interval_is_named_when_it_changes() {
    let (mut source, now) = source(1000, 1000);
    assert_eq!(source.poll_interval(A), Some(20 * MS / 8));
    assert_eq!(source.poll_interval(A), None);
    data(&mut source, A, now);
    source
        .on_ack(A, &ack([0..1], 1000), now + 100 * MS)
        .unwrap();
    assert_eq!(source.poll_interval(A), Some(100 * MS / 8));
}

#[test]
fn the_last_content_of_a_slow_subflow_is_sent_again_over_a_fast_one() {
    let (mut source, now) = source(400, 1000);
    add(&mut source, B, 400 * MS, now);
    assert_eq!(data(&mut source, A, now), 0..200);
    assert_eq!(data(&mut source, B, now), 200..400);
    source.on_ack(A, &ack([0..2], 1000), now + 20 * MS).unwrap();
    assert_eq!(data(&mut source, A, now + 20 * MS), 200..400);
    // Once.
    assert!(waits(&mut source, A, now + 30 * MS));
    let acked = source.on_ack(A, &ack([0..4], 1000), now + 40 * MS).unwrap();
    assert!(acked.delivered == 200 && source.is_delivered());
}

#[test]
fn a_slow_subflow_leaves_the_last_content_to_a_fast_one() {
    let (mut source, now) = source(40_000, 40_000);
    add(&mut source, B, 400 * MS, now);
    data(&mut source, A, now);
    source
        .on_ack(A, &ack([0..2], 40_000), now + 20 * MS)
        .unwrap();
    // A delivers 26 kB while a packet of B is on its path.
    assert_eq!(data(&mut source, B, now + 20 * MS), 200..400);
    let mut left = 40_000;
    let mut time = now + 20 * MS;
    while left > 20_000 {
        left = 40_000 - data(&mut source, A, time).end;
        time += 2 * MS;
    }
    assert!(matches!(source.poll(B, time), Transmit::Wait(Some(at)) if at > time));
    assert!(!waits(&mut source, A, time));
}

#[derive(Debug, Clone)]
enum Step {
    Want(u64, u64),
    Add(u32, u64),
    Remove(u32),
    Size(u32, usize),
    Send(u32),
    Ack(u32, u64, u8),
    Credit(u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..3_u32;
    prop_oneof![
        2 => (0..6000_u64, 0..3000_u64).prop_map(|(from, length)| Step::Want(from, length)),
        1 => (key(), 1..200_u64).prop_map(|(key, rtt)| Step::Add(key, rtt)),
        1 => key().prop_map(Step::Remove),
        1 => (key(), 1..500_usize).prop_map(|(key, size)| Step::Size(key, size)),
        6 => key().prop_map(Step::Send),
        6 => (key(), any::<u64>(), any::<u8>()).prop_map(|(key, bits, skip)| Step::Ack(key, bits, skip)),
        1 => (0..2000_u64).prop_map(Step::Credit),
        6 => (0..80_u64).prop_map(Step::Wait),
    ]
}

/// What was sent over one subflow: the content of the batch of each packet.
type Sent = Vec<Range<u64>>;

impl Source {
    /// Everything missing is queued or owned by packets in flight; what is queued is missing.
    fn check(&self) {
        let mut covered: RangeSet = self.new.iter().chain(self.repair.iter()).collect();
        assert!(
            covered.iter().all(|queued| self.missing.contains(&queued)),
            "{self:?}"
        );
        assert!(
            self.new
                .iter()
                .all(|new| self.sent.overlaps(new).next().is_none())
        );
        let flights = self.subflows.values().flat_map(SourceSubflow::owned);
        covered.extend(flights);
        for missing in self.missing.iter() {
            assert!(covered.contains(&missing), "{missing:?} is lost: {self:?}");
        }
        assert!(self.sent.len() <= self.credit);
        for subflow in self.subflows.values() {
            let stats = subflow.stats();
            assert!(
                stats.in_flight == 0 || subflow.next_timeout().is_some(),
                "{subflow:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn nothing_that_is_wanted_is_ever_lost(steps in prop::collection::vec(step(), 1..150)) {
        const CONTENT: u64 = 8000;
        let (mut source, mut now) = source(CONTENT, 3000);
        source.remove_subflow(A);
        let mut credit = 3000;
        let mut sent: [Option<Sent>; 3] = Default::default();
        for step in steps {
            match step {
                Step::Want(from, length) => source.want(from..from + length),
                Step::Add(key, rtt) => {
                    if sent[key as usize].is_none() {
                        add(&mut source, SubflowKey(key), MS * rtt as u32, now);
                        sent[key as usize] = Some(Sent::new());
                    }
                }
                Step::Remove(key) => {
                    source.remove_subflow(SubflowKey(key));
                    sent[key as usize] = None;
                }
                Step::Size(key, size) => source.try_larger(SubflowKey(key), size + 37, size),
                Step::Send(key) => match source.poll(SubflowKey(key), now) {
                    Transmit::Data { number, content, packets, per_packet, .. } => {
                        let sent = sent[key as usize].as_mut().unwrap();
                        prop_assert_eq!(number, sent.len() as u64);
                        prop_assert!(!content.is_empty() && content.end <= CONTENT);
                        let length = content.end - content.start;
                        prop_assert_eq!(packets, length.div_ceil(per_packet as u64));
                        prop_assert!(packets <= 44);
                        sent.extend((0..packets).map(|_| content.clone()));
                    }
                    Transmit::Probe { number, .. } => {
                        let sent = sent[key as usize].as_mut().unwrap();
                        prop_assert_eq!(number, sent.len() as u64);
                        sent.push(0..0);
                    }
                    Transmit::Wait(until) => prop_assert!(until.is_none_or(|until| until > now)),
                },
                Step::Ack(key, bits, skip) => {
                    // Some of the last 64 packets but the last few.
                    let Some(sent) = &sent[key as usize] else { continue };
                    let end = (sent.len() as u64).saturating_sub(skip.into());
                    let start = end.saturating_sub(64);
                    let arrived = (start..end).filter(|number| bits >> (number % 64) & 1 == 1);
                    let arrived: RangeSet = arrived.map(|number| number..number + 1).collect();
                    if arrived.is_empty() { continue }
                    let before = source.missing().len();
                    let ack = ack(arrived.iter().rev(), credit);
                    let acked = source.on_ack(SubflowKey(key), &ack, now).unwrap();
                    prop_assert_eq!(before - source.missing().len(), acked.delivered);
                }
                Step::Credit(more) => credit += more,
                Step::Wait(ms) => {
                    now += MS * ms as u32;
                    source.timeout(now);
                    prop_assert!(source.next_timeout().is_none_or(|next| next > now));
                }
            }
            source.check();
        }
        // One subflow without losses delivers the rest.
        (0..3).for_each(|key| source.remove_subflow(SubflowKey(key)));
        let key = SubflowKey(9);
        add(&mut source, key, 10 * MS, now);
        let mut arriving = VecDeque::new();
        for _ in 0..2000 {
            if source.is_delivered() {
                break;
            }
            source.timeout(now);
            match source.poll(key, now) {
                Transmit::Data { number, packets, .. } => arriving.push_back((now, number + packets)),
                Transmit::Probe { number, .. } => arriving.push_back((now, number + 1)),
                Transmit::Wait(_) => {}
            }
            now += MS;
            while arriving.front().is_some_and(|(sent, _)| *sent + 10 * MS <= now) {
                let (_, end) = arriving.pop_front().unwrap();
                source.on_ack(key, &ack([0..end], CONTENT), now).unwrap();
            }
        }
        prop_assert!(source.is_delivered(), "{:?}", source);
    }
}
