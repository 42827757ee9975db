use std::time::Duration;

use hawser_congestion::{Algorithm, CongestionReason};

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
