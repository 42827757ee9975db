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
    assert_eq!(plan.ases[1].services.to_string(), "10.0.2.254");
    assert_eq!(plan.ases[1].folder, "1-ff00_0_111");
    assert_eq!(address(255, 1).to_string(), "10.1.0.1");
    assert_eq!(address(MOST_ASES - 1, 254).to_string(), "10.127.255.254");
}

#[test]
fn links_get_pairs_of_addresses_and_room_for_the_underlay() {
    let plan = plan();
    let link = &plan.links[0];
    assert_eq!(link.mtu, 1428);
    assert_eq!((link.a.owner, link.b.owner), (0, 1));
    assert_eq!(link.a.address.to_string(), "10.128.0.0");
    assert_eq!(link.b.address.to_string(), "10.128.0.1");
    assert_eq!(link.b.device, "if41");
    assert_eq!(plan.links[2].b.address.to_string(), "10.128.0.5");
    // IFNAMSIZ is 16 with the closing zero.
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
    assert_eq!(up.local.to_string(), "10.128.0.1:50000");
    assert_eq!(up.remote.to_string(), "10.128.0.0:50000");
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

#[test]
fn links_begin_up_and_shaped() {
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
fn what_cannot_be_laid_out_is_refused() {
    let mut network = Network::parse(TOPO).unwrap();
    network.links[0].mtu = 65508;
    let error = Plan::of(&network).unwrap_err().to_string();
    assert!(
        error.contains("65508") && error.contains("65507"),
        "{error}"
    );

    let mut network = Network::parse(TOPO).unwrap();
    network.ases.pop();
    let missing = "1-ff00:0:112".parse().unwrap();
    assert_eq!(Plan::of(&network), Err(PlanError::UnknownAs(missing)));
}
