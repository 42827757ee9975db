//! Creation of the namespaces and links of a plan.

mod host;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use std::{fmt, io};

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::NetNs;
use hawser_kernel::{offload, packet_socket};
use hawser_limit::{DeviceLimits, Limit, LimitError, Limiter, Limits};
use hawser_topology::{IsdAsn, Shape, Side};

pub(crate) use self::host::{add_host as join_host, exists, remove_host};
use crate::netlink::{Exempt, LOOPBACK_NAME, Netlink, VethEnd};
use crate::plan::{AsPlan, LinkPlan, MARK, Plan, Route};

/// Prefix lengths of a link's addresses, for exactly two hosts (RFC 3021 and, for IPv6, RFC 6164).
const LINK_PREFIX: u8 = 31;
const LINK_PREFIX6: u8 = 127;
/// What passes a link's limit at once after a pause: as little as keeps the rate while the machine is not
/// overloaded, as a link of that rate has no bursts.
const BURST: Duration = Duration::from_millis(1);

/// Adds the object that could not be created to an error.
fn making<T, E: fmt::Display>(
    result: Result<T, E>,
    isd_as: IsdAsn,
    thing: impl fmt::Display,
) -> io::Result<T> {
    result.map_err(|e| io::Error::other(format!("AS {isd_as}: cannot make {thing}: {e}")))
}

/// The namespaces of the ASes that exist.
pub(crate) type Namespaces = BTreeMap<IsdAsn, NetNs>;

/// Netlink sockets to namespaces, each opened once.
struct Sockets<'a> {
    namespaces: &'a Namespaces,
    open: BTreeMap<IsdAsn, Netlink>,
}

impl<'a> Sockets<'a> {
    fn new(namespaces: &'a Namespaces) -> Self {
        Self {
            namespaces,
            open: BTreeMap::new(),
        }
    }

    /// The socket to the namespace of an AS.
    fn of(&mut self, isd_as: IsdAsn) -> io::Result<&mut Netlink> {
        match self.open.entry(isd_as) {
            Entry::Occupied(open) => Ok(open.into_mut()),
            Entry::Vacant(place) => {
                let namespace = namespace(self.namespaces, isd_as)?;
                let socket = namespace.run(Netlink::open).flatten();
                Ok(place.insert(making(socket, isd_as, "a netlink socket")?))
            }
        }
    }
}

/// The namespace of an AS.
pub(crate) fn namespace(namespaces: &Namespaces, isd_as: IsdAsn) -> io::Result<&NetNs> {
    let found = namespaces.get(&isd_as);
    found.ok_or_else(|| io::Error::other(format!("AS {isd_as} has no network namespace")))
}

/// Creates the namespaces, one per AS.
///
/// Calls `check` before each step, whose error ends this: the command that brings the lab up may end
/// long before a large lab is built.
pub(crate) fn namespaces(
    plan: &Plan,
    check: impl Fn() -> io::Result<()>,
) -> io::Result<Namespaces> {
    let ases = plan.ases.iter();
    ases.map(|as_| {
        check()?;
        Ok((as_.isd_as, new_namespace(as_.isd_as)?))
    })
    .collect()
}

/// Creates the namespace of an AS.
pub(crate) fn new_namespace(isd_as: IsdAsn) -> io::Result<NetNs> {
    making(NetNs::create(), isd_as, "its network namespace")
}

/// Creates the contents of the namespaces: links, addresses, routes, limits. Calls `check` as
/// [`namespaces`] does.
pub(crate) fn links(
    plan: &Plan,
    namespaces: &Namespaces,
    check: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    let ases: BTreeMap<IsdAsn, &AsPlan> = plan.ases.iter().map(|a| (a.isd_as, a)).collect();
    let mut sockets = Sockets::new(namespaces);
    for as_ in &plan.ases {
        check()?;
        add_host(as_, sockets.of(as_.isd_as)?)?;
    }
    for link in &plan.links {
        check()?;
        add_devices(link, &mut sockets)?;
    }
    for link in &plan.links {
        check()?;
        for side in Side::BOTH {
            let isd_as = link.end(side).isd_as;
            link_up(ases[&isd_as], link, side, sockets.of(isd_as)?)?;
        }
    }
    for link in &plan.links {
        check()?;
        // Both ends are alike in a lab that comes up.
        if let Some(state) = ases[&link.a.isd_as].links.get(&link.a.id) {
            set_limit(namespaces, link, (&Side::BOTH, &state.shape))?;
            if state.shape.is_emulated() {
                for side in Side::BOTH {
                    divert(namespaces, link, side)?;
                }
            }
        }
    }
    Ok(())
}

