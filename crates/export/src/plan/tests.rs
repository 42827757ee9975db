//! Tests of plans, and the random networks of all tests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hawser_topology::{As, End, LinkKind, LinkTo, Shape};
use proptest::prelude::*;

use super::*;

/// A network of one or two ISDs, each with core ASes 1 and 2, whose other ASes have parents above them;
/// some links are doubled, some are slow, some over IPv6.
pub(crate) fn networks() -> impl Strategy<Value = Network> {
    let link = (any::<u16>(), any::<u16>(), 0..4u8, any::<bool>());
    let links = prop::collection::vec(link, 0..8);
    (1..3u16, 2..6u32, links).prop_map(|(isds, ases, more)| {
        let mut made = Made::default();
        for isd in 1..=isds {
            for number in 1..=ases {
                made.add(isd, number);
            }
            made.link((isd, 1), (isd, 2), LinkKind::Core, 0, false);
            for number in 3..=ases {
                made.link(
                    (isd, number / 2),
                    (isd, number),
                    LinkKind::Child,
                    number as u8 % 4,
                    false,
                );
            }
        }
        if isds == 2 {
            made.link((1, 1), (2, 1), LinkKind::Core, 1, true);
        }
        for (a, b, style, is_v6) in more {
            let ends = [a, b].map(|x| {
                let number = u32::from(x) / u32::from(isds) % ases + 1;
                (x % isds + 1, number)
            });
            let is_core = ends.map(|(_, number)| number <= 2);
            let kind = match is_core {
                [true, true] => LinkKind::Core,
                [true, false] if ends[0].0 == ends[1].0 => LinkKind::Child,
                _ => LinkKind::Peer,
            };
            if ends[0] != ends[1] {
                made.link(ends[0], ends[1], kind, style, is_v6);
            }
        }
        made.network()
    })
}

#[derive(Default)]
struct Made {
    ases: Vec<As>,
    links: Vec<Link>,
    next: BTreeMap<IsdAsn, u16>,
}

impl Made {
    fn isd_as((isd, number): (u16, u32)) -> IsdAsn {
        format!("{isd}-ff00:0:{number:x}").parse().unwrap()
    }

    fn add(&mut self, isd: u16, number: u32) {
        let is_core = number <= 2;
        self.ases.push(As {
            isd_as: Self::isd_as((isd, number)),
            core: is_core,
            voting: false,
            authoritative: false,
            issuing: false,
            cert_issuer: None,
            underlay: Underlay::Ipv4,
            dispatched_ports: (31000, 32767),
            mtu: 1472,
            note: (number == 3).then(|| "a: \"leaf\"\n# with signs".to_owned()),
        });
    }

    fn link(&mut self, a: (u16, u32), b: (u16, u32), kind: LinkKind, style: u8, is_v6: bool) {
        let mut end = |of: (u16, u32)| {
            let isd_as = Self::isd_as(of);
            let next = self.next.entry(isd_as).or_insert(0);
            *next += 1 + u16::from(style);
            let router = if style == 3 { "B" } else { "" };
            End {
                isd_as,
                router: router.to_owned(),
                id: *next,
            }
        };
        let shape = match style {
            0 => Shape::default(),
            1 => Shape {
                rate: Some(10_000_000),
                ..Shape::default()
            },
            2 => Shape {
                delay: Duration::from_millis(20),
                jitter: Duration::from_millis(1),
                ..Shape::default()
            },
            _ => Shape {
                rate: Some(1),
                loss: 0.01,
                queue: Duration::from_millis(7),
                ..Shape::default()
            },
        };
        let (a, b) = (end(a), end(b));
        self.links.push(Link {
            a,
            b,
            kind,
            underlay: if is_v6 {
                Underlay::Ipv6
            } else {
                Underlay::Ipv4
            },
            mtu: if style == 2 { 1300 } else { 1472 },
            shape,
        });
    }

    fn network(self) -> Network {
        Network {
            ases: self.ases,
            links: self.links,
        }
    }
}

