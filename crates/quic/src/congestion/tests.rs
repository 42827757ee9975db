use std::collections::VecDeque;
use std::time::Duration;

use hawser_congestion::{Algorithm, CongestionReason};
use hawser_endhost::{IsdAsn, PathRates, ScionAddr};

use super::*;

const MS: Duration = Duration::from_millis(1);
const MTU: u16 = 1300;

#[test]
fn a_spurious_loss_is_undone() {
    let factory = Arc::new(Factory::unknown(Congestion::Cubic));
    let start = Instant::now();
    let mut control = factory.build(start, MTU);
    assert_eq!(control.window(), 10 * u64::from(MTU));
    assert_eq!(control.initial_window(), 10 * u64::from(MTU));
    control.on_congestion_event(start + 20 * MS, start, false, false, 1300, 0);
    assert_eq!(control.window(), 7 * u64::from(MTU));
    control.on_spurious_congestion_event();
    assert_eq!(control.window(), 10 * u64::from(MTU));
    // The loss is undone only once.
    control.on_congestion_event(start + 50 * MS, start + 30 * MS, false, true, 0, 0);
    control.on_spurious_congestion_event();
    assert_eq!(control.window(), 7 * u64::from(MTU));
}

#[test]
fn a_change_of_the_algorithm_is_recorded() {
    let factory = Factory::unknown(Congestion::Auto);
    let choice = factory.records.choice.clone();
    assert_eq!(choice.get(), CongestionState::default());
    let mut now = Instant::now();
    let mut control = factory.control(now, MTU);
    // A loss without a queue in each round.
    for number in 0..10 {
        control.on_packet_sent(now, MTU, 2 * number);
        control.on_packet_sent(now, MTU, 2 * number + 1);
        let sent = now;
        now += 100 * MS;
        control.acked(now, sent, MTU.into(), 2 * number + 1, false);
        control.on_end_acks(now, 0, false, Some(2 * number + 1));
        control.on_packet_lost(MTU, 2 * number, now);
        control.on_congestion_event(now, sent, false, false, MTU.into(), 2 * number);
        now += MS;
    }
    assert_eq!(choice.get().algorithm, Algorithm::Bbr);
    let reason = CongestionReason::LossWithoutQueue { rtt: 100 * MS };
    assert_eq!(choice.get().reason, reason);
}

/// A path over which nothing is lost.
const RTT: Duration = Duration::from_millis(50);
const BYTES_PER_MS: f64 = 100e3;

/// Sends over that path for `ms` milliseconds. Returns the bytes sent.
fn run(control: &mut Control, mut now: Instant, ms: u32) -> u64 {
    let (mut sent, mut in_flight, mut number, mut due) = (0, 0, 0, 0.0_f64);
    // When the link is idle, and what arrives: when, its number, and when it was sent.
    let mut idle = now;
    let mut arriving: VecDeque<(Instant, u64, Instant)> = VecDeque::new();
    let step = MS / 8;
    for _ in 0..8 * ms {
        let mut acked = false;
        while let Some((_, number, sent)) = arriving.pop_front_if(|(at, ..)| *at <= now) {
            in_flight -= u64::from(MTU);
            control.acked(now, sent, MTU.into(), number, false);
            acked = true;
        }
        if acked {
            control.on_end_acks(now, in_flight, false, None);
        }
        let rate = control.inner.pacing_rate().unwrap_or(1e6);
        due = (due + rate * step.as_secs_f64()).min(rate * 0.002 + 2600.0);
        while due >= f64::from(MTU) && in_flight + u64::from(MTU) <= control.window() {
            control.on_packet_sent(now, MTU, number);
            let took = Duration::from_secs_f64(f64::from(MTU) / BYTES_PER_MS / 1e3);
            idle = idle.max(now) + took;
            arriving.push_back((idle + RTT, number, now));
            due -= f64::from(MTU);
            (number, in_flight, sent) = (
                number + 1,
                in_flight + u64::from(MTU),
                sent + u64::from(MTU),
            );
        }
        now += step;
    }
    sent
}

#[test]
fn a_connection_begins_with_what_the_one_before_has_carried() {
    let rates = PathRates::default();
    let path = hawser_path::Fingerprint::local(IsdAsn::WILDCARD);
    let remote = ScionAddr::new(IsdAsn::WILDCARD, ([10, 0, 0, 1], 443).into());
    let factory = || Factory {
        rates: Some(rates.record(path, remote)),
        ..Factory::unknown(Congestion::Auto)
    };
    let (start, hour) = (Instant::now(), Duration::from_secs(3600));
    // Until the first train is sent.
    let begin = |at| run(&mut factory().control(at, MTU), at, 75);
    let unknown = begin(start);
    let mut first = factory().control(start, MTU);
    let carried = run(&mut first, start, 1500);
    assert_eq!(
        rates.record(path, remote).last(start),
        None,
        "{carried} bytes"
    );
    drop(first);
    let at = start + Duration::from_secs(2);
    let known = rates.record(path, remote).last(at).unwrap();
    let part = known.rate / (BYTES_PER_MS * 1e3);
    assert!((0.7..1.1).contains(&part), "{known:?}, {carried} bytes");
    let again = begin(at);
    assert!(again > 3 * unknown, "{again} bytes, {unknown} before");
    assert_eq!(begin(at + hour), unknown);
    // A long one stores it while it runs.
    let later = at + 2 * hour;
    let mut long = factory().control(later, MTU);
    run(&mut long, later, 3000);
    assert!(rates.record(path, remote).last(later).is_some());
}
