//! How fast swarms are, and how often a seeder sends the same.

use std::thread;

use super::world::run;
use super::{Outcome, Setting};
use crate::pieces::Pieces;
use crate::pipeline::BURST_SLACK;
use crate::wire::BLOCK;

/// Runs a setting with three seeds at once.
fn outcomes(setting: Setting) -> [Outcome; 3] {
    thread::scope(|scope| {
        let runs = [1, 2, 3].map(|seed| scope.spawn(move || run(setting, seed)));
        runs.map(|run| run.join().unwrap())
    })
}

/// Runs a setting three times, and prints what became of it. Returns the lowest part of the rate that the seeders
/// allow, and the most copies that they sent.
fn worst(what: &str, setting: Setting) -> (f64, f64) {
    let mut worst = (f64::INFINITY, 0.0f64);
    for outcome in outcomes(setting) {
        let total = setting.pieces.total as f64;
        let rate = setting.shortest() / outcome.last();
        let copies = outcome.seeded as f64 / total;
        let wasted = outcome.wasted as f64 / total;
        println!("{what}: {rate:.3} of the rate, {copies:.3} copies sent, {wasted:.3} wasted");
        worst = (worst.0.min(rate), worst.1.max(copies));
    }
    worst
}

#[test]
fn a_slow_seeder_sends_everything_about_once() {
    let setting = Setting::slow_seeder();
    let (rate, copies) = worst("eight leechers", setting);
    assert!(rate >= 0.95 && copies <= 1.03, "{rate}, {copies}");
    let leechers = 2;
    let (rate, copies) = worst(
        "two leechers",
        Setting {
            leechers,
            ..setting
        },
    );
    assert!(rate >= 0.95 && copies <= 1.03, "{rate}, {copies}");
    let three = Setting {
        seeders: 3,
        seeder_uplink: 1.5e6,
        ..setting
    };
    let (rate, copies) = worst("three seeders", three);
    assert!(rate >= 0.95 && copies <= 1.05, "{rate}, {copies}");
}

#[test]
fn deep_queues_of_requests_cost_few_copies() {
    // Without an order among leechers the seeder sends 1.3 copies.
    let setting = Setting {
        slack: BURST_SLACK,
        ..Setting::slow_seeder()
    };
    let (rate, copies) = worst("over IP", setting);
    assert!(rate >= 0.92 && copies <= 1.1, "{rate}, {copies}");
}

#[test]
fn leechers_no_faster_than_the_seeder_share_what_it_sends() {
    // Without an order among leechers the seeder sends 1.6 copies.
    let setting = Setting {
        leecher_uplink: 4e6,
        ..Setting::slow_seeder()
    };
    let (rate, copies) = worst("slow leechers", setting);
    assert!(rate >= 0.88 && copies <= 1.15, "{rate}, {copies}");
}

#[test]
fn more_leechers_than_slots_and_little_content() {
    let setting = Setting::slow_seeder();
    let leechers = 20;
    let (rate, copies) = worst(
        "twenty leechers",
        Setting {
            leechers,
            ..setting
        },
    );
    assert!(rate >= 0.9 && copies <= 1.1, "{rate}, {copies}");
    let pieces = Pieces {
        length: 2 * BLOCK,
        total: 6 << 20,
    };
    let (rate, copies) = worst("little content", Setting { pieces, ..setting });
    assert!(rate >= 0.75 && copies <= 1.2, "{rate}, {copies}");
}

#[test]
fn leechers_do_not_wait_for_others_that_are_slower_than_the_seeder() {
    let setting = Setting {
        seeder_uplink: 25e6,
        leecher_uplink: 1e6,
        ..Setting::slow_seeder()
    };
    // All of the uplinks are used: the seeder's, and nearly all of the leechers'.
    let uplinks = 25e6 + 8.0 * 1e6;
    for outcome in outcomes(setting) {
        let last = outcome.last();
        let used = 8.0 * setting.pieces.total as f64 / (last * uplinks);
        assert!(used >= 0.9, "{used}");
    }
}

#[test]
fn leechers_with_unequal_parts_of_an_uplink_are_done_at_the_same_time() {
    let setting = Setting {
        skew: 0.5,
        pieces: Pieces {
            length: 4 * BLOCK,
            total: 64 << 20,
        },
        ..Setting::slow_seeder()
    };
    let (rate, copies) = worst("unequal parts", setting);
    assert!(rate >= 0.955 && copies <= 1.03, "{rate}, {copies}");
}

#[test]
fn a_leecher_with_a_path_of_its_own_fetches_more_than_its_part() {
    let setting = Setting {
        own_path: true,
        ..Setting::slow_seeder()
    };
    let (rate, copies) = worst("a path of its own", setting);
    assert!(rate >= 0.92 && copies <= 1.06, "{rate}, {copies}");
    let slack = BURST_SLACK;
    let (rate, copies) = worst("the same over IP", Setting { slack, ..setting });
    assert!(rate >= 0.87 && copies <= 1.12, "{rate}, {copies}");
}

#[test]
fn leechers_that_do_not_know_each_other_seldom_fetch_the_same() {
    // Two on plain IP, four on SCION, and two on both, which pass on what either side has.
    let equal = Setting {
        on_one: (2, 4),
        pieces: Pieces {
            length: 4 * BLOCK,
            total: 64 << 20,
        },
        ..Setting::slow_seeder()
    };
    // Those on IP alone get half of what the seeder sends.
    let unequal = Setting { skew: 0.7, ..equal };
    for (what, setting) in [("equal parts", equal), ("unequal parts", unequal)] {
        let (rate, copies) = worst(what, setting);
        assert!(rate >= 0.94 && copies <= 1.03, "{rate}, {copies}");
    }
    // Where all leave the last pieces to each other, a link is not used.
    let two_links = true;
    let (rate, copies) = worst("two links", Setting { two_links, ..equal });
    assert!(rate >= 0.955 && copies <= 1.03, "{rate}, {copies}");
}

#[test]
fn ids_that_differ_from_peer_to_peer_stop_nobody() {
    let setting = Setting {
        strangers: 4,
        ..Setting::slow_seeder()
    };
    let (rate, copies) = worst("strangers", setting);
    assert!(rate >= 0.8 && copies <= 1.2, "{rate}, {copies}");
}

#[test]
fn free_riders_get_at_most_their_share_of_the_optimistic_slots() {
    let setting = Setting {
        free_riders: 3,
        leechers: 9,
        slots: 4,
        // What leechers can send is scarce: else nobody but free riders wants the rest.
        seeder_uplink: 1e6,
        leecher_uplink: 0.1e6,
        ..Setting::slow_seeder()
    };
    for outcome in outcomes(setting) {
        let (honest, riders) = outcome.shared.split_at(6);
        let to_riders: u64 = riders.iter().sum();
        let to_all: u64 = outcome.shared.iter().sum();
        let part = to_riders as f64 / to_all as f64;
        println!("free riders got {part:.3} of what leechers sent: {riders:?}, others {honest:?}");
        // One of four slots is optimistic, and three of the five peers that take turns with it are free riders.
        assert!(part <= 0.25, "{part}");
        let most = riders.iter().max();
        assert!(most < honest.iter().min(), "{:?}", outcome.shared);
    }
}
