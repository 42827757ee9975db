use std::time::Duration;

use hawser_path::Select;
use hawser_topology::{IsdAsn, Network};
use swarm::Swarm;

use super::*;

/// 001, Fig. 9: leechers in A (1) and D (4), the seeder in E (5); both links out of E have 10
/// Mbit/s. Paths over B have a slightly lower latency, so that leechers that choose for themselves
/// both take it.
const FIG_9: &str = r#"
ASes:
  "1-ff00:0:1": {}
  "1-ff00:0:2": {core: true}
  "1-ff00:0:3": {core: true}
  "1-ff00:0:4": {}
  "1-ff00:0:5": {}
links:
  - {a: "1-ff00:0:2#1", b: "1-ff00:0:1#1", linkAtoB: CHILD, rate: 100mbit}
  - {a: "1-ff00:0:2#2", b: "1-ff00:0:4#1", linkAtoB: CHILD, rate: 100mbit}
  - {a: "1-ff00:0:2#3", b: "1-ff00:0:5#1", linkAtoB: CHILD, rate: 10mbit, delay: 2ms}
  - {a: "1-ff00:0:3#1", b: "1-ff00:0:1#2", linkAtoB: CHILD, rate: 100mbit}
  - {a: "1-ff00:0:3#2", b: "1-ff00:0:4#2", linkAtoB: CHILD, rate: 100mbit}
  - {a: "1-ff00:0:3#3", b: "1-ff00:0:5#2", linkAtoB: CHILD, rate: 10mbit, delay: 5ms}
"#;

fn isd_as(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

fn fig_9() -> (Network, Options) {
    let options = Options {
        hosts: Hosts {
            leechers: 2,
            seeders_in: vec![isd_as("1-ff00:0:5")],
            leechers_in: vec![isd_as("1-ff00:0:1"), isd_as("1-ff00:0:4")],
            ..Hosts::default()
        },
        size: 25_000_000,
        arrive: Duration::ZERO,
        select: "latency".parse().unwrap(),
        paths: 1,
        peers: 0,
        ..Options::default()
    };
    (Network::parse(FIG_9).unwrap(), options)
}

fn run(network: &Network, options: &Options, by: SelectBy) -> Outcome {
    simulate(network, options, by, |_| {}).unwrap()
}

#[test]
fn an_uploader_doubles_the_goodput_of_two_leechers_that_collide() {
    let (network, options) = fig_9();
    let naive = run(&network, &options, SelectBy::Downloader);
    // Both use the link of 10 Mbit/s from E to B: 200 Mbit each take 40 s, after three round trips.
    assert_eq!(naive.finished, 2);
    let goodput = naive.goodput_mbit;
    assert!((4.8..=5.0).contains(&goodput.min), "{naive:?}");
    assert!((4.8..=5.0).contains(&goodput.max), "{naive:?}");
    assert_eq!(naive.shared[0].interface.to_string(), "1-ff00:0:5#1");
    let upstream = |outcome: &Outcome| {
        let mut shared = outcome.shared.iter();
        let from_e = shared.find(|one| one.interface.to_string() == "1-ff00:0:5#1");
        from_e.map(|one| (one.most, one.rate_mbit)).unwrap()
    };
    assert_eq!(upstream(&naive), (2, 10.0));

    let shared_out = run(&network, &options, SelectBy::Uploader);
    assert_eq!(upstream(&shared_out), (1, 10.0));
    let ratio = shared_out.goodput_mbit.sum / naive.goodput_mbit.sum;
    assert!((1.9..=2.05).contains(&ratio), "{ratio}");
    assert!(shared_out.jain > 0.999);
}

#[test]
fn a_leecher_that_leaves_frees_its_share_for_the_others() {
    let (network, mut options) = fig_9();
    options.arrive = Duration::from_secs(20);
    let outcome = run(&network, &options, SelectBy::Downloader);
    // Alone each needs 20 s, so both are present for a while: the link they share is busy from the
    // first arrival on, and 400 Mbit take 40 s.
    let time = outcome.completion_seconds.unwrap();
    let swarm = Swarm::new(&network, &options, SelectBy::Downloader).unwrap();
    let first = swarm
        .leechers()
        .iter()
        .map(|one| one.arrives)
        .min()
        .unwrap();
    let busy = time.last - first.as_secs_f64();
    assert!((40.0..=40.3).contains(&busy), "{busy} s, {time:?}");
    assert!(time.median > 20.1 && time.longest < 39.9, "{time:?}");
}

/// A network, and a swarm that is large enough for all mechanisms to act.
fn busy(seed: u64) -> (Network, Options) {
    let network = Network::parse(&generate(30, 5)).unwrap();
    let options = Options {
        seed,
        hosts: Hosts {
            leechers: 25,
            seeders: 2,
            ..Hosts::default()
        },
        size: 20_000_000,
        arrive: Duration::from_secs(5),
        duration: Duration::from_secs(120),
        ..Options::default()
    };
    (network, options)
}

const BOTH: [SelectBy; 2] = [SelectBy::Downloader, SelectBy::Uploader];

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let json = |seed| {
        let (network, options) = busy(seed);
        let all = BOTH.map(|by| run(&network, &options, by));
        serde_json::to_string(&all).unwrap()
    };
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
}

