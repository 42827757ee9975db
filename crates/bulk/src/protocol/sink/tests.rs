#![expect(clippy::single_range_in_vec_init, reason = "they are lists of ranges")]

use proptest::prelude::*;

use super::*;

const KEY: SubflowKey = SubflowKey(3);
const MS: Duration = Duration::from_millis(1);

fn sink(content: u64, credit: u64) -> (Sink, Instant) {
    let now = Instant::now();
    let mut sink = Sink::new(content, credit);
    sink.add_subflow(KEY, now);
    sink.set_interval(KEY, 10 * MS);
    (sink, now)
}

fn parts(sink: &mut Sink, range: Range<u64>) -> Vec<Range<u64>> {
    sink.on_data(range).unwrap().collect()
}

#[test]
fn packets_are_acknowledged_after_the_interval() {
    let (mut sink, now) = sink(100, 100);
    assert_eq!(sink.next_timeout(), None);
    sink.on_packet(KEY, 0, false, true, now);
    sink.on_packet(KEY, 1, false, false, now + 4 * MS);
    assert_eq!(sink.next_timeout(), Some(now + 10 * MS));
    assert_eq!(sink.poll_ack(KEY, now + 9 * MS), None);
    let ack = Ack {
        largest: 1,
        delay: 6 * MS,
        marked: 1,
        credit: 100,
        ranges: vec![0..2],
    };
    assert_eq!(sink.poll_ack(KEY, now + 10 * MS), Some(ack));
    assert_eq!(sink.poll_ack(KEY, now + 99 * MS), None);
    assert_eq!(sink.next_timeout(), None);
}

#[test]
fn losses_and_questions_are_acknowledged_at_once() {
    let (mut sink, now) = sink(100, 100);
    (0..4).for_each(|number| sink.on_packet(KEY, number * 2, false, false, now));
    // Packet 1 is lost: 2, 4 and 6 do not confirm it, but 4 does as the third number after it.
    let ack = sink.poll_ack(KEY, now).unwrap();
    assert_eq!(ack.ranges, [6..7, 4..5, 2..3, 0..1]);
    // Not twice within a millisecond, unless asked.
    (8..12).for_each(|number| sink.on_packet(KEY, number, false, false, now));
    assert_eq!(sink.next_timeout(), Some(now + MS));
    sink.on_packet(KEY, 12, true, false, now);
    assert_eq!(sink.poll_ack(KEY, now).unwrap().largest, 12);
}

#[test]
fn few_ranges_are_repeated() {
    let (mut sink, now) = sink(100, 100);
    (0..1000).for_each(|number| sink.on_packet(KEY, number * 2, false, false, now));
    assert_eq!(sink.poll_ack(KEY, now).unwrap().ranges.len(), 1000);
    sink.on_packet(KEY, 2000, true, false, now);
    let ranges = sink.poll_ack(KEY, now).unwrap().ranges;
    assert_eq!(
        (ranges.len(), ranges[0].clone()),
        (REPEATED_RANGES + 1, 2000..2001)
    );
}

#[test]
fn a_credit_that_rose_is_announced_without_packets() {
    let (mut sink, now) = sink(1000, 100);
    sink.on_packet(KEY, 0, true, false, now);
    assert_eq!(sink.poll_ack(KEY, now).unwrap().credit, 100);
    sink.release(24, now);
    assert_eq!(sink.next_timeout(), None);
    sink.release(1, now);
    assert_eq!(sink.next_timeout(), Some(now + 10 * MS));
    assert_eq!(sink.poll_ack(KEY, now + 10 * MS).unwrap().credit, 125);
}

