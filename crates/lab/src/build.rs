//! Creation of the namespaces and links of a plan.

use std::net::IpAddr;
use std::time::Duration;
use std::{fmt, io};

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::NetNs;
use hawser_kernel::{offload, packet_socket};
use hawser_limit::{DeviceLimits, Limit, LimitError, Limiter, Limits};
use hawser_topology::{IsdAsn, Network, Shape, Side, Underlay};

use crate::netlink::{Exempt, LOOPBACK_NAME, Netlink, VethEnd};
use crate::plan::{AsPlan, LinkPlan, MARK, Plan, Route};

/// Prefix lengths of a link's addresses, for exactly two hosts (RFC 3021 and, for IPv6, RFC 6164).
const LINK_PREFIX: u8 = 31;
const LINK_PREFIX6: u8 = 127;
/// The least MTU with which a device has IPv6 addresses (RFC 8200, section 5).
const MIN_MTU: u32 = 1280;
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

/// Creates the namespaces, one per AS in the plan's order.
///
/// Calls `check` before each step, whose error ends this: the command that brings the lab up may end
/// long before a large lab is built.
pub(crate) fn namespaces(
    plan: &Plan,
    check: impl Fn() -> io::Result<()>,
) -> io::Result<Vec<NetNs>> {
    let ases = plan.ases.iter();
    ases.map(|as_| {
        check()?;
        making(NetNs::create(), as_.isd_as, "its network namespace")
    })
    .collect()
}

/// Creates the contents of the namespaces: links, addresses, routes, limits. Calls `check` as
/// [`namespaces`] does.
pub(crate) fn links(
    plan: &Plan,
    network: &Network,
    namespaces: &[NetNs],
    check: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    let mut sockets = Vec::with_capacity(namespaces.len());
    for (as_, ns) in plan.ases.iter().zip(namespaces) {
        let socket = ns.run(Netlink::open).flatten();
        sockets.push(making(socket, as_.isd_as, "a netlink socket")?);
    }
    for (at, (as_, socket)) in plan.ases.iter().zip(&mut sockets).enumerate() {
        check()?;
        making(host(as_, socket), as_.isd_as, "its addresses")?;
        let made = socket.set_mtu(LOOPBACK, inner_mtu(plan, at));
        making(made, as_.isd_as, "its network")?;
    }
    for link in &plan.links {
        check()?;
        let [near, far] = [&link.a, &link.b].map(|end| VethEnd {
            device: &end.device,
            index: end.index,
            mac: end.mac,
        });
        let made = sockets[link.a.owner].add_veth(&near, &far, &namespaces[link.b.owner], link.mtu);
        making(made, plan.ases[link.a.owner].isd_as, near.device)?;
        for end in [&link.a, &link.b] {
            let socket = &mut sockets[end.owner];
            let ready = socket
                .configure(end.index)
                .and_then(|()| socket.add_address(end.index, end.address.into(), LINK_PREFIX));
            making(ready, plan.ases[end.owner].isd_as, &end.device)?;
        }
    }
    for link in &plan.links {
        check()?;
        for side in [Side::A, Side::B] {
            link_up(plan, link, side, &mut sockets[link.end(side).owner])?;
        }
    }
    for (i, link) in network.links.iter().enumerate() {
        check()?;
        set_limit(plan, namespaces, i, (&Side::BOTH, &link.shape))?;
        if link.shape.is_emulated() {
            divert(plan, namespaces, i)?;
        }
    }
    Ok(())
}

/// The MTU of the loopback device, which stands for the network inside an AS: as large as SCION
/// packets of the AS and of its links need, and no larger, so that plain IP inside an AS has packets
/// of the same size.
fn inner_mtu(plan: &Plan, at: usize) -> u32 {
    let inside = u32::from(plan.ases[at].topology.mtu) + u32::from(Underlay::Ipv6.headers());
    let ends = |link: &&LinkPlan| [&link.a, &link.b].iter().any(|end| end.owner == at);
    let links = plan.links.iter().filter(ends).map(|link| link.mtu);
    links.fold(inside, u32::max).max(MIN_MTU)
}

/// Switches off what carries many packets as one, on the links and between each AS's host and its
/// routers, which share a namespace.
pub(crate) fn disable_offloads(plan: &Plan, namespaces: &[NetNs]) -> io::Result<()> {
    for (at, (as_, namespace)) in plan.ases.iter().zip(namespaces).enumerate() {
        let ends = plan.links.iter().flat_map(|link| [&link.a, &link.b]);
        let own = ends.filter(|end| end.owner == at);
        let devices = own.map(|end| end.device.as_str()).chain([LOOPBACK_NAME]);
        let disabled = namespace.run(|| devices.into_iter().try_for_each(offload::disable));
        making(disabled.flatten(), as_.isd_as, "devices without offloads")?;
    }
    Ok(())
}