#[test]
fn nothing_is_lost_and_no_link_carries_more_than_it_can() {
    for by in BOTH {
        let (network, options) = busy(3);
        let mut swarm = Swarm::new(&network, &options, by).unwrap();
        let mut before = vec![0; swarm.loads.len()];
        while swarm.leechers().iter().any(|one| one.finished.is_none()) {
            assert!(swarm.now() < options.duration, "{by}: not done in time");
            swarm.step().unwrap();
            for (at, load) in swarm.loads.iter().enumerate() {
                let carried = (load.bytes - std::mem::replace(&mut before[at], load.bytes)) as f64;
                // A path-level peer may carry the rest of a byte over from the last step.
                let most = swarm.book.capacity[at] * STEP.as_secs_f64() + f64::from(load.most);
                assert!(carried <= most, "{by}: {carried} of {most}");
            }
        }
        let carried = swarm.total().bytes;
        let needed = options.size * options.hosts.leechers as u64;
        // Blocks that were under way at a choke, or were requested twice in the end, are carried again.
        let most = needed + needed / 50;
        assert!(
            (needed..=most).contains(&carried),
            "{by}: {carried} of {needed}"
        );
        let outcome = outcome::Outcome::of(&swarm, by);
        assert_eq!(outcome.finished, options.hosts.leechers);
        assert_eq!(outcome.delivered_bytes, needed);
        assert!(outcome.jain <= 1.0 && outcome.shared.iter().all(|one| one.utilisation <= 1.0));
    }
}

/// Each leecher has a picker and a choker of its own.
#[test]
fn thousands_of_leechers_get_everything_and_little_twice() {
    let (network, mut options) = fig_9();
    options.hosts.leechers = 2000;
    options.size = 1 << 20;
    options.peers = 8;
    options.arrive = Duration::from_secs(10);
    let mut swarm = Swarm::new(&network, &options, SelectBy::Downloader).unwrap();
    while swarm.leechers().iter().any(|one| one.finished.is_none()) {
        assert!(swarm.now() < options.duration, "not done in time");
        swarm.step().unwrap();
    }
    let (carried, needed) = (swarm.total().bytes, options.size * 2000);
    let most = needed + needed / 20;
    assert!((needed..=most).contains(&carried), "{carried} of {needed}");
    // What the seeder sends crosses one of its two links; what leechers of one AS send each other, none.
    let by_seeder = swarm.loads.iter().map(|load| load.bytes).max().unwrap();
    assert!(by_seeder < needed / 2, "{by_seeder} of {needed}");
}

/// Chokers and pickers are called because something happened, not in every step for every host.
#[test]
fn the_work_for_a_block_does_not_grow_with_the_swarm() {
    let looks_per_block = |leechers| {
        let (network, mut options) = fig_9();
        options.hosts.leechers = leechers;
        options.hosts.seeders = leechers / 100;
        options.hosts.seeders_in = Vec::new();
        options.size = 1 << 20;
        options.peers = 8;
        options.arrive = Duration::from_secs(10);
        let mut swarm = Swarm::new(&network, &options, SelectBy::Downloader).unwrap();
        while swarm.finished() < leechers {
            assert!(swarm.now() < options.duration, "not done in time");
            swarm.step().unwrap();
        }
        let blocks = swarm.total().bytes as f64 / f64::from(hawser_wire::BLOCK);
        swarm.looks as f64 / blocks
    };
    let (small, large) = (looks_per_block(300), looks_per_block(3000));
    assert!(large < small, "{small}, {large}");
    // Looks at every choker in every step would be 22 and 4.9.
    assert!(small < 7.0 && large < 4.0, "{small}, {large}");
}

