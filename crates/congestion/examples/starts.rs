//! Prints how a transfer starts on a link of its own, on virtual time: round trips until it fills the
//! link, and what is lost on the way.
//!
//! `cargo run --release -p hawser-congestion --example starts [-- SEEDS [WORD...]]`
//!
//! A cell has three pairs of figures, each the median over the seeds and the worst of them: the round trips
//! from the first packet until a round trip begins in which 90 % of what the link carries is acknowledged;
//! the part of the packets that is lost until two round trips after that one, less what is lost at random,
//! in percent; and the part of the link that is used in the 20 round trips (at least 2 seconds) after the
//! 90 %, in percent. `-`: not within 4 seconds and 20 round trips. `late`: no loss, and acknowledgements in
//! lumps, as a busy machine sends them.
//!
//! Words choose what runs: `bulk` and `quic` protocols; `nothing`, `rate`, `tenth` and `tenfold` what is
//! announced, `again`, `more` and `less` what the path has carried before, while it was the same link, one
//! four times as fast, or a quarter; `loss`, `late` and `neither` rows.
#![allow(clippy::unwrap_used, reason = "an example may fail anywhere")]

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../src/tests/bottleneck.rs"]
mod bottleneck;

use std::time::{Duration, Instant};

use hawser_congestion::{Algorithm, Announced, Carried, Congestion, RateControl, WindowControl};

use self::bottleneck::{Link, PACKET, Sender, run_network};

const MS: Duration = Duration::from_millis(1);
/// Interval of observations.
const STEP: Duration = Duration::from_millis(10);
/// Bytes per second of 1 Mbit/s.
const MEGABIT: f64 = 125e3;
/// The part of the link that counts as full.
const FULL: f64 = 0.9;
/// The interval of acknowledgements of a receiver on a busy machine.
const LATE: Duration = Duration::from_millis(8);

/// A protocol of this program. Each has its own rate control and its own interval of acknowledgements.
#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Bulk,
    Quic,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Quic => "quic",
        }
    }

    fn acks(self) -> Option<Duration> {
        match self {
            Self::Bulk => None,
            Self::Quic => Some(Duration::from_micros(100)),
        }
    }

    fn control(self, known: Known, rtt: Duration, seed: u64) -> Box<dyn RateControl> {
        let now = Instant::now();
        let announced = Announced {
            bandwidth: known.announced.map(|rate| rate as u64),
            rtt: Some(rtt),
        };
        let mut control = match self {
            Self::Bulk => Algorithm::Auto.start(now, PACKET, announced, seed),
            Self::Quic => {
                let (mtu, auto) = (PACKET as u16, Congestion::Auto);
                Box::new(WindowControl::new(now, mtu, announced, auto, seed))
            }
        };
        if let Some(carried) = known.carried {
            control.remember(carried);
        }
        control
    }
}

/// What is known of a path before a start.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Bytes per second.
    announced: Option<f64>,
    carried: Option<Carried>,
}

/// Where that is from, with a factor of the rate of the link.
#[derive(Clone, Copy)]
enum Source {
    Nothing,
    Announced(f64),
    Carried(f64),
}

impl Source {
    fn known(self, protocol: Protocol, link: Link, seed: u64) -> Known {
        match self {
            Self::Nothing => Known::default(),
            Self::Announced(factor) => Known {
                announced: Some(factor * link.rate),
                carried: None,
            },
            Self::Carried(factor) => {
                let rate = factor * link.rate;
                let link = Link { rate, ..link };
                let control = protocol.control(Known::default(), link.rtt, seed);
                let mut senders = [Sender::with(control)];
                run_network(&[link], &mut senders, 20 * link.rtt, seed, |_, _| {});
                Known {
                    announced: None,
                    carried: senders[0].control.carried(),
                }
            }
        }
    }
}

/// What was seen of a start.
struct Start {
    /// Round trips until the link was full.
    rounds: f64,
    /// The part of the packets lost until then, beyond what is lost at random.
    lost: f64,
    /// The part of the link used after that.
    used: f64,
}

