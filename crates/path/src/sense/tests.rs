use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::*;
use crate::{Decision, Reason, Sensed, Verdict};

/// Paths over links: a path carries its fair share of its narrowest link, as with greedy senders
/// under fair congestion control.
struct Fluid {
    /// In Mbit/s.
    links: Vec<f64>,
    /// The links each path crosses.
    paths: BTreeMap<u8, Vec<usize>>,
    /// Paths that are always in use.
    base: BTreeSet<u8>,
    sense: Sense<u8>,
    now: Instant,
    /// Number of slots that are over.
    slot: u64,
    /// By which share of itself each rate varies at most from slot to slot, and the seed of the
    /// variation.
    noise: (f64, u64),
    /// The share of the possible rate that is sent.
    load: f64,
}

impl Fluid {
    fn new(links: &[f64], paths: &[(u8, &[usize])], base: &[u8]) -> Self {
        Self {
            links: links.to_vec(),
            paths: paths.iter().map(|(p, l)| (*p, l.to_vec())).collect(),
            base: base.iter().copied().collect(),
            sense: Sense::new(SenseOptions::default()),
            now: Instant::now(),
            slot: 0,
            noise: (0.0, 0),
            load: 1.0,
        }
    }

    fn noisy(mut self, noise: f64, seed: u64) -> Self {
        self.noise = (noise, seed);
        self
    }

    fn used(&self) -> BTreeSet<u8> {
        self.base.union(&self.sense.used()).copied().collect()
    }

    /// Max-min fair rates, in bit/s: all grow together until a link is full.
    fn rates(&self) -> BTreeMap<u8, f64> {
        let mut left = self.links.clone();
        let mut open = self.used();
        let mut rates = BTreeMap::new();
        while !open.is_empty() {
            let share = |link: usize| {
                let users = open
                    .iter()
                    .filter(|p| self.paths[p].contains(&link))
                    .count();
                (users > 0).then(|| left[link] / users as f64)
            };
            let all = (0..left.len()).filter_map(|link| Some((share(link)?, link)));
            let (rate, full) = all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
            let through = |path: &&u8| self.paths[path].contains(&full);
            let done: Vec<u8> = open.iter().filter(through).copied().collect();
            for path in done {
                open.remove(&path);
                rates.insert(path, rate * 1e6);
                self.paths[&path]
                    .iter()
                    .for_each(|link| left[*link] -= rate);
            }
        }
        rates
    }

    fn tick(&mut self) -> Option<(u8, Decision)> {
        let (mut rates, used) = (self.rates(), self.used());
        self.slot += 1;
        for (path, rate) in &mut rates {
            let (noise, seed) = self.noise;
            let at = self.slot * 16 + u64::from(*path);
            *rate *= self.load * (1.0 + noise * crate::testing::noise(seed, at));
        }
        self.now += Duration::from_secs(1);
        let others = self.paths.keys().filter(|path| !self.base.contains(path));
        let shares = |a: u8, b: u8| {
            self.paths[&a]
                .iter()
                .any(|link| self.paths[&b].contains(link))
        };
        let with = |path: u8| used.iter().copied().filter(move |u| *u != path);
        let candidates: Vec<(u8, Vec<u8>)> = others
            .map(|path| (*path, with(*path).filter(|u| shares(*path, *u)).collect()))
            .collect();
        self.sense.tick(self.now, &rates, &candidates, true)
    }

    fn run(&mut self, slots: usize) -> Vec<(u8, Decision)> {
        (0..slots).flat_map(|_| self.tick()).collect()
    }
}

/// The action that a decision stands for.
fn name(decision: &Decision) -> &'static str {
    match (decision.verdict, &decision.reason) {
        (Verdict::Taken, Reason::Sensed(Sensed::Trial { .. })) => "try",
        (Verdict::Taken, _) => "keep",
        (Verdict::Waiting, _) => "pause",
        (Verdict::Left, _) => "drop",
    }
}

fn printed(actions: &[(u8, Decision)]) -> Vec<String> {
    let printed = |action: &(u8, Decision)| {
        let (path, why) = (action.0, &action.1.reason);
        format!("{} {path}: {why}", name(&action.1))
    };
    actions.iter().map(printed).collect()
}

const TRY: &str = "try 2: tried beside a path it shares interfaces with, which carries 10.0 Mbit/s";
const KEEP: &str = "keep 2: no shared bottleneck: with its 10.0 Mbit/s the sum rose from 10.0 Mbit/s to 20.0 Mbit/s";

