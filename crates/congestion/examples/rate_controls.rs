//! Prints how each rate control fills and shares a bottleneck, on virtual time: the smallest figure
//! over some seeds, the median, and the largest.
//!
//! `cargo run --release -p hawser-congestion --example rate_controls [-- SEEDS [ALGORITHM...]]`
#![allow(clippy::unwrap_used, reason = "an example may fail anywhere")]

#[path = "../src/tests/bottleneck.rs"]
mod bottleneck;

use std::time::Duration;

use hawser_congestion::{Algorithm, Announced, Coupling, RateControl};

use self::bottleneck::{Link, Sender, run, run_network, share};

const MS: Duration = Duration::from_millis(1);
const GIGABIT: f64 = 125e6;

/// A link of `mbit` Mbit/s with a round trip of `rtt` ms, a queue of `queue` ms and random losses.
fn link(mbit: f64, rtt: u32, queue: u32, loss: f64) -> Link {
    Link {
        rate: mbit / 1e3 * GIGABIT,
        rtt: rtt * MS,
        queue: queue * MS,
        loss,
        acks: None,
        change: None,
    }
}

fn seconds(time: f64) -> Duration {
    Duration::from_secs_f64(time)
}

/// The share of a link that one sender has between two times.
fn alone(algorithm: Algorithm, link: Link, (from, until): (f64, f64), seed: u64) -> f64 {
    let mut senders = [Sender::new(algorithm, Announced::default(), seed)];
    run(link, &mut senders, seconds(until), seed);
    share(&senders[0], link.rate, from, until)
}

/// The part of the packets that one sender loses in 15 seconds.
fn lost(algorithm: Algorithm, link: Link, seed: u64) -> f64 {
    let mut senders = [Sender::new(algorithm, Announced::default(), seed)];
    run(link, &mut senders, seconds(15.0), seed);
    senders[0].lost as f64 / senders[0].sent as f64
}

/// The smaller by the larger share of two equal senders, the second of which begins later.
fn equal(algorithm: Algorithm, link: Link, seed: u64) -> f64 {
    let late = Sender::new(algorithm, Announced::default(), seed + 100);
    let mut senders = [
        Sender::new(algorithm, Announced::default(), seed),
        late.active([seconds(5.0)..Duration::MAX]),
    ];
    run(link, &mut senders, seconds(60.0), seed);
    let [one, other] = [0, 1].map(|at| share(&senders[at], link.rate, 30.0, 60.0));
    one.min(other) / one.max(other)
}

/// The share of a sender by that of CUBIC beside it.
fn beside_cubic(algorithm: Algorithm, link: Link, seed: u64) -> f64 {
    let mut senders = [
        Sender::new(algorithm, Announced::default(), seed),
        Sender::new(Algorithm::Cubic, Announced::default(), seed + 100),
    ];
    run(link, &mut senders, seconds(40.0), seed);
    let [one, other] = [0, 1].map(|at| share(&senders[at], link.rate, 15.0, 40.0));
    one / other
}

/// The share of two coupled subflows together by that of CUBIC beside them.
fn coupled(algorithm: Algorithm, link: Link, seed: u64) -> f64 {
    let sender = |algorithm, seed| Sender::new(algorithm, Announced::default(), seed);
    let mut senders = [
        sender(algorithm, seed),
        sender(algorithm, seed + 50),
        sender(Algorithm::Cubic, seed + 100),
    ];
    senders[..2]
        .iter_mut()
        .for_each(|one| one.control.couple(2));
    run(link, &mut senders, seconds(40.0), seed);
    let [one, other, cubic] = [0, 1, 2].map(|at| share(&senders[at], link.rate, 15.0, 40.0));
    (one + other) / cubic
}

/// The least share of the first link that two paths have in any second, if two flows of CUBIC congest
/// the second link of one of them from second 15 to 30.
fn congested(algorithm: Algorithm, link: Link, seed: u64) -> f64 {
    let sender = |algorithm, seed| Sender::new(algorithm, Announced::default(), seed);
    let cubic = |seed| {
        let active = [seconds(15.0)..seconds(30.0)];
        sender(Algorithm::Cubic, seed).active(active).over([2])
    };
    let mut senders = [
        sender(algorithm, seed).over([0, 1]),
        sender(algorithm, seed + 50).over([0, 2]),
        cubic(seed + 100),
        cubic(seed + 101),
    ];
    let mut coupling = Coupling::default();
    (0..2).for_each(|at| coupling.add(at, vec![0, 1 + at]));
    for (at, share) in coupling.shares() {
        senders[at].control.couple(share);
    }
    run_network(&[link; 3], &mut senders, seconds(45.0), seed, |now, all| {
        for (at, one) in all.iter().take(2).enumerate() {
            coupling.delivered(now, at, one.delivered(), link.rtt);
        }
        for (at, rate) in coupling.take(now) {
            all[at].control.take(rate);
        }
    });
    let second = |tenth: i32| {
        let from = f64::from(tenth) / 10.0;
        let shares = senders[..2]
            .iter()
            .map(|one| share(one, link.rate, from, from + 1.0));
        shares.sum::<f64>()
    };
    100.0 * (50..440).map(second).fold(f64::INFINITY, f64::min)
}

