//! Devices that refuse large packets.

use std::time::Duration;

use proptest::prelude::*;

use super::{Conditions, Network};
use crate::Config;
use crate::connection::Read;
use crate::packet::HEADER_LENGTH;

/// The size of the smallest full packet that is tried.
const SMALLEST: usize = Config::SMALLER_PAYLOADS[1] + HEADER_LENGTH;

/// Sends `content` from the first host to the second for this time, or until all has arrived. Returns what has.
/// From `change` on, the device of the first host takes no packet that is larger than `largest`.
fn carry(
    mut network: Network,
    content: &[u8],
    (largest, change): (usize, Duration),
    time: Duration,
) -> Vec<u8> {
    let (begin, peer) = (network.now, network.hosts[1].addr);
    let from = network.hosts[0].endpoint.connect(peer, begin).unwrap();
    let (mut to, mut written, mut arrived) = (None, 0, Vec::new());
    while network.now < begin + time {
        let now = network.now;
        if now >= begin + change {
            network.hosts[0].largest = largest;
        }
        let [sender, receiver] = &mut network.hosts;
        if sender.endpoint.is_connected(from) && written < content.len() {
            let taken = sender.endpoint.write(from, &content[written..], now);
            written += taken.unwrap();
            if written == content.len() {
                sender.endpoint.finish(from, now);
            }
        }
        to = to.or_else(|| receiver.endpoint.accept().map(|it| it.0));
        let mut room = vec![0; 100_000];
        while let Some(to) = to {
            match receiver.endpoint.read(to, &mut room, now).unwrap() {
                Read::Bytes(length) => arrived.extend(&room[..length]),
                Read::Blocked => break,
                Read::End => return arrived,
            }
        }
        network.pass_until(now + Duration::from_millis(5));
    }
    arrived
}

fn random(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_a_device_refuses_is_sent_in_smaller_packets(
        length in 1..300_000usize,
        largest in SMALLEST..1500usize,
        change in 0..300u64,
        delay in 0..60u64,
        seed: u64,
    ) {
        let content = random(length, seed);
        let conditions = Conditions::clean(Duration::from_millis(delay));
        let network = Network::new([conditions; 2], Config::default(), seed);
        let change = (largest, Duration::from_millis(change));
        let arrived = carry(network, &content, change, Duration::from_secs(120));
        prop_assert!(arrived == content, "{} of {length} have arrived", arrived.len());
    }

    // What has left and is lost cannot be sent any more, but nothing else takes its place.
    #[test]
    fn what_arrives_is_right_where_packets_are_lost_before_the_change(
        largest in SMALLEST..1500usize, change in 0..300u64, lost in 0..20u32, seed: u64,
    ) {
        let content = random(200_000, seed);
        let mut conditions = Conditions::clean(Duration::from_millis(20));
        conditions.lost = lost;
        let mut network = Network::new([conditions; 2], Config::default(), seed);
        network.watch_nothing();
        let change = (largest, Duration::from_millis(change));
        let arrived = carry(network, &content, change, Duration::from_secs(5));
        prop_assert!(content.starts_with(&arrived));
    }
}