#[test]
fn a_path_over_the_same_narrow_link_is_dropped() {
    let mut net = Fluid::new(&[10.0], &[(1, &[0]), (2, &[0])], &[1]);
    let dropped = "drop 2: shared bottleneck: a path fell from 10.0 Mbit/s to 5.0 Mbit/s beside its \
                   5.0 Mbit/s; tried again after 30 s";
    assert_eq!(printed(&net.run(8)), [TRY, dropped]);
    assert_eq!(net.used(), [1].into());
    // It is not retried for 30 s, then not for 60 s.
    assert!(net.run(29).is_empty());
    assert_eq!(net.run(10).len(), 2);
    assert!(net.run(54).is_empty());
}

#[test]
fn pauses_grow_to_eight_minutes() {
    let mut net = Fluid::new(&[10.0], &[(1, &[0]), (2, &[0])], &[1]);
    let mut pauses = Vec::new();
    for action in net.run(2400) {
        if let Reason::Sensed(Sensed::Bottleneck { again, .. }) = action.1.reason {
            pauses.push(again.as_secs());
        }
    }
    assert_eq!(pauses, [30, 60, 120, 240, 480, 480, 480, 480]);
}

#[test]
fn a_path_over_the_same_wide_link_is_kept() {
    let mut net = Fluid::new(&[100.0, 10.0, 10.0], &[(1, &[0, 1]), (2, &[0, 2])], &[1]);
    assert_eq!(printed(&net.run(100)), [TRY, KEEP]);
    assert_eq!(net.used(), [1, 2].into());
}

#[test]
fn a_bottleneck_that_comes_later_is_found() {
    let mut net = Fluid::new(&[100.0, 10.0, 10.0], &[(1, &[0, 1]), (2, &[0, 2])], &[1]);
    net.run(60);
    net.links[0] = 10.0;
    let check =
        "pause 2: paused for a check: a path it shares with fell from 10.0 Mbit/s to 5.0 Mbit/s";
    let dropped = "drop 2: shared bottleneck: a path rose from 5.0 Mbit/s to 10.0 Mbit/s without it; \
                   tried again after 30 s";
    assert_eq!(printed(&net.run(8)), [check, dropped]);
    assert_eq!(net.used(), [1].into());
}

#[test]
fn a_path_slowed_elsewhere_is_not_blamed_on_another() {
    let mut net = Fluid::new(&[100.0, 10.0, 10.0], &[(1, &[0, 1]), (2, &[0, 2])], &[1]);
    net.run(60);
    net.links[1] = 4.0;
    let check =
        "pause 2: paused for a check: a path it shares with fell from 10.0 Mbit/s to 4.0 Mbit/s";
    let kept = "keep 2: no shared bottleneck: without it the other path stayed at 4.0 Mbit/s";
    assert_eq!(printed(&net.run(100)), [check, kept]);
    assert_eq!(net.used(), [1, 2].into());
}

// Path 3 shares the narrow link with path 1, and path 2 the wide one: each is judged alone.
#[test]
fn paths_are_tried_one_at_a_time() {
    let paths: [(u8, &[usize]); 3] = [(1, &[0, 1]), (2, &[0, 2]), (3, &[1, 2])];
    let mut net = Fluid::new(&[100.0, 10.0, 10.0], &paths, &[1]);
    let actions = net.run(20);
    let steps: Vec<(&str, u8)> = actions
        .iter()
        .map(|(path, decision)| (name(decision), *path))
        .collect();
    assert_eq!(steps, [("try", 2), ("keep", 2), ("try", 3), ("drop", 3)]);
}

#[test]
fn a_trial_that_delivers_nothing_ends() {
    let mut sense = Sense::new(SenseOptions::default());
    let (rates, candidates) = (BTreeMap::from([(1u8, 1e7)]), [(2u8, vec![1u8])]);
    let now = Instant::now();
    let actions: Vec<_> = (0..25)
        .flat_map(|n| sense.tick(now + Duration::from_secs(n), &rates, &candidates, true))
        .collect();
    let dropped = "drop 2: its trial measured nothing; tried again after 30 s";
    assert_eq!(printed(&actions), [TRY, dropped]);
    assert!(sense.used().is_empty());
}

#[test]
fn nothing_is_tried_without_room_or_next_to_idle_paths() {
    let mut net = Fluid::new(&[10.0], &[(1, &[0]), (2, &[0])], &[1]);
    let candidates = [(2, vec![1])];
    for rate in [0.0, 1e7] {
        for _ in 0..10 {
            let rates = BTreeMap::from([(1, rate)]);
            let room = rate == 0.0;
            assert_eq!(net.sense.tick(net.now, &rates, &candidates, room), None);
        }
    }
}