/// Adds the addresses of a host, its routers and its control service.
fn host(as_: &AsPlan, socket: &mut Netlink) -> io::Result<()> {
    socket.configure(LOOPBACK)?;
    socket.set_up(LOOPBACK, true)?;
    socket.add_address(LOOPBACK, as_.host.into(), 32)?;
    if let Some(host) = as_.host6 {
        socket.add_address(LOOPBACK, host.into(), 128)?;
    }
    for router in &as_.routers {
        match (router.address, as_.host6) {
            (IpAddr::V4(address), _) => socket.add_local(address, as_.host)?,
            (IpAddr::V6(address), Some(host)) => socket.add_local6(address, host)?,
            (IpAddr::V6(_), None) => return Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }
    Ok(())
}

/// Brings one end of a link up, and restores what the kernel removes when a device goes down: its
/// IPv6 address, its neighbour and the routes over it. Existing entries are kept.
fn link_up(plan: &Plan, link: &LinkPlan, side: Side, socket: &mut Netlink) -> io::Result<()> {
    let (end, far) = (link.end(side), link.end(side.other()));
    let as_ = &plan.ases[end.owner];
    making(socket.set_up(end.index, true), as_.isd_as, &end.device)?;
    if let Some(address) = end.address6 {
        let made = unless_exists(socket.add_address(end.index, address.into(), LINK_PREFIX6));
        making(made, as_.isd_as, format_args!("its address {address}"))?;
    }
    let plain = IpAddr::from(far.address);
    for address in [Some(plain), far.address6.map(IpAddr::from)] {
        let made = address.map_or(Ok(()), |there| {
            socket.add_neighbour(end.index, there, far.mac)
        });
        making(
            made,
            as_.isd_as,
            format_args!("the neighbour of {}", end.device),
        )?;
    }
    let over = |route: &&Route| route.index == end.index;
    let routes: Vec<Route> = as_.routes.iter().filter(over).copied().collect();
    let made = socket.add_routes(&routes, as_.host);
    making(
        made,
        as_.isd_as,
        format_args!("the routes over {}", end.device),
    )
}

/// Diverts what both ends of a link are to send to the emulators of their ASes, except SCION's
/// underlay. May be done once for a link.
pub(crate) fn divert(plan: &Plan, namespaces: &[NetNs], link: usize) -> io::Result<()> {
    for side in [Side::A, Side::B] {
        let link = &plan.links[link];
        let (end, far) = (link.end(side), link.end(side.other()));
        let (held, namespace) = (end.held(), &namespaces[end.owner]);
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
        let isd_as = plan.ases[end.owner].isd_as;
        making(
            diverted.flatten(),
            isd_as,
            format_args!("the emulation of {}", end.device),
        )?;
    }
    Ok(())
}

/// Ignores the error that an address exists, as when a link that is partly up is brought up again.
fn unless_exists(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Sets both ends of a link up or down.
pub(crate) fn set_link_up(
    plan: &Plan,
    namespaces: &[NetNs],
    link: usize,
    up: bool,
) -> io::Result<()> {
    for side in [Side::A, Side::B] {
        let end = plan.links[link].end(side);
        let isd_as = plan.ases[end.owner].isd_as;
        let socket = namespaces[end.owner].run(Netlink::open).flatten();
        let mut socket = making(socket, isd_as, "a netlink socket")?;
        match up {
            true => link_up(plan, &plan.links[link], side, &mut socket)?,
            false => making(socket.set_up(end.index, false), isd_as, &end.device)?,
        }
    }
    Ok(())
}

/// Sets the limit of these ends of a link to that of a shape, and changes only what differs.
pub(crate) fn set_limit(
    plan: &Plan,
    namespaces: &[NetNs],
    link: usize,
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
        let end = plan.links[link].end(side);
        let isd_as = plan.ases[end.owner].isd_as;
        let thing = format_args!("the limit of {}", end.device);
        let wanted = [(end.device.clone(), wanted.clone())].into();
        let apply = || Limiter::open()?.apply(&wanted)?.all();
        let applied: Result<_, LimitError> =
            making(namespaces[end.owner].run(apply), isd_as, thing)?;
        making(applied, isd_as, thing)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hawser_kernel::namespace::is_privileged;

    use super::*;

    #[test]
    fn building_ends_when_nobody_waits_for_it() {
        let plan = Plan::of(&Network::ready("fig7a").unwrap()).unwrap();
        let asked = std::cell::Cell::new(0);
        let gone = || {
            asked.set(asked.get() + 1);
            Err(io::Error::other("the command has ended"))
        };
        // Before the first step, so that the test needs no rights.
        let error = namespaces(&plan, gone).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), asked.get()),
            ("the command has ended", 1)
        );
    }

    #[test]
    fn limits_are_set_on_both_ends_and_removed() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let network = Network::ready("fig4").unwrap();
        let plan = Plan::of(&network).unwrap();
        let namespaces = namespaces(&plan, || Ok(())).unwrap();
        links(&plan, &network, &namespaces, || Ok(())).unwrap();
        let rates = || {
            [&plan.links[0].a, &plan.links[0].b].map(|end| {
                let read = || Limiter::open()?.read(&end.device);
                let limits: Result<_, LimitError> = namespaces[end.owner].run(read).unwrap();
                limits.unwrap().first().map(|limit| limit.rate)
            })
        };
        let rate = network.links[0].shape.rate;
        assert_eq!(rates(), [rate, rate]);
        let shape = Shape {
            rate: Some(7_000_000),
            ..Shape::default()
        };
        set_limit(&plan, &namespaces, 0, (&Side::BOTH, &shape)).unwrap();
        assert_eq!(rates(), [Some(7_000_000); 2]);
        let slow = Shape {
            rate: Some(1_000_000),
            ..Shape::default()
        };
        set_limit(&plan, &namespaces, 0, (&[Side::B], &slow)).unwrap();
        assert_eq!(rates(), [Some(7_000_000), Some(1_000_000)]);
        set_limit(&plan, &namespaces, 0, (&Side::BOTH, &Shape::default())).unwrap();
        assert_eq!(rates(), [None; 2]);
    }

    #[test]
    fn the_network_inside_an_as_has_its_mtu() {
        let mut network = Network::ready("fig4").unwrap();
        network.ases[0].mtu = 9000;
        network.links[0].mtu = 4000;
        let plan = Plan::of(&network).unwrap();
        assert_eq!(inner_mtu(&plan, 0), 9000 + 48);
        assert_eq!(inner_mtu(&plan, 1), 4000 + 28);
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let namespaces = namespaces(&plan, || Ok(())).unwrap();
        links(&plan, &network, &namespaces, || Ok(())).unwrap();
        let host = plan.ases[1].host;
        let send = || {
            let socket = std::net::UdpSocket::bind((host, 0)).unwrap();
            let value = libc::IP_PMTUDISC_DO;
            let (level, name) = (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
            hawser_kernel::socket::set_option(&socket, level, name, value).unwrap();
            [4000, 4001].map(|size| socket.send_to(&vec![0; size], (host, 9)).is_ok())
        };
        assert_eq!(namespaces[1].run(send).unwrap(), [true, false]);
    }

    #[test]
    fn without_offloads_each_packet_arrives_by_itself() {
        use std::net::UdpSocket;
        use std::time::Duration;

        use hawser_kernel::socket::set_option;
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        const SEGMENT: usize = 1000;
        let network = Network::ready("fig4").unwrap();
        let plan = Plan::of(&network).unwrap();
        let namespaces = namespaces(&plan, || Ok(())).unwrap();
        links(&plan, &network, &namespaces, || Ok(())).unwrap();
        // Sends a packet of three segments, and returns the lengths in which they arrive. What is
        // sent while a device comes up may be lost.
        let cross = |from: usize, to: usize| {
            let [source, target] = [from, to].map(|at| plan.ases[at].host);
            let bind = |at: usize, host| {
                let socket = namespaces[at].run(|| UdpSocket::bind((host, 0)).unwrap());
                socket.unwrap()
            };
            let (speaker, listener) = (bind(from, source), bind(to, target));
            let set = |socket, name, value| set_option(socket, libc::SOL_UDP, name, value);
            set(&speaker, libc::UDP_SEGMENT, SEGMENT as i32).unwrap();
            set(&listener, libc::UDP_GRO, 1).unwrap();
            let patience = Some(Duration::from_millis(100));
            listener.set_read_timeout(patience).unwrap();
            let address = listener.local_addr().unwrap();
            let mut buffer = [0; 4 * SEGMENT];
            let first = loop {
                speaker.send_to(&[0; 3 * SEGMENT], address).unwrap();
                if let Ok(length) = listener.recv(&mut buffer) {
                    break length;
                }
            };
            let mut lengths = vec![first];
            while lengths.iter().sum::<usize>() < 3 * SEGMENT {
                lengths.push(listener.recv(&mut buffer).unwrap());
            }
            lengths
        };
        for ends in [(0, 1), (0, 0)] {
            assert_eq!(cross(ends.0, ends.1), [3 * SEGMENT]);
        }
        disable_offloads(&plan, &namespaces).unwrap();
        for ends in [(0, 1), (0, 0)] {
            assert_eq!(cross(ends.0, ends.1), [SEGMENT; 3]);
        }
        // A link that was down has no offloads afterwards either.
        for up in [false, true] {
            set_link_up(&plan, &namespaces, 0, up).unwrap();
        }
        for (at, device) in [&plan.links[0].a, &plan.links[0].b].into_iter().enumerate() {
            let active = namespaces[at].run(|| offload::active(&device.device));
            assert_eq!(active.unwrap().unwrap(), [""; 0]);
        }
    }

    /// The states of an AS's neighbour entries, as `ATF_` flags of arp(7).
    fn neighbours(namespace: &NetNs) -> Vec<String> {
        let table = || std::fs::read_to_string("/proc/thread-self/net/arp").unwrap();
        let table = namespace.run(table).unwrap();
        let flags = table.lines().skip(1).map(|line| {
            let mut fields = line.split_ascii_whitespace();
            fields.nth(2).unwrap().to_owned()
        });
        flags.collect()
    }

    #[test]
    fn neighbours_do_not_count_in_the_table_of_all_namespaces() {
        const PERMANENT: &str = "0x6";
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let network = Network::ready("fig7a").unwrap();
        let plan = Plan::of(&network).unwrap();
        let namespaces = namespaces(&plan, || Ok(())).unwrap();
        links(&plan, &network, &namespaces, || Ok(())).unwrap();
        let all_permanent = || {
            for (at, namespace) in namespaces.iter().enumerate() {
                let ends = plan.links.iter().flat_map(|link| [&link.a, &link.b]);
                let own = ends.filter(|end| end.owner == at).count();
                assert_eq!(neighbours(namespace), vec![PERMANENT; own]);
            }
        };
        all_permanent();
        for up in [false, true] {
            set_link_up(&plan, &namespaces, 0, up).unwrap();
        }
        all_permanent();
    }

    #[test]
    fn addresses_and_routes_are_restored_with_a_link() {
        use std::net::UdpSocket;
        use std::time::Duration;
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let mut network = Network::ready("fig4").unwrap();
        for link in &mut network.links {
            link.underlay = hawser_topology::Underlay::Ipv6;
        }
        let plan = Plan::of(&network).unwrap();
        let namespaces = namespaces(&plan, || Ok(())).unwrap();
        links(&plan, &network, &namespaces, || Ok(())).unwrap();
        let [a, b] = &plan.ases[..] else {
            panic!("{plan:?}");
        };
        // The plain-IP route uses one of the two links.
        let route = a.routes[0].index;
        let at = plan.links.iter().position(|l| l.a.index == route).unwrap();
        let link = &plan.links[at];
        // Sends until a packet arrives: packets sent while a device comes up may be lost.
        let cross = |from: IpAddr, to: IpAddr| {
            let bind = |at: usize, address| {
                let socket = namespaces[at].run(|| UdpSocket::bind(address).unwrap());
                socket.unwrap()
            };
            let (speaker, listener) = (bind(0, (from, 0)), bind(1, (to, 7000)));
            let patience = Some(Duration::from_millis(20));
            listener.set_read_timeout(patience).unwrap();
            while speaker.send_to(b"over", (to, 7000)).is_err()
                || listener.recv_from(&mut [0; 8]).is_err()
            {}
        };
        let under = || cross(link.a.underlay(), link.b.underlay());
        let plain = || cross(a.host.into(), b.host.into());
        under();
        plain();

        set_link_up(&plan, &namespaces, at, false).unwrap();
        let speaker = namespaces[0].run(|| UdpSocket::bind((a.host, 0)).unwrap());
        let error = speaker
            .unwrap()
            .send_to(b"over", (b.host, 7000))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NetworkUnreachable);
        set_link_up(&plan, &namespaces, at, true).unwrap();
        under();
        plain();
        // Setting a link up again has no effect.
        set_link_up(&plan, &namespaces, at, true).unwrap();
        let read = || Limiter::open()?.read(&link.a.device);
        let limits: Result<_, LimitError> = namespaces[0].run(read).unwrap();
        let rate = limits.unwrap().first().map(|limit| limit.rate);
        assert_eq!(rate, network.links[at].shape.rate);
    }
}