#[test]
fn leechers_help_each_other() {
    // Alone the seeder needs 20 s for four times 100 Mbit over its two links of 10 Mbit/s.
    let (network, mut options) = fig_9();
    options.hosts.leechers = 4;
    options.size = 12_500_000;
    options.paths = 2;
    options.select = Select::disjoint();
    for by in BOTH {
        let alone = run(&network, &options, by).completion_seconds.unwrap().last;
        let helped = Options {
            peers: 8,
            ..options.clone()
        };
        let helped = run(&network, &helped, by).completion_seconds.unwrap().last;
        assert!(alone >= 20.0, "{by}: {alone}");
        assert!(helped < alone * 0.75, "{by}: {helped} of {alone}");
    }
}

#[test]
fn free_riders_wait_for_those_that_give() {
    // Three seeders spread new pieces faster than leechers can fetch them: with one, those that give
    // soon have all that is there, wait for it, and what they could send is left to free riders.
    let (network, mut options) = fig_9();
    options.hosts.leechers = 20;
    options.hosts.free_riders = 10;
    options.size = 40_000_000;
    options.hosts.seeders = 3;
    options.peers = 20;
    options.slots = 4;
    options.hosts.rate = 2_000_000;
    options.paths = 2;
    options.duration = Duration::from_secs(3000);
    options.hosts.leechers_in = vec![isd_as("1-ff00:0:1"), isd_as("1-ff00:0:4")];
    for by in BOTH {
        let mut riding = 0.0;
        let mut giving = 0.0;
        // Seeds differ by more than what is asked for.
        for seed in 1..=8 {
            options.seed = seed;
            let mut swarm = Swarm::new(&network, &options, by).unwrap();
            while swarm.leechers().iter().any(|one| one.finished.is_none()) {
                swarm.step().unwrap();
                assert!(swarm.now() < options.duration, "{by}: it never ends");
            }
            let mean = |rides_free: bool| {
                let all = swarm.leechers().iter();
                let times = all.filter(|one| one.rides_free == rides_free);
                let times: Vec<f64> = times
                    .filter_map(|one| Some((one.finished? - one.arrives).as_secs_f64()))
                    .collect();
                times.iter().sum::<f64>() / times.len() as f64
            };
            riding += mean(true);
            giving += mean(false);
        }
        // The seeders, and what nobody else wants, serve them as others.
        assert!(riding > 1.03 * giving, "{by}: {riding} s and {giving} s");
    }
}

#[test]
fn options_that_do_not_fit_are_rejected() {
    let (network, options) = fig_9();
    let refused =
        |options: &Options| simulate(&network, options, SelectBy::Uploader, |_| {}).unwrap_err();
    let with = |change: fn(&mut Hosts)| {
        let mut options = options.clone();
        change(&mut options.hosts);
        refused(&options)
    };
    let nowhere = with(|hosts| hosts.seeders_in = vec![isd_as("7-ff00:0:1")]);
    assert_eq!(nowhere, SimulateError::NoAs(isd_as("7-ff00:0:1")));
    let none = with(|hosts| hosts.leechers = 0);
    assert!(none.to_string().contains("leechers is 0"));
    let riders = with(|hosts| hosts.free_riders = 3);
    assert_eq!(riders, SimulateError::FreeRiders(3, 2));
    let mut apart = network.clone();
    apart.links.truncate(2);
    let error = simulate(&apart, &options, SelectBy::Downloader, |_| {}).unwrap_err();
    assert!(matches!(error, SimulateError::NoPath(..)), "{error}");
}

#[test]
fn leechers_are_unfinished_when_the_time_is_over() {
    let (network, mut options) = fig_9();
    options.duration = Duration::from_secs(3);
    let outcome = run(&network, &options, SelectBy::Uploader);
    assert_eq!((outcome.came, outcome.finished), (2, 0));
    assert_eq!(outcome.completion_seconds, None);
    assert_eq!(outcome.seconds, 3.0);
    assert!(outcome.delivered_bytes > 0 && outcome.goodput_mbit.min > 0.0);
}