/// Adds the addresses of an AS, which has no links yet.
pub(crate) fn host(as_: &AsPlan, namespaces: &Namespaces) -> io::Result<()> {
    add_host(as_, Sockets::new(namespaces).of(as_.isd_as)?)
}

/// Creates a link, with its limit. Its ends are up, and there are no routes over them yet.
pub(crate) fn add_link(
    namespaces: &Namespaces,
    link: &LinkPlan,
    (shape, no_offload): (&Shape, bool),
) -> io::Result<()> {
    let mut sockets = Sockets::new(namespaces);
    add_devices(link, &mut sockets)?;
    for side in Side::BOTH {
        device_up(link, side, sockets.of(link.end(side).isd_as)?)?;
    }
    if no_offload {
        for end in [&link.a, &link.b] {
            disable_offloads_of(namespaces, end.isd_as, &[&end.device])?;
        }
    }
    set_limit(namespaces, link, (&Side::BOTH, shape))
}

/// Removes a link, and what diverts plain IP from it; also one that exists in part or not at all.
pub(crate) fn remove_link(namespaces: &Namespaces, link: &LinkPlan) -> io::Result<()> {
    let mut sockets = Sockets::new(namespaces);
    for end in [&link.a, &link.b] {
        if !namespaces.contains_key(&end.isd_as) {
            continue;
        }
        let socket = sockets.of(end.isd_as)?;
        for index in [end.index, end.held().indices[0]] {
            let removed = socket.remove_device(index);
            making(removed, end.isd_as, format_args!("room for {}", end.device))?;
        }
    }
    Ok(())
}

/// Gives the devices of a link its MTU.
pub(crate) fn set_mtu(
    namespaces: &Namespaces,
    link: &LinkPlan,
    is_diverted: bool,
) -> io::Result<()> {
    let mut sockets = Sockets::new(namespaces);
    for end in [&link.a, &link.b] {
        let held = end.held().indices.into_iter().filter(|_| is_diverted);
        let socket = sockets.of(end.isd_as)?;
        for index in held.chain([end.index]) {
            let set = socket.set_mtu(index, link.mtu);
            making(set, end.isd_as, format_args!("the MTU of {}", end.device))?;
        }
    }
    Ok(())
}

/// Gives the network inside an AS the MTU of `to`, and adds the addresses of services that `to` has and
/// `from` has not.
pub(crate) fn change_host(
    (from, to): (&AsPlan, &AsPlan),
    namespaces: &Namespaces,
) -> io::Result<()> {
    let mut sockets = Sockets::new(namespaces);
    let socket = sockets.of(to.isd_as)?;
    let (had, has) = (from.services(), to.services());
    let changed = || {
        socket.set_mtu(LOOPBACK, to.inner_mtu)?;
        for address in has.difference(&had) {
            unless_exists(add_service(to, *address, socket))?;
        }
        for address in had.difference(&has) {
            socket.remove_local(*address, from.host)?;
        }
        Ok(())
    };
    let changed: io::Result<()> = { changed }();
    making(changed, to.isd_as, "its addresses")
}

/// Gives the host of an AS the plain-IP routes `to` in place of `from`; those over devices that are
/// down follow when these come up.
pub(crate) fn set_routes(
    as_: &AsPlan,
    (from, to): (&[Route], &[Route]),
    is_up: impl Fn(u32) -> bool,
    namespaces: &Namespaces,
) -> io::Result<()> {
    let mut sockets = Sockets::new(namespaces);
    let socket = sockets.of(as_.isd_as)?;
    let added: Vec<Route> = to.iter().copied().filter(|r| is_up(r.index)).collect();
    let made = socket.add_routes(&added, as_.host);
    making(made, as_.isd_as, "its routes")?;
    // A route that another one has replaced is gone.
    let stays: BTreeSet<_> = added.iter().map(|route| route.to).collect();
    for route in from.iter().filter(|route| !stays.contains(&route.to)) {
        let removed = socket.remove_route(route, as_.host);
        making(removed, as_.isd_as, "its routes")?;
    }
    Ok(())
}