#[test]
fn content_beyond_its_end_or_the_credit_is_refused() {
    let (mut sink, now) = sink(100, 50);
    let error = SinkError::BeyondContent {
        end: 101,
        content: 100,
    };
    assert_eq!(sink.on_data(90..101).unwrap_err(), error);
    assert_eq!(parts(&mut sink, 50..100), vec![50..100]);
    let error = SinkError::BeyondCredit {
        taken: 51,
        credit: 50,
    };
    assert_eq!(sink.on_data(49..60).unwrap_err(), error);
    assert_eq!(sink.received().len(), 50);
    // What is forgotten does not count twice.
    sink.forget(60..70);
    assert_eq!(parts(&mut sink, 55..75), vec![60..70]);
    assert!(sink.on_data(0..1).is_err());
    sink.release(50, now);
    assert_eq!(parts(&mut sink, 0..100), vec![0..50]);
    let stats = sink.stats();
    assert_eq!((stats.received, stats.repeated), (100, 10 + 50));
}

#[test]
fn removed_subflows_are_ignored() {
    let (mut sink, now) = sink(100, 100);
    sink.on_packet(KEY, 0, true, false, now);
    sink.remove_subflow(KEY);
    sink.on_packet(KEY, 1, true, false, now);
    sink.set_interval(KEY, MS);
    sink.release(100, now);
    assert_eq!((sink.next_timeout(), sink.poll_ack(KEY, now)), (None, None));
}

#[derive(Debug, Clone)]
enum Step {
    Data(u64, u64),
    Packet(u64, bool),
    Forget(u64, u64),
    Release(u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..300_u64, 0..80_u64).prop_map(|(from, length)| Step::Data(from, length)),
        4 => (0..6_u64, any::<bool>()).prop_map(|(ahead, ask)| Step::Packet(ahead, ask)),
        1 => (0..300_u64, 0..80_u64).prop_map(|(from, length)| Step::Forget(from, length)),
        1 => (0..50_u64).prop_map(Step::Release),
        2 => (0..20_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn every_byte_is_new_once(steps in prop::collection::vec(step(), 1..200)) {
        const CONTENT: u64 = 256;
        let (mut sink, mut now) = sink(CONTENT, 64);
        let (mut have, mut ever) = ([false; CONTENT as usize], [false; CONTENT as usize]);
        let (mut credit, mut next) = (64, 0);
        for step in steps {
            match step {
                Step::Data(from, length) => {
                    let range = from..from + length;
                    let at = range.start as usize..range.end as usize;
                    let beyond = range.end > CONTENT;
                    let taken = |ever: &[bool]| ever.iter().filter(|taken| **taken).count() as u64;
                    let unseen = || taken(&ever) + ever[at.clone()].iter().filter(|seen| !**seen).count() as u64;
                    let refused = beyond || unseen() > credit;
                    match sink.on_data(range.clone()) {
                        Err(_) => prop_assert!(refused),
                        Ok(parts) => {
                            prop_assert!(!refused);
                            for position in parts.flatten() {
                                prop_assert!(range.contains(&position) && !have[position as usize]);
                                have[position as usize] = true;
                            }
                            prop_assert!(have[at.clone()].iter().all(|have| *have));
                            ever[at].fill(true);
                        }
                    }
                }
                Step::Packet(ahead, ask) => {
                    next += ahead;
                    sink.on_packet(KEY, next, ask, false, now);
                    next += 1;
                    prop_assert!(sink.next_timeout().is_some());
                }
                Step::Forget(from, length) => {
                    sink.forget(from..from + length);
                    let end = (from + length).min(CONTENT) as usize;
                    have[(from as usize).min(end)..end].fill(false);
                }
                Step::Release(bytes) => {
                    sink.release(bytes, now);
                    credit += bytes;
                }
                Step::Wait(ms) => {
                    now += MS * ms as u32;
                    if let Some(ack) = sink.poll_ack(KEY, now) {
                        prop_assert_eq!((ack.largest, ack.credit), (next - 1, credit));
                        prop_assert!(sink.next_timeout().is_none_or(|due| due > now));
                    }
                }
            }
            let count = have.iter().filter(|have| **have).count() as u64;
            prop_assert_eq!(sink.received().len(), count);
        }
    }
}