/// Seconds after the rate came back until a sender has 90 % of what became free, for half a second.
fn takes(algorithm: Algorithm, link: Link, seed: u64) -> f64 {
    let (from, until) = (10.0, 20.0);
    let halved = Link {
        change: Some((seconds(from), seconds(until), link.rate / 2.0)),
        ..link
    };
    let mut senders = [Sender::new(algorithm, Announced::default(), seed)];
    run(halved, &mut senders, seconds(60.0), seed);
    (0..380)
        .map(|tenth| until + f64::from(tenth) / 10.0)
        .find(|at| share(&senders[0], link.rate, *at, at + 0.5) > 0.95)
        .map_or(f64::INFINITY, |at| at - until)
}

/// A row: its label, and the figure for a seed.
type Row = (&'static str, Box<dyn Fn(Algorithm, u64) -> f64>);

fn rows() -> Vec<Row> {
    let fill = |mbit, rtt, queue, loss, from| -> Box<dyn Fn(Algorithm, u64) -> f64> {
        let link = link(mbit, rtt, queue, loss);
        Box::new(move |one, seed| 100.0 * alone(one, link, (from, from + 10.0), seed))
    };
    let part = |mbit, rtt, queue, loss| -> Box<dyn Fn(Algorithm, u64) -> f64> {
        let link = link(mbit, rtt, queue, loss);
        Box::new(move |one, seed| 100.0 * lost(one, link, seed))
    };
    vec![
        ("1 Gbit/s, 194 ms, 5..15 s: %", fill(1e3, 194, 50, 0.0, 5.0)),
        ("  with 0.01 % loss", fill(1e3, 194, 50, 1e-4, 5.0)),
        ("  with 0.1 % loss", fill(1e3, 194, 50, 1e-3, 5.0)),
        ("  queue of 1 ms", fill(1e3, 194, 1, 0.0, 5.0)),
        ("  lost: %", part(1e3, 194, 50, 0.0)),
        ("1 Gbit/s, 25 ms, 5..15 s: %", fill(1e3, 25, 50, 0.0, 5.0)),
        ("  with 0.1 % loss", fill(1e3, 25, 50, 1e-3, 5.0)),
        ("  queue of 1 ms", fill(1e3, 25, 1, 0.0, 5.0)),
        ("10 Mbit/s, 25 ms: %", fill(10.0, 25, 50, 0.0, 5.0)),
        ("1 Mbit/s, 25 ms: %", fill(1.0, 25, 100, 0.0, 5.0)),
        ("  lost: %", part(1.0, 25, 100, 0.0)),
        ("two on 100 Mbit/s, 25 ms: ratio", {
            let link = link(100.0, 25, 50, 0.0);
            Box::new(move |one, seed| equal(one, link, seed))
        }),
        ("beside CUBIC, 100 Mbit/s, 25 ms", {
            let link = link(100.0, 25, 50, 0.0);
            Box::new(move |one, seed| beside_cubic(one, link, seed))
        }),
        ("two coupled beside CUBIC", {
            let link = link(100.0, 25, 50, 0.0);
            Box::new(move |one, seed| coupled(one, link, seed))
        }),
        ("one of two paths congested: %", {
            let link = link(100.0, 25, 50, 0.0);
            Box::new(move |one, seed| congested(one, link, seed))
        }),
        ("rate comes back, 100 Mbit/s: s", {
            let link = link(100.0, 25, 50, 0.0);
            Box::new(move |one, seed| takes(one, link, seed))
        }),
        ("rate comes back, 1 Gbit/s: s", {
            let link = link(1e3, 25, 50, 0.0);
            Box::new(move |one, seed| takes(one, link, seed))
        }),
    ]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seeds = arguments.next().map_or(3, |arg| arg.parse().unwrap());
    let mut algorithms: Vec<Algorithm> = arguments.map(|arg| arg.parse().unwrap()).collect();
    if algorithms.is_empty() {
        algorithms = Algorithm::ALL.to_vec();
    }
    print!("{:34}", "");
    algorithms.iter().for_each(|one| print!("{one:>22}"));
    println!();
    for (label, figure) in rows() {
        print!("{label:34}");
        for &one in &algorithms {
            let mut figures: Vec<f64> = (0..seeds).map(|seed| figure(one, seed)).collect();
            figures.sort_by(f64::total_cmp);
            let [least, median, most] =
                [0, figures.len() / 2, figures.len() - 1].map(|at| figures[at]);
            let shown = format!("{least:.2} {median:.2} {most:.2}");
            print!("{shown:>22}");
        }
        println!();
    }
}
