//! Namespaces and links as the plan lays them out.

use crate::{
    netlink::{LOOPBACK, Netlink, VethEnd},
    netns::NetNs,
    plan::Plan,
    protocol::Limit,
};
use hawser_limit::LinkLimit;
use hawser_topology::{IsdAsn, Network, Shape, Side};
use std::fmt;

/// Prefix length of a link's addresses (RFC 3021: two hosts, no more).
const LINK_PREFIX: u8 = 31;

/// Something of a lab could not be made.
#[derive(Debug, thiserror::Error)]
#[error("AS {isd_as}: cannot make {thing}: {reason}")]
pub(crate) struct BuildError {
    isd_as: IsdAsn,
    thing: String,
    reason: String,
}

/// What was being made, for errors.
fn making<T, E: fmt::Display>(
    result: Result<T, E>,
    isd_as: IsdAsn,
    thing: impl fmt::Display,
) -> Result<T, BuildError> {
    result.map_err(|reason| BuildError {
        isd_as,
        thing: thing.to_string(),
        reason: reason.to_string(),
    })
}

/// Makes the namespaces, one per AS in the plan's order.
pub(crate) fn namespaces(plan: &Plan) -> Result<Vec<NetNs>, BuildError> {
    plan.ases
        .iter()
        .map(|as_| making(NetNs::create(), as_.isd_as, "its network namespace"))
        .collect()
}

/// Makes everything inside the namespaces: links, addresses, routes, limits.
pub(crate) fn links(
    plan: &Plan,
    network: &Network,
    namespaces: &[NetNs],
) -> Result<(), BuildError> {
    let mut sockets = Vec::with_capacity(namespaces.len());
    for (as_, ns) in plan.ases.iter().zip(namespaces) {
        let socket = ns.run(Netlink::open).flatten();
        sockets.push(making(socket, as_.isd_as, "a netlink socket")?);
    }
    for (as_, socket) in plan.ases.iter().zip(&mut sockets) {
        let host = socket
            .set_up(LOOPBACK)
            .and_then(|()| socket.add_address(LOOPBACK, as_.host, 32))
            .and_then(|()| socket.add_local(as_.services, as_.host));
        making(host, as_.isd_as, format_args!("its address {}", as_.host))?;
    }
    for link in &plan.links {
        let [near, far] = [&link.a, &link.b].map(|end| VethEnd {
            device: &end.device,
            index: end.index,
        });
        let made = sockets[link.a.owner].add_veth(&near, &far, &namespaces[link.b.owner], link.mtu);
        making(made, plan.ases[link.a.owner].isd_as, near.device)?;
        for end in [&link.a, &link.b] {
            let socket = &mut sockets[end.owner];
            let ready = socket
                .set_up(end.index)
                .and_then(|()| socket.add_address(end.index, end.address, LINK_PREFIX));
            making(ready, plan.ases[end.owner].isd_as, &end.device)?;
        }
    }
    for (as_, socket) in plan.ases.iter().zip(&mut sockets) {
        for route in &as_.routes {
            let made = socket.add_route(route.to, route.via, route.index, as_.host);
            making(made, as_.isd_as, format_args!("its route to {}", route.to))?;
        }
    }
    for (i, link) in network.links.iter().enumerate() {
        set_limit(plan, namespaces, i, limit_of(&link.shape))?;
    }
    Ok(())
}

/// Sets the limit of both ends of a link, by difference.
pub(crate) fn set_limit(
    plan: &Plan,
    namespaces: &[NetNs],
    link: usize,
    limit: Option<Limit>,
) -> Result<(), BuildError> {
    let wanted = limit.map(LinkLimit::from);
    for side in [Side::A, Side::B] {
        let end = plan.links[link].end(side);
        let isd_as = plan.ases[end.owner].isd_as;
        let thing = format_args!("the limit of {}", end.device);
        let applied =
            namespaces[end.owner].run(|| hawser_limit::apply(&end.device, wanted.as_ref()));
        making(making(applied, isd_as, thing)?, isd_as, thing)?;
    }
    Ok(())
}

/// The limit that a shape asks for.
pub(crate) fn limit_of(shape: &Shape) -> Option<Limit> {
    shape.rate.map(|rate| Limit {
        rate,
        queue_us: shape.queue.as_micros().try_into().unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::is_privileged;

    #[test]
    fn limits_are_set_on_both_ends_and_taken_off_again() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let network = Network::ready("fig4").unwrap();
        let plan = Plan::of(&network).unwrap();
        let namespaces = namespaces(&plan).unwrap();
        links(&plan, &network, &namespaces).unwrap();
        let rates = || {
            [&plan.links[0].a, &plan.links[0].b].map(|end| {
                namespaces[end.owner]
                    .run(|| hawser_limit::read(&end.device))
                    .unwrap()
                    .unwrap()
                    .map(|(limit, _)| limit.rate)
            })
        };
        let rate = network.links[0].shape.rate;
        assert_eq!(rates(), [rate, rate]);
        let limit = Limit {
            rate: 7_000_000,
            queue_us: 50_000,
        };
        set_limit(&plan, &namespaces, 0, Some(limit)).unwrap();
        assert_eq!(rates(), [Some(7_000_000); 2]);
        set_limit(&plan, &namespaces, 0, None).unwrap();
        assert_eq!(rates(), [None; 2]);
    }
}
