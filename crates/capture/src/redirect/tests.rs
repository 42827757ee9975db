//! Tables, applied to a model of nf_tables, and their end in the kernel.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;

use super::contents::table;
use super::model::{Model, Outcome, Packet};
use crate::nftables::changes;
use crate::tests::network::{Network, captured, through};
use crate::{Gateway, Manner, Redirect, Scope, Wanted};

const NAME: &str = "hawser-shim";
/// `enum nf_inet_hooks`.
const PREROUTING: u32 = 0;
const INPUT: u32 = 1;
const OUTPUT: u32 = 3;

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0x0a00_0000..0x0a00_0028_u32).prop_map(|bits| IpAddr::V4(bits.into())),
        (0..0x28_u128).prop_map(|n| IpAddr::V6(((0xfd01 << 112) + n).into())),
        Just(IpAddr::from([255, 255, 255, 255])),
        Just(IpAddr::from([128, 0, 0, 1])),
    ]
}

fn prefix() -> impl Strategy<Value = IpNet> {
    let any = (address(), 0..6_u8).prop_map(|(address, short)| match address {
        IpAddr::V4(ip) => Ipv4Net::new_assert(ip, 32 - short).into(),
        IpAddr::V6(ip) => Ipv6Net::new_assert(ip, 128 - short).into(),
    });
    let any = any.prop_filter("multicast and loopback", |prefix: &IpNet| {
        crate::check(prefix).is_ok()
    });
    any.prop_map(|prefix| prefix.trunc())
}

fn prefixes() -> impl Strategy<Value = Vec<IpNet>> {
    prop::collection::vec(prefix(), 0..6)
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let scope = prop_oneof![
        Just(Scope::Host),
        (0..3_u32, 1..4_u64).prop_map(|(level, id)| Scope::Group { level, id }),
        (1..3_u32).prop_map(Scope::Class),
    ];
    let manner = prop_oneof![
        Just(Manner::Redirect),
        (8..10_u32).prop_map(|mark| Manner::Transparent { mark }),
    ];
    let gateway = (prefixes(), 1..4_u16, manner).prop_map(|(sources, port, manner)| Gateway {
        sources,
        port,
        manner,
    });
    let users = prop::collection::vec(0..4_u32, 0..3);
    (
        (1..3_u16, 1..3_u32, prefixes()),
        (scope, users, prop::option::of(gateway)),
    )
        .prop_map(|((port, mark, prefixes), (scope, users, gateway))| {
            let mut wanted = Wanted::new(port, mark)
                .with_prefixes(prefixes)
                .with_scope(scope)
                .with_exempt_users(users);
            wanted.gateway = gateway;
            wanted
        })
}

fn packet() -> impl Strategy<Value = Packet> {
    let addresses = (address(), address()).prop_filter("one family", |(source, destination)| {
        source.is_ipv4() == destination.is_ipv4()
    });
    let groups = prop::collection::vec(1..4_u64, 1..4);
    let sender = (0..3_u32, 0..4_u32, groups, 0..3_u32);
    let protocol = prop_oneof![3 => Just(6_u8), 1 => Just(17)];
    // SYN, with those of RFC 3168 or alone; others of TCP.
    let flags = prop_oneof![2 => Just(0x02), 1 => Just(0xc2), 2 => any::<u8>()];
    let local = prop_oneof![3 => Just(false), 1 => Just(true)];
    let route = (local, 1..5_u16, any::<bool>());
    (addresses, (protocol, flags), sender, route).prop_map(
        |(
            (source, destination),
            (protocol, flags),
            (mark, user, groups, class),
            (local, port, translated),
        )| Packet {
            source,
            destination,
            protocol,
            flags,
            mark,
            user,
            groups,
            class,
            local,
            port,
            translated,
            device: "near",
        },
    )
}

/// What is wanted for a packet of this host.
fn sent(wanted: &Wanted, packet: &Packet) -> Outcome {
    let within = match wanted.scope {
        Scope::Host => true,
        Scope::Group { level, id } => packet.groups.get(level as usize) == Some(&id),
        Scope::Class(class) => packet.class == class,
    };
    let captured = is_captured(wanted, packet)
        && opens(packet)
        && packet.mark != wanted.mark
        && !wanted.exempt_users.contains(&packet.user);
    match captured && within {
        true => Outcome::Redirected { port: wanted.port },
        false => Outcome::Untouched,
    }
}

/// What is wanted for a packet of another host.
fn forwarded(wanted: &Wanted, packet: &Packet) -> Outcome {
    let Some(gateway) = &wanted.gateway else {
        return Outcome::Untouched;
    };
    let port = gateway.port;
    let mut sources = gateway.sources.iter();
    match sources.any(|source| source.contains(&packet.source)) && is_captured(wanted, packet) {
        false => Outcome::Untouched,
        true => match gateway.manner {
            Manner::Redirect if !opens(packet) => Outcome::Untouched,
            Manner::Redirect => Outcome::Redirected { port },
            Manner::Transparent { mark } => Outcome::Proxied { port, mark },
        },
    }
}

