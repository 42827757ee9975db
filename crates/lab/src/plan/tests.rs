use hawser_topology::LinkTo;

use super::*;

const TOPO: &str = r#"
ASes:
  "1-ff00:0:110": { core: true }
  "1-ff00:0:111": { mtu: 1400 }
  "1-ff00:0:112": {}
links:
  - { a: "1-ff00:0:110#1", b: "1-ff00:0:111#41", linkAtoB: CHILD, mtu: 1400, rate: 10mbit }
  - { a: "1-ff00:0:110#2", b: "1-ff00:0:112#1", linkAtoB: CHILD }
  - { a: "1-ff00:0:112#65535", b: "1-ff00:0:111#7", linkAtoB: PEER }
"#;

fn plan() -> Plan {
    Plan::of(&Network::parse(TOPO).unwrap()).unwrap()
}

#[test]
fn ases_get_their_addresses_in_order() {
    let plan = plan();
    let hosts: Vec<String> = plan.ases.iter().map(|a| a.host.to_string()).collect();
    assert_eq!(hosts, ["10.0.1.1", "10.0.2.1", "10.0.3.1"]);
    let [router] = &plan.ases[1].routers[..] else {
        panic!("{:?}", plan.ases[1].routers);
    };
    assert_eq!(router.name, "br1-ff00_0_111-1");
    assert_eq!(router.address.to_string(), "10.0.2.254");
    assert_eq!(plan.ases[1].scion_host().to_string(), "10.0.2.1");
}

#[test]
fn links_get_pairs_of_addresses_and_room_for_the_underlay() {
    let plan = plan();
    let link = &plan.links[0];
    assert_eq!(link.mtu, 1428);
    assert_eq!(link.id().to_string(), "1-ff00:0:110#1 - 1-ff00:0:111#41");
    assert_eq!(link.a.address.to_string(), "10.128.0.0");
    assert_eq!(link.b.address.to_string(), "10.128.0.1");
    assert_eq!(link.b.device, "if41");
    assert_eq!(plan.links[2].b.address.to_string(), "10.128.0.5");
    // IFNAMSIZ is 16 with the terminating zero.
    assert!(plan.links[2].a.device.len() < 16);
}

#[test]
fn the_topology_of_an_as_has_its_side_of_every_link() {
    let plan = plan();
    let topology = &plan.ases[1].topology;
    assert_eq!((topology.mtu, topology.core), (1400, false));
    let router = topology.border_routers.values().next().unwrap();
    assert_eq!(router.internal_addr.to_string(), "10.0.2.254:30042");
    let up = &router.interfaces[&41];
    assert_eq!(up.underlay.local.to_string(), "10.128.0.1:50000");
    assert_eq!(up.underlay.remote.to_string(), "10.128.0.0:50000");
    assert_eq!(up.isd_as.to_string(), "1-ff00:0:110");
    assert_eq!(
        (up.remote_id, up.link_to, up.mtu),
        (1, LinkTo::Parent, 1400)
    );
    assert_eq!(router.interfaces[&7].link_to, LinkTo::Peer);
    assert_eq!(router.interfaces.len(), 2);
    let core = plan.ases[0]
        .topology
        .border_routers
        .values()
        .next()
        .unwrap();
    assert_eq!(core.interfaces[&1].link_to, LinkTo::Child);
}

/// A network with an IPv6 AS with two routers, and an IPv6 link.
const WIDE: &str = r#"
ASes:
  "1-ff00:0:110": { core: true, underlay: UDP/IPv6, dispatched_ports: all }
  "1-ff00:0:111": {}
links:
  - { a: "1-ff00:0:110-B#1", b: "1-ff00:0:111#1", linkAtoB: CHILD, mtu: 1400, underlay: UDP/IPv6 }
  - { a: "1-ff00:0:110-A#2", b: "1-ff00:0:111#2", linkAtoB: CHILD }
  - { a: "1-ff00:0:110-B#3", b: "1-ff00:0:111#3", linkAtoB: CHILD }
"#;

