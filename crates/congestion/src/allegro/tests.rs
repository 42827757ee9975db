use super::*;

const RTT: Duration = Duration::from_millis(100);

fn allegro(settings: Settings) -> Allegro {
    let random = fastrand::Rng::with_seed(1);
    Allegro::new(settings, 1300, Announced::default(), random)
}

/// What an interval shows on a link of `link` bytes per second without a queue.
fn on(plan: &Plan<Step>, link: f64) -> Outcome<Step> {
    Outcome {
        step: plan.step,
        rate: plan.rate,
        planned: plan.rate,
        limited: false,
        loss: (1.0 - link / plan.rate).max(0.0),
        gradient: None,
    }
}

/// Runs intervals one after the other, each known at its end; returns their rates.
fn run(allegro: &mut Allegro, link: f64, intervals: usize) -> Vec<f64> {
    let interval = |_| {
        let plan = allegro.next(RTT);
        allegro.judge(&on(&plan, link));
        plan.rate
    };
    (0..intervals).map(interval).collect()
}

#[test]
fn the_utility_falls_where_losses_exceed_a_twentieth() {
    // By hand: 0.99 / (1 + e^-4) - 0.01.
    assert!((utility(1.0, 0.01) - 0.96219).abs() < 1e-4);
    assert!((utility(1.0, 0.05) - 0.425).abs() < 1e-9);
    assert!(utility(1.0, 0.2) < 0.0);
    // Without loss more is better, however much it is.
    assert!(utility(2e9, 0.0) > utility(1e9, 0.0));
}

#[test]
fn the_starting_phase_doubles_until_the_utility_falls() {
    let mut allegro = allegro(PAPER_SETTINGS);
    let first = 10.0 * 1300.0 / RTT.as_secs_f64();
    let rates = run(&mut allegro, 5.0 * first, 4);
    assert_eq!(rates, [1.0, 2.0, 4.0, 8.0].map(|part| part * first));
    assert!(matches!(allegro.phase, Phase::Deciding { .. }));
    assert_eq!(allegro.rate, 4.0 * first);
    // Hercules begins with 1460 packets in a round trip, and keeps what arrived.
    let mut hercules = self::allegro(HERCULES);
    let first = 1460.0 * 1300.0 / RTT.as_secs_f64();
    let rates = run(&mut hercules, 1.5 * first, 2);
    assert_eq!(rates, [first, 2.0 * first]);
    assert!((hercules.rate / first - 1.5).abs() < 1e-9);
}

#[test]
fn a_decision_tries_both_directions_twice() {
    let mut allegro = allegro(PAPER_SETTINGS);
    allegro.enter(Phase::deciding(MIN_STEP), 1e6);
    let rates = run(&mut allegro, 1e9, 4);
    for pair in rates.chunks(2) {
        let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        assert!((low - 0.99e6).abs() < 1.0 && (high - 1.01e6).abs() < 1.0);
    }
    // Nothing is lost: upwards, with growing steps.
    let rates = run(&mut allegro, 1e9, 3);
    let expected = [1.01, 1.01 * 1.02, 1.01 * 1.02 * 1.03].map(|part| 1.01e6 * part);
    for (rate, expected) in rates.iter().zip(expected) {
        assert!((rate / expected - 1.0).abs() < 1e-9, "{rates:?}");
    }
    // The link takes no more than the last rate.
    let best = allegro.rate;
    run(&mut allegro, best, 1);
    assert!(matches!(allegro.phase, Phase::Deciding { .. }));
    assert_eq!(allegro.rate, best);
}

#[test]
fn pairs_that_disagree_widen_the_step() {
    let mut allegro = allegro(PAPER_SETTINGS);
    allegro.enter(Phase::deciding(MIN_STEP), 1e6);
    for round in 1..8 {
        for trial in 0..TRIALS {
            let plan = allegro.next(RTT);
            let higher = plan.rate > allegro.rate;
            // The higher rate wins in the first pair, the lower one in the second.
            let loses = (trial < 2) != higher;
            let loss = if loses { 0.2 } else { 0.0 };
            allegro.judge(&Outcome {
                loss,
                ..on(&plan, 1e9)
            });
        }
        let Phase::Deciding { step, .. } = allegro.phase else {
            panic!("{:?}", allegro.phase);
        };
        let expected = (MIN_STEP * f64::from(round + 1)).min(MAX_STEP);
        assert!((step - expected).abs() < 1e-9, "{step} {round}");
        assert_eq!(allegro.rate, 1e6);
    }
}

#[test]
fn results_of_an_earlier_phase_change_nothing() {
    let mut allegro = allegro(PAPER_SETTINGS);
    let old = allegro.next(RTT);
    allegro.enter(Phase::deciding(MIN_STEP), 1e6);
    assert!(!allegro.judge(&on(&old, 1.0)));
    assert_eq!(allegro.rate, 1e6);
}

#[test]
fn the_rate_does_not_grow_beyond_what_is_used() {
    let mut allegro = allegro(PAPER_SETTINGS);
    let plan = allegro.next(RTT);
    let limited = Outcome {
        limited: true,
        rate: plan.rate / 2.0,
        ..on(&plan, 1e9)
    };
    allegro.judge(&limited);
    assert_eq!(allegro.next(RTT).rate, plan.rate);
}
