use super::*;

const RTT: Duration = Duration::from_millis(100);

/// A learner that has left slow start with `rate` Mbit/s.
fn vivace(rate: f64) -> Vivace {
    let mut vivace = Vivace::new(1300, Announced::default(), fastrand::Rng::with_seed(1));
    let phase = vivace.trying();
    vivace.enter(phase, rate * MEGABIT);
    vivace
}

/// One pair of trials on a link of `link` Mbit/s, with losses at random; returns the new rate in
/// Mbit/s.
fn pair(vivace: &mut Vivace, link: f64, loss: f64) -> f64 {
    let plans = [vivace.next(RTT), vivace.next(RTT)];
    for plan in plans {
        let rate = plan.rate / MEGABIT;
        let growth = (rate / link - 1.0).max(0.0);
        vivace.judge(&Outcome {
            step: plan.step,
            rate: plan.rate,
            planned: plan.rate,
            limited: false,
            loss,
            gradient: Some(Slope {
                value: growth,
                error: 0.0,
            }),
        });
    }
    vivace.rate / MEGABIT
}

#[test]
fn the_utility_is_the_papers() {
    // By hand: 100^0.9 = 63.0957, 900 * 100 * 0.001, 11.35 * 100 * 0.01.
    assert!((utility(100.0, 0.0, 0.0) - 63.0957).abs() < 1e-3);
    assert!((utility(100.0, 0.001, 0.01) + 38.2543).abs() < 1e-3);
}

#[test]
fn steps_in_one_direction_grow() {
    let mut vivace = vivace(100.0);
    let mut last = 100.0;
    let mut steps = Vec::new();
    for _ in 0..6 {
        let now = pair(&mut vivace, 1e6, 0.0);
        steps.push(now - last);
        last = now;
    }
    // The gradient of x^0.9 is 0.568 at 100, and hardly falls: confidences 1, 2, 3, 5, 7, 9.
    for (step, confidence) in steps.iter().zip([1.0, 2.0, 3.0, 5.0, 7.0, 9.0]) {
        let gradient = step / confidence;
        assert!((0.53..0.57).contains(&gradient), "{steps:?}");
    }
}

#[test]
fn a_step_is_bounded_and_the_bound_grows() {
    // A queue grows at both rates, and faster at the higher one.
    let mut vivace = vivace(100.0);
    let first = pair(&mut vivace, 50.0, 0.0);
    assert!((first - 95.0).abs() < 1e-6, "{first}");
    let second = pair(&mut vivace, 50.0, 0.0);
    assert!((second - 95.0 * 0.85).abs() < 1e-6, "{second}");
    // The other direction begins with the first bound again.
    vivace.rate = MEGABIT;
    vivace.extended = 5.0;
    let up = pair(&mut vivace, 1e6, 0.0);
    assert!((up - 1.05).abs() < 1e-6, "{up}");
}

#[test]
fn losses_of_a_thousandth_do_not_stop_the_climb() {
    let mut vivace = vivace(100.0);
    for _ in 0..20 {
        pair(&mut vivace, 1e6, 1e-3);
    }
    assert!(vivace.rate > 150.0 * MEGABIT, "{}", vivace.rate / MEGABIT);
}

#[test]
fn growth_within_the_tolerance_counts_for_none() {
    let slope = |value, error| counts(Some(Slope { value, error }));
    assert_eq!(counts(None), 0.0);
    assert_eq!(slope(0.049, 0.0), 0.0);
    assert_eq!(slope(0.1, 0.06), 0.0);
    assert_eq!(slope(0.1, 0.04), 0.1);
    assert_eq!(slope(-0.1, 0.0), 0.0);
}

#[test]
fn slow_start_ends_with_what_arrived() {
    let mut vivace = Vivace::new(1300, Announced::default(), fastrand::Rng::with_seed(1));
    let first = vivace.next(RTT);
    assert!((first.rate - 130_000.0).abs() < 1e-6);
    let second = vivace.next(RTT);
    assert!((second.rate - 260_000.0).abs() < 1e-6);
    let shows = |plan: &Plan<Step>, loss| Outcome {
        step: plan.step,
        rate: plan.rate,
        planned: plan.rate,
        limited: false,
        loss,
        gradient: None,
    };
    assert!(!vivace.judge(&shows(&first, 0.0)));
    assert!(vivace.judge(&shows(&second, 0.25)));
    assert!((vivace.rate - 195_000.0).abs() < 1e-6, "{}", vivace.rate);
}
