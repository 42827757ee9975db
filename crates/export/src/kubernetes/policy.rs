//! What the pod of an AS may send and receive.

use std::collections::{BTreeMap, BTreeSet};

use hawser_topology::Side;

use super::objects::*;
use super::{Manifests, UDP, selector};
use crate::plan::AsPlan;

/// The port of name servers.
const DNS: u16 = 53;

impl Manifests<'_> {
    /// An AS exchanges packets with its neighbours only, over the ports of their links, and asks name
    /// servers.
    pub(super) fn network_policy(&self, as_: &AsPlan) -> NetworkPolicy {
        let udp = |ports: BTreeSet<u16>| -> Vec<PolicyPort> {
            let policy_port = |port| PolicyPort {
                protocol: UDP,
                port,
            };
            ports.into_iter().map(policy_port).collect()
        };
        let peer = |name: &str| Peer {
            pod_selector: selector(name),
        };
        let mut neighbours: BTreeMap<&str, (BTreeSet<u16>, BTreeSet<u16>)> = BTreeMap::new();
        for (link, plan) in self.plan.network.links.iter().zip(&self.plan.links) {
            for side in Side::BOTH {
                if link.end(side).isd_as == as_.isd_as {
                    let (near, far) = (plan.end(side), plan.end(side.other()));
                    let name = self.plan.ases[far.owner].name.as_str();
                    let (here, there) = neighbours.entry(name).or_default();
                    here.insert(near.port);
                    there.insert(far.port);
                }
            }
        }
        let dns = ["UDP", "TCP"].map(|protocol| PolicyPort {
            protocol,
            port: DNS,
        });
        let mut egress = vec![Egress {
            to: Vec::new(),
            ports: dns.into(),
        }];
        let mut ingress = Vec::new();
        for (name, (here, there)) in neighbours {
            ingress.push(Ingress {
                from: vec![peer(name)],
                ports: udp(here),
            });
            egress.push(Egress {
                to: vec![peer(name)],
                ports: udp(there),
            });
        }
        NetworkPolicy {
            pod_selector: selector(&as_.name),
            policy_types: ["Ingress", "Egress"],
            ingress,
            egress,
        }
    }
}