/// Runs a start over `link`, with what is `known` of it.
fn start(protocol: Protocol, link: Link, known: Known, seed: u64) -> Start {
    let after = (20 * link.rtt).max(Duration::from_secs(2));
    let length = Duration::from_secs(4) + 20 * link.rtt + after;
    let mut senders = [Sender::with(protocol.control(known, link.rtt, seed))];
    let mut samples: Vec<(u64, u64, u64)> = Vec::new();
    run_network(&[link], &mut senders, length, seed, |_, all| {
        samples.push((all[0].delivered(), all[0].sent, all[0].lost));
    });
    let steps = |time: Duration| (time.as_secs_f64() / STEP.as_secs_f64()).round() as usize;
    let carries = link.rate * (1.0 - link.loss);
    let part = |from: usize, length: usize| {
        let bytes = samples[from + length].0 - samples[from].0;
        bytes as f64 / (carries * length as f64 * STEP.as_secs_f64())
    };
    let round = steps(link.rtt);
    let last = samples.len() - 1 - steps(after) - 3 * round;
    let full = (0..last).find(|from| part(*from, round) >= FULL);
    let Some(full) = full else {
        let (_, sent, lost) = samples[last];
        return Start {
            rounds: f64::INFINITY,
            lost: lost as f64 / sent as f64 - link.loss,
            used: part(last - steps(after), steps(after)),
        };
    };
    let (_, sent, lost) = samples[full + 3 * round];
    Start {
        rounds: full as f64 / round as f64,
        lost: lost as f64 / sent as f64 - link.loss,
        used: part(full, steps(after)),
    }
}

/// The median of figures, the best of them first, and the worst.
fn spread(figures: impl Iterator<Item = f64>, is_more_better: bool) -> [f64; 2] {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    if is_more_better {
        figures.reverse();
    }
    [figures[figures.len() / 2], figures[figures.len() - 1]]
}

/// A cell of the table.
fn cell(starts: &[Start]) -> String {
    let rounds = spread(starts.iter().map(|one| one.rounds), false);
    let rounds = rounds.map(|rounds| match rounds.is_finite() {
        true => format!("{rounds:.1}"),
        false => "-".into(),
    });
    let lost = spread(starts.iter().map(|one| 100.0 * one.lost), false);
    let used = spread(starts.iter().map(|one| 100.0 * one.used), true);
    format!(
        "{}/{} {:.1}/{:.1} {:.0}/{:.0}",
        rounds[0], rounds[1], lost[0], lost[1], used[0], used[1]
    )
}

/// Whether one of these words is among those that were named, or none of them is.
fn is_named(named: &[String], word: &str, among: &[&str]) -> bool {
    let has = |word: &str| named.iter().any(|one| one == word);
    has(word) || !among.iter().any(|word| has(word))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seeds: u64 = arguments.next().map_or(3, |arg| arg.parse().unwrap());
    let named: Vec<String> = arguments.collect();
    let hints = [
        ("nothing", Source::Nothing),
        ("rate", Source::Announced(1.0)),
        ("tenth", Source::Announced(0.1)),
        ("tenfold", Source::Announced(10.0)),
        ("again", Source::Carried(1.0)),
        ("more", Source::Carried(4.0)),
        ("less", Source::Carried(0.25)),
    ];
    let words = hints.map(|(hint, _)| hint);
    let hints: Vec<_> = hints
        .into_iter()
        .filter(|(hint, _)| is_named(&named, hint, &words))
        .collect();
    for protocol in [Protocol::Bulk, Protocol::Quic] {
        if !is_named(&named, protocol.name(), &["bulk", "quic"]) {
            continue;
        }
        println!("\n{}: round trips, % lost, % used after", protocol.name());
        print!("{:>7} {:>7} {:>7} {:>6}", "Mbit/s", "rtt", "queue", "loss");
        hints.iter().for_each(|(hint, _)| print!("{hint:>28}"));
        println!();
        for (rtt, mbit) in [20, 194]
            .map(|rtt| [20, 100, 1000].map(|mbit| (rtt, mbit)))
            .concat()
        {
            for (queue, loss, late) in [5, 100]
                .map(|queue| [0.0, 1e-3, 1e-2].map(|loss| (queue, loss, false)))
                .concat()
                .into_iter()
                .chain([(5, 0.0, true), (100, 0.0, true)])
            {
                let row = match (late, loss > 0.0) {
                    (true, _) => "late",
                    (false, true) => "loss",
                    (false, false) => "neither",
                };
                if !is_named(&named, row, &["late", "loss", "neither"]) {
                    continue;
                }
                let link = Link {
                    rate: f64::from(mbit) * MEGABIT,
                    rtt: rtt * MS,
                    queue: queue * MS,
                    loss,
                    acks: match late {
                        true => Some(LATE),
                        false => protocol.acks(),
                    },
                    change: None,
                };
                let mark = match late {
                    true => "late".into(),
                    false => (loss * 100.0).to_string(),
                };
                print!("{mbit:>7} {rtt:>7} {queue:>7} {mark:>6}");
                for (_, hint) in &hints {
                    let starts: Vec<_> = (0..seeds)
                        .map(|seed| {
                            let known = hint.known(protocol, link, 1000 + seed);
                            start(protocol, link, known, seed)
                        })
                        .collect();
                    print!("{:>28}", cell(&starts));
                }
                println!();
            }
        }
    }
}
