use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::limit::{Limit, Limits};
use crate::state::{Filter, Filters, Ingress, Key, ROOT_TABLE, Spot};

const DEVICE: Device<'static> = Device {
    name: "eth0",
    index: 7,
    mtu: 1500,
};

fn planned(wanted: &DeviceLimits, found: &KernelState) -> Vec<Change> {
    plan(DEVICE, wanted, found, true).unwrap()
}

/// A packet, as far as filters look at it.
#[derive(Debug, Clone, Copy)]
struct Packet {
    source: IpAddr,
    destination: IpAddr,
    ports: Option<(u16, u16)>,
}

impl Packet {
    /// The packet's bytes from the IP header on. One without ports is a later fragment.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let fragment = if self.ports.is_some() { 0 } else { 185_u16 };
                bytes.extend([0x45, 0, 0, 0, 0, 0]);
                bytes.extend(fragment.to_be_bytes());
                bytes.extend([64, 17, 0, 0]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let next = if self.ports.is_some() { 17 } else { 44 };
                bytes.extend([0x60, 0, 0, 0, 0, 0, next, 64]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
            }
            _ => panic!("two versions"),
        }
        let (source, destination) = self.ports.unwrap_or((0xaaaa, 0xbbbb));
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
        bytes.extend([0; 4]);
        bytes
    }
}

fn word(bytes: &[u8], at: i32) -> Option<u32> {
    let at = usize::try_from(at).ok()?;
    let word = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(word))
}

/// Where the kernel's u32 classifier sends a packet (`u32_classify` in `net/sched/cls_u32.c`).
fn classify(filters: &Filters, packet: &Packet) -> Option<Then> {
    let bytes = packet.bytes();
    let v6 = packet.source.is_ipv6();
    let own = filters
        .preferences
        .iter()
        .filter(|&&p| (crate::layout::version(p) == crate::layout::Version::V6) == v6);
    own.into_iter().find_map(|&preference| {
        let root = Spot {
            preference,
            table: ROOT_TABLE,
            bucket: 0,
        };
        search(filters, root, &bytes)
    })
}

fn search(filters: &Filters, spot: Spot, bytes: &[u8]) -> Option<Then> {
    let here = filters.nodes.range((spot, 0)..=(spot, u16::MAX));
    for (_, Filter { keys, then }) in here {
        let matches = |key: &Key| word(bytes, key.at).is_some_and(|w| w & key.mask == key.value);
        if !keys.iter().all(matches) {
            continue;
        }
        let Then::Table { table, mask, at } = *then else {
            return Some(*then);
        };
        assert_eq!(filters.tables.get(&table), Some(&spot.preference));
        let hash = (word(bytes, at)? & mask) >> mask.trailing_zeros();
        let next = Spot {
            table,
            bucket: hash as u8,
            ..spot
        };
        if let Some(found) = search(filters, next, bytes) {
            return Some(found);
        }
    }
    None
}

