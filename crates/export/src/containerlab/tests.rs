//! What containerlab requires of topology files, and that files of several hosts fit together.

use std::collections::{BTreeMap, BTreeSet};

use hawser_topology::Network;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::partition::partition;
use crate::plan::Wiring;
use crate::plan::tests::networks;

fn hosts(count: usize) -> Vec<Host> {
    let host = |n: usize| Host {
        name: format!("host{n}"),
        address: IpAddr::from([192, 0, 2, n as u8 + 1]),
    };
    (0..count).map(host).collect()
}

/// The topology files of a network on some hosts, or on one machine, with the plan.
fn files(network: &Network, hosts: &[Host]) -> (Plan, Vec<usize>, Tree, BTreeMap<String, Value>) {
    let placed = partition(network.ases.len(), &[], hosts.len());
    let plan = Plan::new(network, Wiring::Devices(&placed)).unwrap();
    let mut tree = Tree::default();
    let archives: Vec<Vec<u8>> = (0..plan.ases.len()).map(|at| vec![at as u8]).collect();
    let topologies = Topologies {
        plan: &plan,
        name: "net",
        image: "localhost/hawser-ip:1",
        hosts,
        placed: &placed,
        parts: &[b"part".to_vec()],
    };
    topologies.add(&mut tree, &archives).unwrap();
    let names = tree.names();
    let files = names.iter().filter(|name| name.ends_with("net.clab.yml"));
    let read = |name: &String| {
        let text = std::str::from_utf8(tree.get(name).unwrap()).unwrap();
        (name.clone(), serde_saphyr::from_str(text).unwrap())
    };
    let files = files.map(read).collect();
    (plan, placed, tree, files)
}

fn links(file: &Value) -> &[Value] {
    file["topology"]["links"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Each AS is a node of one file, each link within a host a veth pair there, and each other link a
    /// VXLAN at both of its hosts, with one number and each other's addresses.
    #[test]
    fn files_of_hosts_fit_together(network in networks(), count in 0..3usize) {
        let count = if count == 1 { 2 } else { count };
        let hosts = hosts(count);
        let (plan, placed, tree, files) = files(&network, &hosts);
        prop_assert_eq!(files.len(), count.max(1));
        let mut nodes = BTreeSet::new();
        let mut used = BTreeSet::new();
        let mut veths = 0;
        let mut vxlans: BTreeMap<u64, Vec<(usize, String)>> = BTreeMap::new();
        for (name, file) in &files {
            prop_assert_eq!(file["name"].as_str(), Some("net"));
            let folder = name.strip_suffix("net.clab.yml").unwrap();
            let here = file["topology"]["nodes"].as_object().unwrap();
            for (node, content) in here {
                prop_assert!(nodes.insert(node.clone()));
                prop_assert_eq!(content["kind"].as_str(), Some("linux"));
                prop_assert_eq!(content["privileged"].as_bool(), Some(false));
                prop_assert!(content["image"].is_string() && content["cmd"].is_string());
                let bind = content["binds"][0].as_str().unwrap();
                let archive = bind.split(':').next().unwrap();
                let at = plan.ases.iter().position(|as_| as_.name == *node).unwrap();
                prop_assert_eq!(tree.get(&format!("{folder}{archive}")), Some(&[at as u8][..]));
                if count > 0 {
                    let below = format!("{}/", hosts[placed[at]].name);
                    prop_assert!(folder.ends_with(&below));
                }
            }
            let mut end = |end: &Value| {
                let node = end["node"].as_str().unwrap().to_owned();
                let interface = end["interface"].as_str().unwrap().to_owned();
                assert!(here.contains_key(&node) && interface.len() <= 15);
                assert!(used.insert((node.clone(), interface)), "twice");
                node
            };
            for link in links(file) {
                prop_assert!(link["mtu"].as_u64().unwrap() <= 1520);
                match link["type"].as_str().unwrap() {
                    "veth" => {
                        veths += 1;
                        let ends = link["endpoints"].as_array().unwrap();
                        prop_assert_eq!(ends.len(), 2);
                        ends.iter().for_each(|one| drop(end(one)));
                    }
                    "vxlan" => {
                        prop_assert!(link["udp-port"].is_u64());
                        prop_assert!(link["mtu"].as_u64().unwrap() <= 1450);
                        let node = end(&link["endpoint"]);
                        let at = plan.ases.iter().position(|as_| as_.name == node).unwrap();
                        let remote = link["remote"].as_str().unwrap().to_owned();
                        let vni = link["vni"].as_u64().unwrap();
                        vxlans.entry(vni).or_default().push((placed[at], remote));
                    }
                    other => prop_assert!(false, "{other}"),
                }
            }
        }
        prop_assert_eq!(nodes.len(), plan.ases.len());
        prop_assert_eq!(veths + vxlans.len(), network.links.len());
        for (vni, ends) in vxlans {
            prop_assert!(0 < vni && vni < 1 << 24);
            prop_assert_eq!(ends.len(), 2);
            let address = |host: usize| hosts[host].address.to_string();
            prop_assert_eq!(&ends[0].1, &address(ends[1].0));
            prop_assert_eq!(&ends[1].1, &address(ends[0].0));
        }
    }
}

#[test]
fn nodes_set_the_addresses_of_their_links() {
    let network = Network::ready("fig4").unwrap();
    let (plan, _, _, files) = files(&network, &[]);
    let node = &files["net.clab.yml"]["topology"]["nodes"][&plan.ases[1].name];
    let exec: Vec<_> = node["exec"].as_array().unwrap().iter().collect();
    assert_eq!(
        exec,
        [
            "ip address replace 10.128.0.1/31 dev eth1",
            "ip address replace 10.128.0.3/31 dev eth2",
        ]
    );
}