const SHARE_WIDE: [(u8, &[usize]); 2] = [(1, &[0, 1]), (2, &[0, 2])];
const SHARE_NARROW: [(u8, &[usize]); 2] = [(1, &[0]), (2, &[0])];
const WIDE: [f64; 3] = [100.0, 10.0, 10.0];

fn drops(actions: &[(u8, Decision)]) -> usize {
    let dropped = |action: &&(u8, Decision)| name(&action.1) == "drop";
    actions.iter().filter(dropped).count()
}

fn keeps(actions: &[(u8, Decision)]) -> usize {
    let kept = |action: &&(u8, Decision)| name(&action.1) == "keep";
    actions.iter().filter(kept).count()
}

// The seeds are fixed, so these counts are always the same.
#[test]
fn noise_is_not_taken_for_a_bottleneck() {
    let (mut dropped, mut checked) = (0, 0);
    for noise in [0.1, 0.2] {
        for seed in 0..50 {
            let mut net = Fluid::new(&WIDE, &SHARE_WIDE, &[1]).noisy(noise, seed);
            assert!(keeps(&net.run(200)) > 0, "noise {noise}, seed {seed}");
            let actions = net.run(2000);
            dropped += drops(&actions);
            checked += keeps(&actions);
        }
    }
    assert!(dropped <= 2, "dropped {dropped} times in 200000 slots");
    assert!(checked <= 100, "checked {checked} times in 200000 slots");
}

#[test]
fn a_bottleneck_is_found_in_noise() {
    for noise in [0.1, 0.2] {
        for seed in 0..50 {
            let mut net = Fluid::new(&[10.0], &SHARE_NARROW, &[1]).noisy(noise, seed);
            let actions = net.run(600);
            assert_eq!(keeps(&actions), 0, "noise {noise}, seed {seed}");
            assert!(drops(&actions) > 0);
        }
    }
}

#[test]
fn a_bottleneck_among_four_is_found_in_noise() {
    let paths: [(u8, &[usize]); 5] = [(1, &[0]), (2, &[0]), (3, &[0]), (4, &[0]), (5, &[0])];
    for seed in 0..50 {
        let mut net = Fluid::new(&[10.0], &paths, &[1, 2, 3, 4]).noisy(0.1, seed);
        let actions = net.run(300);
        assert_eq!(keeps(&actions), 0, "seed {seed}");
        assert!(drops(&actions) > 0);
    }
}

#[test]
fn a_bottleneck_that_comes_later_is_found_in_noise() {
    for seed in 0..50 {
        let mut net = Fluid::new(&WIDE, &SHARE_WIDE, &[1]).noisy(0.2, seed);
        net.run(100);
        net.links[0] = 10.0;
        net.run(60);
        assert_eq!(net.used(), [1].into(), "seed {seed}");
        // Its end is found as well.
        net.links[0] = 100.0;
        net.run(1000);
        assert_eq!(net.used(), [1, 2].into(), "seed {seed}");
    }
}

// Noise alone may misjudge one or two of fifty first trials; those paths are tried again.
#[test]
fn no_path_is_dropped_while_there_is_little_to_send() {
    let mut dropped = 0;
    for seed in 0..50 {
        let mut net = Fluid::new(&WIDE, &SHARE_WIDE, &[1]).noisy(0.1, seed);
        // Before, during and after its trial.
        for _ in 0..20 {
            dropped += drops(&net.run(7));
            net.load = 0.0;
            assert_eq!(drops(&net.run(5)), 0, "seed {seed}");
            net.load = 1.0;
        }
    }
    assert!(dropped <= 2, "dropped {dropped} times in 7000 slots");
}

// At the start all rates rise, and at the end one has nothing more to send.
#[test]
fn rates_at_the_start_and_the_end_show_no_bottleneck() {
    for seed in 0..50 {
        let mut net = Fluid::new(&WIDE, &SHARE_WIDE, &[1]).noisy(0.1, seed);
        for slot in 0..8 {
            net.load = 0.5f64.powi(7 - slot);
            assert_eq!(drops(&net.run(1)), 0, "seed {seed}");
        }
        assert_eq!(drops(&net.run(60)), 0, "seed {seed}");
        for slot in 1..40 {
            net.links[1] = 10.0 * 0.9f64.powi(slot);
            assert_eq!(drops(&net.run(1)), 0, "seed {seed}");
        }
        assert_eq!(drops(&net.run(60)), 0, "seed {seed}");
        assert_eq!(net.used(), [1, 2].into());
    }
}
