//! Bursts of which the end is lost, so that no later packet shows it.

use std::time::Duration;

use super::{Conditions, Network};
use crate::Config;
use crate::connection::Read;

const MS: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(20);

/// Sends 40,000 bytes of which the last `lost` are lost at first. Returns the time until all have arrived.
fn time_to_arrive(lost: usize) -> Duration {
    let mut network = Network::new([Conditions::clean(DELAY); 2], Config::default(), 1);
    let (begin, peer) = (network.now, network.hosts[1].addr);
    let from = network.hosts[0].endpoint.connect(peer, begin).unwrap();
    network.pass_until(begin + MS * 100);
    // A window for all of them, and a round trip that is known.
    let now = network.now;
    let written = network.hosts[0].endpoint.write(from, &[1; 300_000], now);
    let written = written.unwrap();
    network.run(0);
    network.pass_until(now + MS * 500);
    let to = network.hosts[1].endpoint.accept().unwrap().0;
    let read = |network: &mut Network| {
        let mut room = vec![0; 400_000];
        let now = network.now;
        match network.hosts[1].endpoint.read(to, &mut room, now).unwrap() {
            Read::Bytes(length) => length,
            _ => 0,
        }
    };
    assert_eq!(read(&mut network), written);
    let begin = network.now;
    for (length, chance) in [(40_000 - lost, 0), (lost, 100)] {
        network.hosts[0].conditions.lost = chance;
        let bytes = vec![2; length];
        let written = network.hosts[0].endpoint.write(from, &bytes, begin);
        assert_eq!(written, Ok(length));
        network.run(0);
    }
    network.hosts[0].conditions.lost = 0;
    let mut rest = 40_000;
    while rest > 0 {
        let next = network.now + MS;
        network.pass_until(next);
        rest -= read(&mut network);
        (0..2).for_each(|at| network.run(at));
    }
    network.now - begin
}

/// No timeout passes, which is 500 ms.
#[test]
fn the_lost_end_of_a_burst_is_sent_again_after_some_round_trips() {
    assert!(time_to_arrive(0) < MS * 50);
    for lost in [1_000, 15_000, 39_000] {
        let time = time_to_arrive(lost);
        assert!(time < DELAY * 16, "{lost}: {time:?}");
    }
}
