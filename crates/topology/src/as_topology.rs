//! The configuration of one AS, made from that of its network.

use std::net::SocketAddr;

use crate::network::{LinkKind, Network, Side};
use crate::topology_json::{AsTopology, Bfd, BorderRouter, Interface, LinkAddresses, LinkTo};
use crate::{IsdAsn, as_folder};

impl LinkKind {
    /// The role of the far AS towards the AS on `side`.
    pub fn link_to(self, side: Side) -> LinkTo {
        match (self, side) {
            (Self::Core, _) => LinkTo::Core,
            (Self::Peer, _) => LinkTo::Peer,
            (Self::Child, Side::A) => LinkTo::Child,
            (Self::Child, Side::B) => LinkTo::Parent,
        }
    }
}

impl Network {
    /// The `topology.json` of an AS; `None` if the network does not have it.
    ///
    /// The n-th router of `routers`, each with its internal address, has the interfaces of the n-th
    /// of [`Network::routers`]; an AS without links has one router too. Routers without an address
    /// are left out, with their interfaces. `control` is the address of the control service, which
    /// also is the discovery service. `underlay` gives the addresses of a link, which it is given by
    /// its index, as seen from a side.
    pub fn topology_of(
        &self,
        isd_as: IsdAsn,
        routers: &[(String, SocketAddr)],
        control: SocketAddr,
        underlay: impl Fn(usize, Side) -> LinkAddresses,
    ) -> Option<AsTopology> {
        let as_ = self.find(isd_as)?;
        let mut border_routers: Vec<(String, BorderRouter)> = routers
            .iter()
            .map(|(name, internal_addr)| {
                let router = BorderRouter {
                    internal_addr: *internal_addr,
                    interfaces: [].into(),
                };
                (name.clone(), router)
            })
            .collect();
        // The names of the routers in the topology file.
        let letters = self.routers(isd_as);
        for (index, link) in self.links.iter().enumerate() {
            for side in Side::BOTH {
                let (near, far) = (link.end(side), link.end(side.other()));
                if near.isd_as != isd_as {
                    continue;
                }
                let interface = Interface {
                    underlay: underlay(index, side),
                    isd_as: far.isd_as,
                    remote_id: far.id,
                    link_to: link.kind.link_to(side),
                    mtu: link.mtu,
                    bfd: Bfd::default(),
                };
                let at = letters.iter().position(|letter| *letter == near.router);
                if let Some((_, router)) = at.and_then(|at| border_routers.get_mut(at)) {
                    router.interfaces.insert(near.id, interface);
                }
            }
        }
        let services = [(format!("cs{}-1", as_folder(isd_as)), control)];
        Some(AsTopology {
            isd_as,
            mtu: as_.mtu,
            core: as_.core,
            dispatched_ports: as_.dispatched_ports,
            discovery_service: services.clone().into(),
            control_service: services.into(),
            border_routers: border_routers.into_iter().collect(),
        })
    }

    /// The names of the border routers of an AS in its `topology.json`, in the order of
    /// [`Network::routers`]: at least one, so that all ASes are alike.
    pub fn router_names(&self, isd_as: IsdAsn) -> Vec<String> {
        let count = self.routers(isd_as).len().max(1);
        let folder = as_folder(isd_as);
        (1..=count).map(|n| format!("br{folder}-{n}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_is_an_interface_at_both_ends() {
        let network = Network::ready("fig7a").unwrap();
        let control = "127.0.0.1:30252".parse().unwrap();
        let address = |link: usize, side: Side| {
            let port = 50000 + 2 * link as u16 + u16::from(side == Side::B);
            SocketAddr::from(([127, 0, 0, 1], port))
        };
        let mut interfaces = 0;
        for as_ in &network.ases {
            let names = network.router_names(as_.isd_as);
            assert_eq!(names.len(), 1);
            let routers = [(names[0].clone(), "127.0.0.1:30042".parse().unwrap())];
            let underlay = |link, side: Side| LinkAddresses {
                local: address(link, side),
                remote: address(link, side.other()),
            };
            let topology = network.topology_of(as_.isd_as, &routers, control, underlay);
            let topology = topology.unwrap();
            assert_eq!(topology.control_service, topology.discovery_service);
            for (id, interface) in &topology.border_routers[&names[0]].interfaces {
                let (link, side) = network.link_at(as_.isd_as, *id).unwrap();
                assert_eq!(interface.underlay.local, address(link, side));
                let far = network.links[link].end(side.other());
                assert_eq!(
                    (interface.isd_as, interface.remote_id),
                    (far.isd_as, far.id)
                );
                interfaces += 1;
            }
        }
        assert_eq!(interfaces, 2 * network.links.len());
        let other = "9-ff00:0:1".parse().unwrap();
        let underlay = |_, _| LinkAddresses::default();
        assert_eq!(network.topology_of(other, &[], control, underlay), None);
    }
}