/// Creates the two devices of a link, which are down, with their IPv4 addresses.
fn add_devices(link: &LinkPlan, sockets: &mut Sockets<'_>) -> io::Result<()> {
    let [near, far] = [&link.a, &link.b].map(|end| VethEnd {
        device: &end.device,
        index: end.index,
        mac: end.mac,
    });
    let far_namespace = namespace(sockets.namespaces, link.b.isd_as)?;
    let socket = sockets.of(link.a.isd_as)?;
    let made = socket.add_veth(&near, &far, far_namespace, link.mtu);
    making(made, link.a.isd_as, near.device)?;
    for end in [&link.a, &link.b] {
        let socket = sockets.of(end.isd_as)?;
        let ready = socket
            .configure(end.index)
            .and_then(|()| socket.add_address(end.index, end.address.into(), LINK_PREFIX));
        making(ready, end.isd_as, &end.device)?;
    }
    Ok(())
}

/// Switches off what carries many packets as one, on the links and between each AS's host and its
/// routers, which share a namespace.
pub(crate) fn disable_offloads(plan: &Plan, namespaces: &Namespaces) -> io::Result<()> {
    for as_ in &plan.ases {
        let ends = plan.links.iter().flat_map(|link| [&link.a, &link.b]);
        let own = ends.filter(|end| end.isd_as == as_.isd_as);
        let devices = own.map(|end| end.device.as_str()).chain([LOOPBACK_NAME]);
        let devices: Vec<&str> = devices.collect();
        disable_offloads_of(namespaces, as_.isd_as, &devices)?;
    }
    Ok(())
}

/// As [`disable_offloads`], for these devices of an AS.
pub(crate) fn disable_offloads_of(
    namespaces: &Namespaces,
    isd_as: IsdAsn,
    devices: &[&str],
) -> io::Result<()> {
    let namespace = namespace(namespaces, isd_as)?;
    let disabled = namespace.run(|| {
        devices
            .iter()
            .try_for_each(|device| offload::disable(device))
    });
    making(disabled.flatten(), isd_as, "devices without offloads")
}

/// Adds the addresses of a host, its routers and its control service.
fn add_host(as_: &AsPlan, socket: &mut Netlink) -> io::Result<()> {
    let mut add = || {
        socket.configure(LOOPBACK)?;
        socket.set_up(LOOPBACK, true)?;
        socket.add_address(LOOPBACK, as_.host.into(), 32)?;
        if let Some(host) = as_.host6 {
            socket.add_address(LOOPBACK, host.into(), 128)?;
        }
        for address in as_.services() {
            add_service(as_, address, socket)?;
        }
        socket.set_mtu(LOOPBACK, as_.inner_mtu)
    };
    making(add(), as_.isd_as, "its addresses")
}

