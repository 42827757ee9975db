//! What both sides of a session promise each other.

use proptest::prelude::*;

use super::*;

/// What always holds, and what holds once nothing has happened for long enough.
impl Network {
    fn links(&self, side: Side) -> BTreeSet<usize> {
        let links = self.links.iter().enumerate();
        let there = links.filter(|(_, link)| link.lanes[side as usize].is_some());
        there.map(|(link, _)| link).collect()
    }

    pub(super) fn check(&self) {
        for side in [Side::Client, Side::Server] {
            let links = self.links(side);
            let slots = self.slots(side);
            assert!(slots.values().all(|(link, _)| links.contains(link)));
        }
        let published = &self.published[Side::Server as usize];
        assert!(published.iter().eq(self.slots(Side::Server).keys()));
        let has_ended = !self.ends[Side::Client as usize].is_empty();
        assert_eq!(self.client.is_over(), has_ended);
    }

    /// Both sides have the same lanes, and the server has them under the slots of the client.
    fn check_agreement(&self) {
        let [client, server] = [Side::Client, Side::Server].map(|side| self.links(side));
        assert!(!client.is_empty());
        assert_eq!(client, server);
        let [client, server] = [Side::Client, Side::Server].map(|side| self.slots(side));
        // A late packet may have put a lane that had given its slot up under it again.
        for (slot, bound) in &client {
            assert_eq!(server.get(slot), Some(bound), "slot {slot}");
        }
        // The path manager may hold some, as one that took long to connect, but not all.
        let published: BTreeSet<Slot> = self.published[0].iter().copied().collect();
        assert!(!published.is_empty());
        assert!(published.iter().all(|slot| client.contains_key(slot)));
    }
}

#[derive(Debug, Clone)]
enum Operation {
    /// A path fails.
    Break(usize),
    /// It works again.
    Heal(usize),
    /// Only these paths are offered.
    Offer(Vec<usize>),
    /// So many ms pass.
    Pass(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0..PATHS).prop_map(Operation::Break),
        4 => (0..PATHS).prop_map(Operation::Heal),
        1 => prop::collection::vec(0..PATHS, 1..PATHS).prop_map(Operation::Offer),
        4 => (50..8_000_u64).prop_map(Operation::Pass),
    ]
}

fn carrier() -> impl Strategy<Value = CarrierKind> {
    prop_oneof![Just(CarrierKind::Mptcp), Just(CarrierKind::Quic)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn both_sides_agree_again_once_paths_work(
        carrier in carrier(),
        loss in 0..40_u64,
        random in 1..u64::MAX,
        operations in prop::collection::vec(operation(), 1..30),
    ) {
        let mut network = Network::new(carrier, loss, random);
        network.pass(1000 * MS);
        for operation in operations {
            match operation {
                Operation::Break(path) => {
                    network.broken[path].get_or_insert(network.now);
                }
                Operation::Heal(path) => network.broken[path] = None,
                Operation::Offer(paths) => network.offer(&paths),
                Operation::Pass(ms) => network.pass(ms as u32 * MS),
            }
            network.settle();
        }
        network.broken = Default::default();
        network.offer(&[0, 1, 2, 3, 4]);
        network.pass(90_000 * MS);
        network.check_agreement();
        // And take leave of each other.
        network.client.release();
        network.settle();
        network.pass(2000 * MS);
        let [client, server] = &network.ends;
        prop_assert_eq!(client.len(), 1);
        prop_assert_eq!(&server[..], ["the other host has ended it"]);
        prop_assert!(network.server.is_empty());
    }

    #[test]
    fn no_lane_is_lost_while_paths_work(
        carrier in carrier(),
        loss in 0..60_u64,
        random in 1..u64::MAX,
    ) {
        let mut network = Network::new(carrier, loss, random);
        network.pass(20_000 * MS);
        network.check_agreement();
        let most = PathOptions::default().subflows;
        prop_assert_eq!(network.links(Side::Client).len(), most);
        prop_assert_eq!(network.links.len(), most);
        prop_assert_eq!(network.slots(Side::Client), network.slots(Side::Server));
    }
}

#[test]
fn a_host_that_vanishes_is_forgotten_after_ten_minutes() {
    let mut network = Network::new(CarrierKind::Mptcp, 0, 1);
    network.pass(2000 * MS);
    let began = network.now;
    network.broken = [Some(began); PATHS];
    network.client.release();
    network.settle();
    network.pass(10_000 * MS);
    assert!(network.links(Side::Server).is_empty() && network.ends[1].is_empty());
    let due = network.server.next_due().unwrap();
    assert!(due >= began + IDLE + 600_000 * MS && due < began + 2 * IDLE + 600_000 * MS);
    network.now = due;
    network.settle();
    assert_eq!(network.ends[1], ["the other host has gone"]);
}