/// Checks that both ends of each link agree, and that nothing is there twice.
fn check_plan(plan: &Plan, network: &Network, is_named: bool) -> Result<(), TestCaseError> {
    let names: BTreeSet<&str> = plan.ases.iter().map(|as_| as_.name.as_str()).collect();
    prop_assert_eq!(names.len(), plan.ases.len());
    prop_assert!(names.iter().all(|name| name::is_label(name)));
    let mut addresses = BTreeSet::new();
    let mut remotes = BTreeSet::new();
    let mut local = BTreeSet::new();
    for ((before, link), ends) in network
        .links
        .iter()
        .zip(&plan.network.links)
        .zip(&plan.links)
    {
        prop_assert!(link.mtu <= before.mtu);
        prop_assert_eq!(link.shape, before.shape);
        prop_assert!(ends.a.device.len() <= 15 && ends.b.device.len() <= 15);
        for side in Side::BOTH {
            let (near, far) = (ends.end(side), ends.end(side.other()));
            prop_assert!(addresses.insert(near.address));
            prop_assert!(local.insert((near.owner, near.port)));
            prop_assert!(near.device != "eth0");
            let (as_, id) = (&plan.ases[near.owner], link.end(side).id);
            let routers = as_.topology.border_routers.values();
            let interface = routers.flat_map(|r| r.interfaces.get(&id)).next().unwrap();
            prop_assert_eq!(interface.underlay.local.port(), near.port);
            prop_assert!(interface.underlay.local.ip().is_unspecified());
            prop_assert_eq!(interface.mtu, link.mtu);
            prop_assert_eq!(interface.isd_as, plan.ases[far.owner].isd_as);
            prop_assert_eq!(as_.states[&id].shape, before.shape);
            let limit = as_.limits.0.get(&id.to_string());
            let rate = before.shape.rate.map(|rate| rate.max(1000) / 1000);
            prop_assert_eq!(limit.and_then(|limit| limit.egress), rate);
            if let Some(limit) = limit {
                let remote = interface.underlay.remote;
                prop_assert_eq!((limit.ip, limit.port), (remote.ip(), Some(remote.port())));
                prop_assert_eq!(limit.device.is_none(), is_named);
                prop_assert_eq!(limit.queue, Some(before.shape.queue));
            }
            let name = as_.neighbours.0.get(&id).cloned();
            let expected = format!("{}:{}", plan.ases[far.owner].name, far.port);
            prop_assert_eq!(name, is_named.then_some(expected));
            if !is_named {
                let address = SocketAddr::new(far.address, far.port);
                prop_assert_eq!(interface.underlay.remote, address);
            }
            // No two links have the same address, also before names are resolved.
            prop_assert!(remotes.insert((near.owner, interface.underlay.remote)));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn both_ends_of_each_link_agree(network in networks()) {
        let plan = Plan::new(&network, Wiring::Names).unwrap();
        check_plan(&plan, &network, true)?;
        let most = plan.network.links.iter().map(|l| l.mtu + l.underlay.headers()).max();
        prop_assert!(most.is_none_or(|most| most <= OVERLAY_MTU));
        let hosts: Vec<usize> = (0..network.ases.len()).map(|at| at % 2).collect();
        let plan = Plan::new(&network, Wiring::Devices(&hosts)).unwrap();
        check_plan(&plan, &network, false)?;
        for (before, (link, ends)) in
            network.links.iter().zip(plan.network.links.iter().zip(&plan.links))
        {
            let is_between = hosts[ends.a.owner] != hosts[ends.b.owner];
            prop_assert!(is_between || link.mtu == before.mtu);
            prop_assert_eq!(ends.mtu, link.mtu + link.underlay.headers());
        }
    }
}

#[test]
fn roles_of_neighbours_are_opposite() {
    let network = Network::ready("fig9").unwrap();
    let plan = Plan::new(&network, Wiring::Names).unwrap();
    for (link, ends) in network.links.iter().zip(&plan.links) {
        let role = |side: Side| {
            let routers = plan.ases[ends.end(side).owner]
                .topology
                .border_routers
                .values();
            let id = link.end(side).id;
            let mut found = routers.flat_map(|router| router.interfaces.get(&id));
            found.next().unwrap().link_to
        };
        let roles = (role(Side::A), role(Side::B));
        assert!(matches!(
            roles,
            (LinkTo::Child, LinkTo::Parent)
                | (LinkTo::Core, LinkTo::Core)
                | (LinkTo::Peer, LinkTo::Peer)
        ));
    }
}

#[test]
fn what_exceeds_bounds_is_refused() {
    let network = Network::ready("fig4").unwrap();
    let refused = |change: fn(&mut Network)| {
        let mut network = network.clone();
        change(&mut network);
        Plan::new(&network, Wiring::Devices(&[0, 0]))
            .unwrap_err()
            .to_string()
    };
    assert!(refused(|network| network.ases.clear()).contains("no AS"));
    assert!(refused(|network| drop(network.ases.pop())).contains("does not have"));
    assert!(refused(|network| network.links[0].mtu = u16::MAX).contains("too large"));
    let many = refused(|network| {
        let link = network.links[0].clone();
        network.links.clear();
        for at in 1..=MAX_ROUTERS as u16 + 1 {
            let mut link = link.clone();
            (link.a.router, link.a.id, link.b.id) = (at.to_string(), at, at);
            network.links.push(link);
        }
    });
    assert!(many.contains("border routers"), "{many}");
    let ports = refused(|network| {
        let link = network.links[0].clone();
        network.links.clear();
        for at in 1..=MAX_LINKS_OF_AS as u16 + 1 {
            let mut link = link.clone();
            (link.a.id, link.b.id) = (at, at);
            network.links.push(link);
        }
    });
    assert!(ports.contains("more links than"), "{ports}");
}