/// The rate and queue with which a packet of `direction` is sent on; `None` if it is not limited.
fn limit_of(state: &KernelState, direction: Direction, packet: &Packet) -> Option<(u64, u32)> {
    let class = |host, minor| {
        let shaper: &Shaper = state.shapers.get(&host)?;
        assert_eq!(shaper.root, Root::Htb);
        let class = shaper.classes.get(&minor)?;
        Some((class.rate, shaper.queues[&minor]))
    };
    let at_host = |host, then| match then {
        Some(Then::Class(minor)) => class(host, minor),
        None => class(host, DEFAULT_CLASS),
        other => panic!("{other:?}"),
    };
    let on_ifb = |ifb: u8| {
        assert!(state.ifbs[&ifb].ready);
        let host = Host::Ifb(ifb);
        at_host(host, classify(&state.shapers[&host].filters, packet))
    };
    match direction {
        Direction::Egress => {
            let device = state.shapers.get(&Host::Device)?;
            if device.root != Root::Htb {
                return None;
            }
            match classify(&device.filters, packet) {
                Some(Then::Redirect(ifb)) => on_ifb(ifb),
                then => at_host(Host::Device, then),
            }
        }
        Direction::Ingress => {
            state.ingress?;
            match classify(&state.ingress_filters, packet)? {
                Then::Redirect(ifb) => on_ifb(ifb),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The limit that a packet ought to have.
fn expected(wanted: &DeviceLimits, direction: Direction, packet: &Packet) -> Option<(u64, u32)> {
    let (address, port) = match direction {
        Direction::Egress => (packet.destination, packet.ports.map(|ports| ports.1)),
        Direction::Ingress => (packet.source, packet.ports.map(|ports| ports.0)),
    };
    let of = |remote: &Remote| wanted.links.get(remote)?.of(direction);
    let exact = port.and_then(|port| {
        of(&Remote {
            address,
            port: Some(port),
        })
    });
    let whole = || {
        of(&Remote {
            address,
            port: None,
        })
    };
    // A fragment counts as of the link with the lowest port.
    let lowest = || {
        let mut of_address = wanted.links.iter().filter(|(r, _)| r.address == address);
        let has_limit = of_address.find_map(|(_, limits)| limits.of(direction));
        has_limit.filter(|_| port.is_none())
    };
    let limit = exact
        .or_else(whole)
        .or_else(lowest)
        .or(wanted.default.of(direction))?;
    let shape = Shape::new(&limit, DEVICE.mtu, DEVICE.name, Owner::Default).unwrap();
    Some((shape.class.rate, shape.queue))
}

fn some_address() -> impl Strategy<Value = IpAddr> {
    // Few values, so that addresses share bytes.
    let byte = || prop_oneof![Just(0_u8), Just(1), Just(7)];
    prop_oneof![
        [byte(), byte(), byte(), byte()]
            .prop_map(|[a, b, c, d]| { IpAddr::from([10, a, b ^ d, c]) }),
        [byte(), byte(), byte()].prop_map(|[a, b, c]| {
            let mut bytes = [0; 16];
            (bytes[0], bytes[1], bytes[7], bytes[8], bytes[15]) = (0xfd, 0, a, b, c);
            IpAddr::from(bytes)
        }),
    ]
}

fn some_port() -> impl Strategy<Value = u16> {
    prop_oneof![
        Just(50_000_u16),
        Just(30_041),
        Just(50_001),
        Just(50_000 ^ 0x100)
    ]
}

fn some_limits() -> impl Strategy<Value = Limits> {
    let rate = || prop_oneof![Just(0_u64), 8_000..20_000_u64, Just(Limit::MAX_RATE)];
    let limit = || prop::option::weighted(0.8, rate().prop_map(Limit::new));
    (limit(), limit()).prop_map(|(egress, ingress)| Limits { egress, ingress })
}

fn some_wanted() -> impl Strategy<Value = DeviceLimits> {
    let remote = (some_address(), prop::option::of(some_port()))
        .prop_map(|(address, port)| Remote { address, port });
    let links = prop::collection::btree_map(remote, some_limits(), 0..12);
    let default = prop_oneof![3 => Just(Limits::default()), 1 => some_limits()];
    (links, default).prop_map(|(links, default)| DeviceLimits { links, default })
}

fn some_packet() -> impl Strategy<Value = Packet> {
    let ports = prop::option::weighted(0.7, (some_port(), some_port()));
    (some_address(), some_address(), ports).prop_filter_map(
        "two versions",
        |(source, destination, ports)| {
            (source.is_ipv4() == destination.is_ipv4()).then_some(Packet {
                source,
                destination,
                ports,
            })
        },
    )
}

/// States: before hawser, with others' disciplines, and after any changes, made in part.
fn some_state() -> impl Strategy<Value = KernelState> {
    let root = prop_oneof![
        3 => Just(Root::Free),
        1 => Just(Root::Foreign { kind: "pfifo".to_owned(), handle: 0x8001_0000 }),
    ];
    let ingress =
        prop::option::of(any::<bool>().prop_map(|foreign_filters| Ingress { foreign_filters }));
    let steps = prop::collection::vec((some_wanted(), any::<Index>()), 0..4);
    (root, ingress, steps).prop_map(|(root, ingress, steps)| {
        let mut state = KernelState {
            ingress,
            ..KernelState::default()
        };
        let device = Shaper {
            root,
            ..Shaper::default()
        };
        state.shapers.insert(Host::Device, device);
        for (wanted, part) in steps {
            let changes = planned(&wanted, &state);
            let count = part.index(changes.len() + 1);
            for change in &changes[..count] {
                state.apply(change).unwrap();
            }
        }
        state
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// From any state, the changes lead to a state with the wanted limits, and then there is nothing to
    /// change.
    #[test]
    fn changes_lead_to_the_wanted_limits(
        mut state in some_state(),
        wanted in some_wanted(),
        packets in prop::collection::vec(some_packet(), 20),
    ) {
        for change in planned(&wanted, &state) {
            state.apply(&change).unwrap();
        }
        for packet in packets {
            for direction in [Direction::Egress, Direction::Ingress] {
                prop_assert_eq!(
                    limit_of(&state, direction, &packet),
                    expected(&wanted, direction, &packet),
                    "{} of {:?}", direction, packet
                );
            }
        }
        prop_assert_eq!(planned(&wanted, &state), []);
    }

    /// A link whose limits stay the same is not touched when others change.
    #[test]
    fn unchanged_links_are_not_touched(
        mut state in some_state(),
        before in some_wanted(),
        after in some_wanted(),
    ) {
        for change in planned(&before, &state) {
            state.apply(&change).unwrap();
        }
        let same = |remote: &Remote| before.links.get(remote) == after.links.get(remote);
        for change in planned(&after, &state) {
            let touched = match &change {
                Change::PutClass { owner: Owner::Link(remote), host, .. } => {
                    before.links.contains_key(remote)
                        && before.links[remote].of(direction_of(*host)).is_some()
                        && same(remote)
                }
                Change::DelRoot(_) => !after.is_empty() && after.links.keys().any(|r| {
                    same(r) && after.links[r].egress.is_some()
                }),
                _ => false,
            };
            prop_assert!(!touched, "{:?}", change);
            state.apply(&change).unwrap();
        }
    }

    /// Where rates alone differ, the quick plan has the changes of the whole one.
    #[test]
    fn the_quick_plan_of_rates_is_the_same(
        mut state in some_state(),
        before in some_wanted(),
        rates in prop::collection::vec(8_000..20_000_u64, 26),
    ) {
        for change in planned(&before, &state) {
            state.apply(&change).unwrap();
        }
        let mut wanted = before.clone();
        let all = wanted.links.values_mut().chain([&mut wanted.default]);
        let all = all.flat_map(|limits| [&mut limits.egress, &mut limits.ingress]);
        // About half of them are as before.
        for (limit, rate) in all.flatten().zip(rates).filter(|(_, rate)| rate % 2 == 0) {
            limit.rate = rate;
        }
        let sorted = |mut changes: Vec<Change>| {
            changes.sort_by_key(|change| format!("{change:?}"));
            changes
        };
        let quick = plan_rates(DEVICE, &wanted, &before, &state).unwrap().unwrap();
        prop_assert_eq!(sorted(quick), sorted(planned(&wanted, &state)));
        wanted.links.insert(v4(0xffff), Limits::both(Limit::new(8_000)));
        prop_assert!(plan_rates(DEVICE, &wanted, &before, &state).is_none());
    }

    /// Without limits, all that hawser set is gone, and what others set is as before.
    #[test]
    fn a_reset_leaves_what_others_set(
        root in prop_oneof![Just(Root::Free), Just(Root::Foreign { kind: "fq".to_owned(), handle: 1 << 16 })],
        ingress in prop::option::of(any::<bool>().prop_map(|foreign_filters| Ingress { foreign_filters })),
        steps in prop::collection::vec((some_wanted(), any::<Index>()), 0..4),
    ) {
        let device = Shaper { root: root.clone(), ..Shaper::default() };
        let start = KernelState {
            ingress,
            shapers: BTreeMap::from([(Host::Device, device)]),
            ..KernelState::default()
        };
        let mut state = start.clone();
        for (mut wanted, part) in steps {
            if root != Root::Free {
                // What hawser has replaced does not come back.
                wanted.default.egress = None;
                wanted.links.values_mut().for_each(|limits| limits.egress = None);
            }
            let changes = planned(&wanted, &state);
            for change in &changes[..part.index(changes.len() + 1)] {
                state.apply(change).unwrap();
            }
        }
        for change in planned(&DeviceLimits::default(), &state) {
            state.apply(&change).unwrap();
        }
        prop_assert_eq!(state, start);
    }
}

fn v4(i: u32) -> Remote {
    Remote {
        address: IpAddr::from((0x0a00_0000 | i).to_be_bytes()),
        port: None,
    }
}

#[test]
fn a_foreign_root_is_in_the_way_unless_it_may_be_replaced() {
    let device = Shaper {
        root: Root::Foreign {
            kind: "pfifo".to_owned(),
            handle: 0x8001_0000,
        },
        ..Shaper::default()
    };
    let found = KernelState {
        shapers: BTreeMap::from([(Host::Device, device)]),
        ..KernelState::default()
    };
    let limit = Limit::new(1_000_000);
    let mut wanted = DeviceLimits::default();
    wanted.links.insert(v4(1), Limits::both(limit));
    let error = plan(DEVICE, &wanted, &found, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "eth0 has a queueing discipline that hawser did not set (pfifo 8001:): replace it \
         (--replace), or remove it (tc qdisc del dev eth0 root)"
    );
    assert!(plan(DEVICE, &wanted, &found, true).is_ok());
    // Limits for what is received alone do not need the place.
    wanted.links.insert(
        v4(1),
        Limits {
            egress: None,
            ingress: Some(limit),
        },
    );
    assert!(plan(DEVICE, &wanted, &found, false).is_ok());
}

#[test]
fn many_links_are_shared_out_among_ifbs() {
    let mut wanted = DeviceLimits::default();
    for i in 0..4000 {
        let limit = Limit::new(8_000 + 8 * u64::from(i));
        wanted.links.insert(v4(i), Limits::both(limit));
    }
    let mut state = KernelState::default();
    for change in planned(&wanted, &state) {
        state.apply(&change).unwrap();
    }
    assert!(
        state
            .shapers
            .values()
            .all(|shaper| shaper.classes.len() <= crate::state::HOST_CAPACITY)
    );
    let here = IpAddr::from([10, 99, 0, 1]);
    for i in (0..4000).step_by(37) {
        let there = v4(i).address;
        for (source, destination, direction) in [
            (here, there, Direction::Egress),
            (there, here, Direction::Ingress),
        ] {
            let packet = Packet {
                source,
                destination,
                ports: Some((1, 2)),
            };
            let found = limit_of(&state, direction, &packet).unwrap();
            assert_eq!(found.0, (8_000 + 8 * u64::from(i)) / 8);
        }
    }
    // No bucket has more than a few.
    let ingress = &state.ingress_filters;
    let longest = ingress.nodes.keys().map(|(_, number)| *number).max();
    assert!(longest <= Some(16), "{longest:?}");

    let mut too_many = DeviceLimits::default();
    for i in 0..=crate::MAX_LINKS as u32 {
        too_many
            .links
            .insert(v4(i), Limits::both(Limit::new(8_000)));
    }
    let error = plan(DEVICE, &too_many, &KernelState::default(), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "eth0 cannot have limits of 16385 links: at most 16384"
    );
}