/// Adds the address of a router or the control service.
fn add_service(as_: &AsPlan, address: IpAddr, socket: &mut Netlink) -> io::Result<()> {
    match (address, as_.host6) {
        (IpAddr::V4(address), _) => socket.add_local(address, as_.host),
        (IpAddr::V6(address), Some(host)) => socket.add_local6(address, host),
        (IpAddr::V6(_), None) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

/// Brings one end of a link up, and restores what the kernel removes when a device goes down: its
/// IPv6 address, its neighbour and the routes over it. Existing entries are kept.
fn link_up(as_: &AsPlan, link: &LinkPlan, side: Side, socket: &mut Netlink) -> io::Result<()> {
    let end = link.end(side);
    device_up(link, side, socket)?;
    let over = |route: &&Route| route.index == end.index;
    let routes: Vec<Route> = as_.routes.iter().filter(over).copied().collect();
    let made = socket.add_routes(&routes, as_.host);
    making(
        made,
        as_.isd_as,
        format_args!("the routes over {}", end.device),
    )
}

/// Brings one end of a link up, with its addresses and its neighbour.
fn device_up(link: &LinkPlan, side: Side, socket: &mut Netlink) -> io::Result<()> {
    let (end, far) = (link.end(side), link.end(side.other()));
    making(socket.set_up(end.index, true), end.isd_as, &end.device)?;
    if let Some(address) = end.address6 {
        let made = unless_exists(socket.add_address(end.index, address.into(), LINK_PREFIX6));
        making(made, end.isd_as, format_args!("its address {address}"))?;
    }
    let plain = IpAddr::from(far.address);
    for address in [Some(plain), far.address6.map(IpAddr::from)] {
        let made = address.map_or(Ok(()), |there| {
            socket.add_neighbour(end.index, there, far.mac)
        });
        making(
            made,
            end.isd_as,
            format_args!("the neighbour of {}", end.device),
        )?;
    }
    Ok(())
}

/// Diverts what one end of a link is to send to the emulator of its AS, except SCION's underlay. May be
/// done once for an end.
pub(crate) fn divert(namespaces: &Namespaces, link: &LinkPlan, side: Side) -> io::Result<()> {
    let (end, far) = (link.end(side), link.end(side.other()));
    let (held, namespace) = (end.held(), namespace(namespaces, end.isd_as)?);
    let ends = [0, 1].map(|i| VethEnd {
        device: &held.devices[i],
        index: held.indices[i],
        mac: held.macs[i],
    });
    let exempt = Exempt {
        mark: MARK,
        udp_to: far.address,
        udp_to6: far.address6,
    };
    let diverted = namespace.run(|| {
        let mut socket = Netlink::open()?;
        socket.add_veth(&ends[0], &ends[1], namespace, link.mtu)?;
        for index in held.indices {
            socket.configure(index)?;
            socket.set_up(index, true)?;
        }
        if !packet_socket::carries_udp_segments() {
            offload::disable(ends[0].device)?;
        }
        socket.divert(end.index, held.indices[0], &exempt)
    });
    making(
        diverted.flatten(),
        end.isd_as,
        format_args!("the emulation of {}", end.device),
    )
}

/// Ignores the error that an address exists, as when a link that is partly up is brought up again.
fn unless_exists(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Sets both ends of a link between the ASes `of_a` and `of_b` up or down.
pub(crate) fn set_link_up(
    namespaces: &Namespaces,
    link: &LinkPlan,
    [of_a, of_b]: [&AsPlan; 2],
    up: bool,
) -> io::Result<()> {
    let mut sockets = Sockets::new(namespaces);
    for (side, as_) in [(Side::A, of_a), (Side::B, of_b)] {
        let end = link.end(side);
        let socket = sockets.of(end.isd_as)?;
        match up {
            true => link_up(as_, link, side, socket)?,
            false => making(socket.set_up(end.index, false), end.isd_as, &end.device)?,
        }
    }
    Ok(())
}

/// Sets the limit of these ends of a link to that of a shape, and changes only what differs.
pub(crate) fn set_limit(
    namespaces: &Namespaces,
    link: &LinkPlan,
    (sides, shape): (&[Side], &Shape),
) -> io::Result<()> {
    // A link's device carries nothing else: the limit is that of all its traffic.
    let egress = shape
        .rate
        .map(|rate| Limit::new(rate).with_queue(shape.queue).with_burst(BURST));
    let wanted = DeviceLimits {
        default: Limits {
            egress,
            ingress: None,
        },
        ..DeviceLimits::default()
    };
    for &side in sides {
        let end = link.end(side);
        let thing = format_args!("the limit of {}", end.device);
        let wanted = [(end.device.clone(), wanted.clone())].into();
        let apply = || Limiter::open()?.apply(&wanted)?.all();
        let applied: Result<_, LimitError> = making(
            namespace(namespaces, end.isd_as)?.run(apply),
            end.isd_as,
            thing,
        )?;
        making(applied, end.isd_as, thing)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