/// What is wanted for a packet to this host.
fn arriving(wanted: &Wanted, packet: &Packet) -> Outcome {
    let gateway = wanted.gateway.as_ref();
    let proxied = gateway.and_then(|gateway| match gateway.manner {
        Manner::Transparent { mark } => Some(mark),
        Manner::Redirect => None,
    });
    let to_listener =
        packet.port == wanted.port || gateway.is_some_and(|one| one.port == packet.port);
    let is_direct = packet.protocol == 6 && to_listener && !packet.translated;
    match is_direct && proxied != Some(packet.mark) {
        true => Outcome::Rejected { reset: true },
        false => Outcome::Untouched,
    }
}

fn is_captured(wanted: &Wanted, packet: &Packet) -> bool {
    let mut prefixes = wanted.prefixes.iter();
    let to = &packet.destination;
    packet.protocol == 6 && !packet.local && prefixes.any(|prefix| prefix.contains(to))
}

/// Whether it opens a connection: SYN, without ACK, RST and FIN.
fn opens(packet: &Packet) -> bool {
    packet.flags & 0x17 == 0x02
}

proptest! {
    #[test]
    fn tables_capture_exactly_what_is_wanted(
        wanted in wanted(),
        packets in prop::collection::vec(packet(), 1..20),
    ) {
        let contents = table(&wanted).unwrap();
        let model = Model::created(NAME, &changes(NAME, None, &contents));
        // `NFT_TABLE_F_OWNER`.
        prop_assert_eq!(model.flags, 2);
        for packet in &packets {
            prop_assert_eq!(model.outcome(OUTPUT, packet), sent(&wanted, packet), "{:?}", packet);
            let expected = forwarded(&wanted, packet);
            prop_assert_eq!(model.outcome(PREROUTING, packet), expected, "{:?}", packet);
            let expected = arriving(&wanted, packet);
            prop_assert_eq!(model.outcome(INPUT, packet), expected, "{:?}", packet);
        }
    }

    #[test]
    fn changes_lead_from_any_table_to_any_other(all in prop::collection::vec(wanted(), 2..5)) {
        let mut model: Option<Model> = None;
        let mut before = None;
        for wanted in all {
            let contents = table(&wanted).unwrap();
            let fresh = Model::created(NAME, &changes(NAME, None, &contents));
            match &mut model {
                None => model = Some(fresh),
                Some(model) => {
                    model.apply(NAME, &changes(NAME, before.as_ref(), &contents));
                    prop_assert_eq!(&*model, &fresh);
                }
            }
            prop_assert_eq!(changes(NAME, Some(&contents), &contents).len(), 0);
            before = Some(contents);
        }
    }
}

#[test]
fn prefixes_that_stay_are_not_touched() {
    let wanted = |all: &[&str]| {
        let all = all.iter().map(|one| one.parse().unwrap());
        table(&Wanted::new(1, 2).with_prefixes(all)).unwrap()
    };
    let from = wanted(&["10.1.0.0/16", "10.5.0.0/16"]);
    let to = wanted(&["10.1.0.0/16", "10.7.0.0/16"]);
    let changes = changes(NAME, Some(&from), &to);
    // `NFT_MSG_DELSETELEM` and `NFT_MSG_NEWSETELEM`.
    let kinds: Vec<_> = changes.iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [14, 12]);
    for (request, net) in changes.iter().zip([5, 7]) {
        let bytes = request.attributes.as_slice();
        let contains = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(contains(&[10, net, 0, 0]));
        assert!(!contains(&[10, 1, 0, 0]));
    }
}

#[test]
fn ports_and_marks_without_use_are_refused() {
    let gateway = |mark| Gateway {
        sources: Vec::new(),
        port: 1,
        manner: Manner::Transparent { mark },
    };
    assert!(table(&Wanted::new(0, 7)).is_err());
    assert!(table(&Wanted::new(1, 0)).is_err());
    for mark in [0, 7] {
        assert!(table(&Wanted::new(1, 7).with_gateway(gateway(mark))).is_err());
    }
    assert!(table(&Wanted::new(1, 7).with_gateway(gateway(8))).is_ok());
    let unset = Gateway {
        port: 0,
        ..gateway(8)
    };
    assert!(table(&Wanted::new(1, 7).with_gateway(unset)).is_err());
}

#[test]
fn a_dropped_table_is_gone_at_once() {
    let Some(network) = Network::create() else {
        return;
    };
    let wanted = Wanted::new(network.port(), 1).with_prefixes(["10.1.0.0/16".parse().unwrap()]);
    let create = || Redirect::create(NAME, &wanted).unwrap();
    let redirect = network.host.run(create).unwrap();
    let _of_a_child = redirect.socket.duplicate();
    assert_eq!(network.connect("10.1.0.7", 0), captured("10.1.0.7"));
    drop(redirect);
    assert_eq!(network.connect("10.1.0.7", 0), through("10.1.0.7"));
}
