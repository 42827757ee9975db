use std::num::NonZeroU8;

use hawser_topology::IsdAsn;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::super::{Destination, Role, Target};
use super::*;

fn entry(destination: &str, target: &str) -> Entry {
    Entry::new(destination.parse().unwrap(), target.parse().unwrap())
}

/// Entries, numbered as lines.
fn entries(texts: &[(&str, &str)]) -> Vec<Entry> {
    let entries = texts.iter().map(|(from, to)| entry(from, to));
    (1..)
        .zip(entries)
        .map(|(line, entry)| Entry { line, ..entry })
        .collect()
}

/// A map of entries without names, all of which can be used.
fn map(texts: &[(&str, &str)]) -> Map {
    let (map, problems) = Map::new(&entries(texts), &Addresses::default(), &Local::default());
    assert_eq!(problems, []);
    map
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The texts of the problems.
fn problems(texts: &[(&str, &str)], addresses: &Addresses, local: &Local) -> Vec<String> {
    let (_, problems) = Map::new(&entries(texts), addresses, local);
    problems.iter().map(ToString::to_string).collect()
}

/// Addresses of the names in the entries.
fn resolved(texts: &[(&str, &str)], known: &[(&str, &[&str])]) -> Addresses {
    let names: Vec<_> = entries(texts)
        .into_iter()
        .filter_map(|entry| match entry.destination.hosts {
            Hosts::Name(name) => Some(name),
            Hosts::Prefix(_) => None,
        })
        .collect();
    Addresses::default().resolve_by(&names, |name| {
        let known = known.iter().find(|(known, _)| *known == name.as_str());
        known
            .map(|(_, texts)| ips(texts))
            .ok_or_else(|| std::io::Error::other("not known"))
    })
}

#[test]
fn the_longest_prefix_counts_and_then_the_port() {
    let map = map(&[
        ("10.0.0.0/8", "1-ff00:0:1"),
        ("10.1.0.0/16", "1-ff00:0:2,192.0.2.1:31801"),
        ("10.1.0.0/16:22", "1-ff00:0:3"),
        ("10.1.0.1:80", "1-ff00:0:4"),
        ("fd00::/8", "1-ff00:0:5"),
    ]);
    for (destination, shim) in [
        ("10.2.0.1:1", Some("1-ff00:0:1,10.2.0.1:31800")),
        ("10.1.0.2:1", Some("1-ff00:0:2,192.0.2.1:31801")),
        ("10.1.0.2:22", Some("1-ff00:0:3,10.1.0.2:31800")),
        ("10.1.0.1:80", Some("1-ff00:0:4,10.1.0.1:31800")),
        // The longest prefix has no entry for this port.
        ("10.1.0.1:81", Some("1-ff00:0:2,192.0.2.1:31801")),
        ("10.1.0.1:22", Some("1-ff00:0:3,10.1.0.1:31800")),
        ("[fd00::1]:1", Some("1-ff00:0:5,[fd00::1]:31800")),
        ("[::ffff:10.2.0.1]:1", Some("1-ff00:0:1,10.2.0.1:31800")),
        ("11.0.0.1:1", None),
        ("[fe80::1]:1", None),
    ] {
        let found = map.lookup(destination.parse().unwrap());
        let found = found.map(|route| route.shim.to_string());
        assert_eq!(found.as_deref(), shim, "{destination}");
    }
}

#[test]
fn captured_prefixes_do_not_overlap() {
    let map = map(&[
        ("10.1.0.0/16", "1-ff00:0:2"),
        ("10.0.0.0/16:22", "1-ff00:0:1"),
        ("10.1.2.0/24", "1-ff00:0:3"),
        ("192.0.2.1", "1-ff00:0:3"),
        ("fd00::/8", "1-ff00:0:5"),
        ("fd00::1", "1-ff00:0:5"),
    ]);
    let nets: Vec<String> = map.captured().iter().map(ToString::to_string).collect();
    assert_eq!(nets, ["10.0.0.0/15", "192.0.2.1/32", "fd00::/8"]);
}

#[test]
fn the_next_entry_is_the_one_that_would_count_without_it() {
    let map = map(&[
        ("10.0.0.0/8", "1-ff00:0:1"),
        ("10.1.0.0/16", "1-ff00:0:2"),
        ("10.1.0.0/16:22", "1-ff00:0:3"),
        ("10.1.0.1:22", "1-ff00:0:4"),
    ]);
    let next = |index: usize| Some(map.next(&map.entries()[index])?.line);
    assert_eq!(
        [next(0), next(1), next(2), next(3)],
        [None, Some(1), Some(2), Some(3)]
    );
}

#[test]
fn names_stand_for_their_addresses() {
    let texts = [
        ("db.example:5432", "1-ff00:0:1"),
        ("db.example", "1-ff00:0:2"),
        ("10.0.0.0/24", "1-ff00:0:3"),
        ("10.0.0.2", "1-ff00:0:4"),
        ("gone.example", "1-ff00:0:5"),
    ];
    let known = resolved(
        &texts,
        &[("db.example", &["10.0.0.1", "10.0.0.2", "fd00::1"])],
    );
    let (map, problems) = Map::new(&entries(&texts), &known, &Local::default());
    let line = |text: &str| Some(map.lookup(text.parse().unwrap())?.entry.line);
    assert_eq!(line("10.0.0.1:5432"), Some(1));
    assert_eq!(line("10.0.0.1:1"), Some(2));
    assert_eq!(line("[fd00::1]:1"), Some(2));
    assert_eq!(line("10.0.0.3:1"), Some(3));
    // A written address has precedence.
    assert_eq!(line("10.0.0.2:1"), Some(4));
    let [problem] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert_eq!(
        problem.to_string(),
        "line 5: `gone.example` has no address (not known): correct the name, or map its IP address"
    );
}

#[test]
fn names_that_share_an_address_need_the_same_target() {
    let texts = [
        ("a.example", "1-ff00:0:1"),
        ("b.example", "1-ff00:0:2"),
        ("c.example", "1-ff00:0:1"),
    ];
    let one: &[&str] = &["10.0.0.1"];
    let known = [("a.example", one), ("b.example", one), ("c.example", one)];
    let known = resolved(&texts, &known);
    assert_eq!(
        problems(&texts, &known, &Local::default()),
        [
            "line 2: `b.example` has the address 10.0.0.1, as `a.example` in line 1 has, which is mapped to 1-ff00:0:1: that one counts; give both the same target and options, or remove one"
        ]
    );
}

#[test]
fn loops_are_left_out() {
    let ip = |text: &str| text.parse().unwrap();
    let isd_as: IsdAsn = "1-ff00:0:110".parse().unwrap();
    let local = Local::new(isd_as)
        .with_address(ip("10.0.1.1"), Role::Host)
        .with_address(ip("10.0.1.9"), Role::Router)
        .with_address(ip("10.0.3.1"), Role::Daemon);
    let texts = [
        ("192.0.2.0/24", "1-ff00:0:110,10.0.1.1"),
        ("10.0.1.0/30", "1-ff00:0:111"),
        ("10.0.1.9", "1-ff00:0:111"),
        ("10.0.3.0/24", "1-ff00:0:111"),
        ("10.0.2.0/24", "1-ff00:0:110"),
        ("10.0.4.0/24", "1-ff00:0:110,10.0.4.7"),
        // All right: an own address of the other AS, and another host of this AS.
        ("10.0.5.0/24", "1-ff00:0:111,10.0.1.1"),
        ("10.0.6.0/24", "1-ff00:0:110,10.0.1.2"),
        ("far.example", "1-ff00:0:110,10.0.1.1"),
        ("near.example", "1-ff00:0:111"),
    ];
    let known = [
        ("far.example", &["10.0.7.1", "10.0.7.2"][..]),
        ("near.example", &["127.0.0.1", "10.0.1.1"]),
    ];
    let known = resolved(&texts, &known);
    let found = problems(&texts, &known, &local);
    let itself = "is mapped to 1-ff00:0:110,10.0.1.1, which is this host itself: name another target, or remove it";
    let needs = "which SCION itself needs: map smaller prefixes without it";
    let own = "which is in this AS and reached by it: remove the entry, or map smaller prefixes without that address";
    assert_eq!(
        found,
        [
            format!("line 1: `192.0.2.0/24` {itself}"),
            format!("line 2: `10.0.1.0/30` has 10.0.1.1, the address of this host, {needs}"),
            format!("line 3: `10.0.1.9` has 10.0.1.9, the address of a border router of this AS, {needs}"),
            format!("line 4: `10.0.3.0/24` has 10.0.3.1, the address of the SCION daemon, {needs}"),
            format!("line 5: `10.0.2.0/24` has the address of its own target 1-ff00:0:110, {own}"),
            format!("line 6: `10.0.4.0/24` has the address of its own target 1-ff00:0:110,10.0.4.7, {own}"),
            format!("line 9: `far.example` {itself}"),
            format!("line 10: `near.example` has 10.0.1.1, the address of this host, {needs}"),
            "line 10: `near.example` has the loopback address 127.0.0.1, which is not mapped: correct the name's addresses".to_owned(),
        ]
    );
    let (map, _) = Map::new(&entries(&texts), &known, &local);
    let nets: Vec<String> = map.captured().iter().map(ToString::to_string).collect();
    assert_eq!(nets, ["10.0.5.0/24", "10.0.6.0/24"]);
}

/// Prefixes and addresses that are close to each other, of both families.
fn net() -> impl Strategy<Value = IpNet> {
    let v4 = (0u32..64, 26u8..=32).prop_map(|(host, len)| {
        let ip = std::net::Ipv4Addr::from_bits(0x0a00_0000 | host);
        IpNet::new(ip.into(), len).unwrap().trunc()
    });
    let v6 = (0u128..64, 120u8..=128).prop_map(|(host, len)| {
        let ip = std::net::Ipv6Addr::from_bits((0xfd00 << 112) | host);
        IpNet::new(ip.into(), len).unwrap().trunc()
    });
    prop_oneof![v4, v6]
}

proptest! {
    #[test]
    fn look_up_is_a_search_for_the_longest_prefix(
        nets in vec((net(), option::of(1u16..4)), 0..40),
        asked in vec((net(), 1u16..5), 1..40),
    ) {
        let mut entries: Vec<Entry> = Vec::new();
        for (net, port) in nets {
            let destination = Destination { hosts: Hosts::Prefix(net), port };
            if entries.iter().all(|entry| entry.destination != destination) {
                let target = Target::As(IsdAsn(1 << 48 | (entries.len() as u64 + 1)));
                let paths = NonZeroU8::new(1).unwrap();
                entries.push(Entry::new(destination, target).with_paths(paths));
            }
        }
        let (map, problems) = Map::new(&entries, &Addresses::default(), &Local::default());
        prop_assert!(problems.is_empty());
        let nets = map.captured();
        for (net, port) in asked {
            let ip = net.addr();
            let prefix = |entry: &Entry| match entry.destination.hosts {
                Hosts::Prefix(net) => net,
                Hosts::Name(_) => unreachable!(),
            };
            let covering = entries.iter().filter(|entry| prefix(entry).contains(&ip));
            let fitting = covering.clone().filter(|entry| entry.destination.port.is_none_or(|one| one == port));
            let naive = fitting.max_by_key(|entry| (prefix(entry).prefix_len(), entry.destination.port));
            let found = map.lookup(SocketAddr::new(ip, port)).map(|route| route.entry);
            prop_assert_eq!(found, naive);
            let is_routed = covering.clone().any(|entry| entry.destination.port.is_none());
            prop_assert_eq!(map.routed().iter().any(|net| net.contains(&ip)), is_routed);
            let captured = nets.iter().filter(|net| net.contains(&ip)).count();
            prop_assert_eq!(captured, usize::from(covering.count() > 0));
        }
    }
}