#[test]
fn several_routers_share_an_as() {
    let plan = Plan::of(&Network::parse(WIDE).unwrap()).unwrap();
    let [core, leaf] = &plan.ases[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(core.scion_host().to_string(), "fd00:0:0:1::1");
    assert_eq!(core.host.to_string(), "10.0.1.1");
    let topology = &core.topology;
    let router = |name: &str| &topology.border_routers[name];
    // Routers are numbered in the order in which the links mention them.
    let (first, second) = (router("br1-ff00_0_110-1"), router("br1-ff00_0_110-2"));
    assert_eq!(topology.border_routers.len(), 2);
    assert_eq!(first.internal_addr.to_string(), "[fd00:0:0:1::fe]:30042");
    assert_eq!(second.internal_addr.to_string(), "[fd00:0:0:1::fd]:30042");
    assert_eq!(first.interfaces.keys().collect::<Vec<_>>(), [&1, &3]);
    assert_eq!(second.interfaces.keys().collect::<Vec<_>>(), [&2]);
    let service = &topology.control_service["cs1-ff00_0_110-1"];
    assert_eq!(service.to_string(), "[fd00:0:0:1::fe]:30252");
    assert_eq!(topology.dispatched_ports, (1, 65535));
    // links.json has the links of the whole AS.
    assert_eq!(core.links.len(), 3);
    assert_eq!(leaf.routers.len(), 1);
    assert_eq!(leaf.scion_host().to_string(), "10.0.2.1");
}

#[test]
fn links_use_their_underlay() {
    let plan = Plan::of(&Network::parse(WIDE).unwrap()).unwrap();
    let [wide, narrow, _] = &plan.links[..] else {
        panic!("{plan:?}");
    };
    assert_eq!((wide.mtu, narrow.mtu), (1400 + 48, 1472 + 28));
    assert_eq!(wide.b.underlay().to_string(), "fd00:0:1::1");
    // The link also has an IPv4 address for plain IP.
    assert_eq!(wide.b.address.to_string(), "10.128.0.1");
    assert_eq!(narrow.b.underlay().to_string(), "10.128.0.3");
    let interface = &plan.ases[1].topology.border_routers["br1-ff00_0_111-1"].interfaces[&1];
    assert_eq!(interface.underlay.local.to_string(), "[fd00:0:1::1]:50000");
    assert_eq!(interface.underlay.remote.to_string(), "[fd00:0:1::]:50000");
}

#[test]
fn an_as_without_links_has_a_router() {
    let alone = r#"ASes: { "1-ff00:0:110": { core: true } }"#;
    let plan = Plan::of(&Network::parse(alone).unwrap()).unwrap();
    let routers = &plan.ases[0].topology.border_routers;
    assert!(routers["br1-ff00_0_110-1"].interfaces.is_empty());
}

#[test]
fn links_are_initially_up_and_shaped() {
    let plan = plan();
    let state = plan.ases[1].links[&41];
    assert!(state.up);
    assert_eq!(state.shape.rate, Some(10_000_000));
    assert_eq!(plan.ases[1].links.len(), 2);
}

#[test]
fn hosts_reach_each_other_over_the_next_link() {
    let plan = plan();
    let route = plan.ases[1]
        .routes
        .iter()
        .find(|r| r.to.to_string() == "10.0.3.1")
        .unwrap();
    assert_eq!(route.via.to_string(), "10.128.0.4");
    assert_eq!(route.index, plan.links[2].b.index);
}

#[test]
fn networks_beyond_the_bounds_are_refused() {
    let mut network = Network::parse(TOPO).unwrap();
    network.links[0].mtu = 65508;
    let error = Plan::of(&network).unwrap_err().to_string();
    assert!(
        error.contains("65508") && error.contains("65507"),
        "{error}"
    );

    network.links[0].mtu = 65500;
    assert!(Plan::of(&network).is_ok());
    network.links[0].underlay = Underlay::Ipv6;
    let error = Plan::of(&network).unwrap_err().to_string();
    assert!(error.contains("65487"), "{error}");

    let mut network = Network::parse(TOPO).unwrap();
    let template = network.links[0].clone();
    network.links.clear();
    for id in 1..=MAX_ROUTERS as u16 + 1 {
        let mut link = template.clone();
        (link.a.id, link.b.id) = (id, id);
        link.a.router = format!("R{id}");
        network.links.push(link);
    }
    let error = Plan::of(&network).unwrap_err().to_string();
    assert!(
        error.contains("155") && error.contains("1-ff00:0:110"),
        "{error}"
    );

    let mut network = Network::parse(TOPO).unwrap();
    network.ases.pop();
    let error = Plan::of(&network).unwrap_err().to_string();
    assert!(error.contains("names the AS 1-ff00:0:112"), "{error}");
}

#[test]
fn ip_routes_of_a_network_are_found() {
    let network = Network::ready("fig7a").unwrap();
    let [from, to, nowhere] =
        ["1-ff00:0:4", "1-ff00:0:1", "1-ff00:0:9"].map(|text| text.parse().unwrap());
    let ends: Vec<_> = ip_route(&network, from, to)
        .unwrap()
        .into_iter()
        .map(|link| {
            let link = &network.links[link];
            (link.a.isd_as.to_string(), link.b.isd_as.to_string())
        })
        .collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert_eq!(ip_route(&network, from, from), Some(Vec::new()));
    assert_eq!(ip_route(&network, from, nowhere), None);
}

#[test]
fn ip_from_the_seeder_of_fig9_reaches_its_two_leechers_over_different_links() {
    let network = Network::ready("fig9").unwrap();
    let [seeder, a, d] =
        ["1-ff00:0:5", "1-ff00:0:1", "1-ff00:0:4"].map(|isd_as| isd_as.parse().unwrap());
    let [to_a, to_d] = [a, d].map(|leecher| ip_route(&network, seeder, leecher).unwrap());
    assert!(
        to_a.iter().all(|link| !to_d.contains(link)),
        "{to_a:?} {to_d:?}"
    );
}
