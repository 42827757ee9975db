//! A configuration with other addresses of neighbours.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::bundle::{Bundle, ContentError};

impl Bundle {
    /// The configuration with these addresses of the far ends of links, by interface: in the topology,
    /// and in the limits of the links. Interfaces that it does not have are left out.
    ///
    /// # Errors
    /// When its topology or its limits are not valid.
    pub fn with_remotes(&self, remotes: &BTreeMap<u16, SocketAddr>) -> Result<Self, ContentError> {
        let (mut topology, mut limits) = (self.topology()?, self.link_info()?);
        let routers = topology.border_routers.values_mut();
        for (id, interface) in routers.flat_map(|router| &mut router.interfaces) {
            if let Some(remote) = remotes.get(id) {
                interface.underlay.remote = *remote;
            }
        }
        for (id, remote) in remotes {
            if let Some(limit) = limits.0.get_mut(&id.to_string()) {
                limit.ip = remote.ip();
                limit.port = Some(remote.port());
            }
        }
        let mut changed = self.clone();
        changed.set_topology(&topology);
        if !limits.0.is_empty() {
            changed.set_link_info(&limits);
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use hawser_topology::{
        AsTopology, Bfd, BorderRouter, Interface, IsdAsn, LinkAddresses, LinkTo,
    };

    use super::*;
    use crate::{LimitedLink, LinkInfo, Manifest, Neighbours, Role, ServiceChange};

    fn bundle() -> Bundle {
        let isd_as: IsdAsn = "1-ff00:0:110".parse().unwrap();
        let mut bundle = Bundle::default();
        let interface = Interface {
            underlay: LinkAddresses {
                local: "0.0.0.0:50001".parse().unwrap(),
                remote: "192.0.2.1:50003".parse().unwrap(),
            },
            isd_as: "1-ff00:0:111".parse().unwrap(),
            remote_id: 3,
            link_to: LinkTo::Child,
            mtu: 1422,
            bfd: Bfd::default(),
        };
        let router = BorderRouter {
            internal_addr: "127.0.0.1:30042".parse().unwrap(),
            interfaces: [(1, interface.clone()), (2, interface)].into(),
        };
        bundle.set_topology(&AsTopology {
            isd_as,
            mtu: 1472,
            core: true,
            dispatched_ports: (31000, 32767),
            control_service: [].into(),
            discovery_service: [].into(),
            border_routers: [("br1".to_owned(), router)].into(),
        });
        bundle.set_manifest(&Manifest::new(isd_as, Role::AttachmentPoint, 1));
        let ip = "192.0.2.1".parse().unwrap();
        let limit = LimitedLink::new(7, ip, Some(50003), Some(500_000), None).unwrap();
        bundle.set_link_info(&LinkInfo([("1".to_owned(), limit)].into()));
        bundle.insert("keys/master0.key", "x").unwrap();
        bundle
    }

    #[test]
    fn addresses_are_put_into_the_topology_and_the_limits() {
        let bundle = bundle();
        let at: SocketAddr = "10.1.2.3:50004".parse().unwrap();
        let changed = bundle.with_remotes(&[(1, at), (9, at)].into()).unwrap();
        let remote = |bundle: &Bundle, id: u16| {
            let topology = bundle.topology().unwrap();
            topology.border_routers["br1"].interfaces[&id]
                .underlay
                .remote
        };
        assert_eq!(remote(&changed, 1), at);
        assert_eq!(remote(&changed, 2), remote(&bundle, 2));
        let limit = &changed.link_info().unwrap().0["1"];
        assert_eq!((limit.ip, limit.port), (at.ip(), Some(at.port())));
        // No other service has to know.
        assert_eq!(changed.change_from(&bundle), ServiceChange::Underlay);
        assert_eq!(bundle.with_remotes(&[].into()).unwrap(), bundle);
    }

    #[test]
    fn names_of_interfaces_that_it_does_not_have_are_refused() {
        let mut bundle = bundle();
        bundle.set_neighbours(&Neighbours([(3, "as2:50003".to_owned())].into()));
        let said = bundle.check().unwrap_err().to_string();
        assert!(said.contains("no interface 3"), "{said}");
    }
}
