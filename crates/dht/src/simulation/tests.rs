use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use hawser_address::ScionAddr;

use super::*;

fn run<A: Numbered>(scenario: Scenario) -> Report {
    let report = World::<A>::new(scenario).run();
    println!(
        "{} nodes, {} % hostile: {} of {} found, {:.1} asked, {:.1} answered, {:.1} hops, {:.1} \
         announced, slowest {:?}, {} datagrams, {} misled, {} limited",
        scenario.nodes,
        scenario.hostile,
        report.found,
        report.searches,
        report.mean(|one| one.asked),
        report.mean(|one| one.answered),
        report.mean(|one| one.hops as usize),
        report.mean_announced(),
        report.slowest,
        report.datagrams,
        report.misled,
        report.limited,
    );
    assert_eq!(report.searches, scenario.searches);
    report
}

#[test]
fn peers_are_found_among_a_thousand_nodes_of_which_many_leave_or_are_hostile() {
    let report = run::<SocketAddrV4>(Scenario {
        nodes: 1000,
        hostile: 20,
        life: Some(Duration::from_secs(30 * 60)),
        warm_up: Duration::from_secs(600),
        torrents: 50,
        searches: 400,
        ..Scenario::default()
    });
    assert!(report.found * 100 >= report.searches * 99);
    assert!(report.limited > 0);
}

#[test]
fn steps_grow_with_the_logarithm_of_the_nodes() {
    let of = |nodes| {
        run::<SocketAddrV4>(Scenario {
            nodes,
            warm_up: Duration::from_secs(180),
            ..Scenario::default()
        })
    };
    let (small, large) = (of(100), of(1000));
    assert_eq!((small.found, large.found), (100, 100));
    // log 1000 / log 100 = 1.5.
    let (a, b) = (small.mean(|one| one.asked), large.mean(|one| one.asked));
    assert!(b < 1.5 * a, "{a} asked of 100, {b} of 1000");
    let (a, b) = (
        small.mean(|one| one.hops as usize),
        large.mean(|one| one.hops as usize),
    );
    assert!(b < a + 3.4, "{a} hops among 100, {b} among 1000");
}

fn small<A: Numbered>() {
    let report = run::<A>(Scenario {
        nodes: 150,
        hostile: 20,
        life: Some(Duration::from_secs(30 * 60)),
        ..Scenario::default()
    });
    assert!(report.found * 100 >= report.searches * 99);
}

#[test]
fn peers_are_found_over_ipv4() {
    small::<SocketAddrV4>();
}

#[test]
fn peers_are_found_over_ipv6() {
    small::<SocketAddrV6>();
}

#[test]
fn peers_are_found_over_scion() {
    small::<ScionAddr>();
}

#[test]
fn a_few_nodes_are_a_dht() {
    for nodes in [2, 3, 9] {
        let report = run::<ScionAddr>(Scenario {
            nodes,
            loss: 0,
            torrents: 1,
            searches: 10,
            ..Scenario::default()
        });
        assert_eq!(report.found, 10);
    }
}
