use hawser_kernel::namespace::is_privileged;
use hawser_topology::Network;

use super::*;

/// The ASes at the two ends of a link.
fn ends_of(plan: &Plan, link: usize) -> [&AsPlan; 2] {
    let link = &plan.links[link];
    [&link.a, &link.b].map(|end| {
        let mut ases = plan.ases.iter();
        ases.find(|as_| as_.isd_as == end.isd_as).unwrap()
    })
}

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
    links(&plan, &namespaces, || Ok(())).unwrap();
    let rates = || {
        [&plan.links[0].a, &plan.links[0].b].map(|end| {
            let read = || Limiter::open()?.read(&end.device);
            let limits: Result<_, LimitError> = namespaces[&end.isd_as].run(read).unwrap();
            limits.unwrap().first().map(|limit| limit.rate)
        })
    };
    let rate = network.links[0].shape.rate;
    assert_eq!(rates(), [rate, rate]);
    let shape = Shape {
        rate: Some(7_000_000),
        ..Shape::default()
    };
    set_limit(&namespaces, &plan.links[0], (&Side::BOTH, &shape)).unwrap();
    assert_eq!(rates(), [Some(7_000_000); 2]);
    let slow = Shape {
        rate: Some(1_000_000),
        ..Shape::default()
    };
    set_limit(&namespaces, &plan.links[0], (&[Side::B], &slow)).unwrap();
    assert_eq!(rates(), [Some(7_000_000), Some(1_000_000)]);
    set_limit(
        &namespaces,
        &plan.links[0],
        (&Side::BOTH, &Shape::default()),
    )
    .unwrap();
    assert_eq!(rates(), [None; 2]);
}

#[test]
fn the_network_inside_an_as_has_its_mtu() {
    let mut network = Network::ready("fig4").unwrap();
    network.ases[0].mtu = 9000;
    network.links[0].mtu = 4000;
    let plan = Plan::of(&network).unwrap();
    assert_eq!(plan.ases[0].inner_mtu, 9000 + 48);
    assert_eq!(plan.ases[1].inner_mtu, 4000 + 28);
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    let namespaces = namespaces(&plan, || Ok(())).unwrap();
    links(&plan, &namespaces, || Ok(())).unwrap();
    let host = plan.ases[1].host;
    let send = || {
        let socket = std::net::UdpSocket::bind((host, 0)).unwrap();
        let value = libc::IP_PMTUDISC_DO;
        let (level, name) = (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
        hawser_kernel::socket::set_option(&socket, level, name, value).unwrap();
        [4000, 4001].map(|size| socket.send_to(&vec![0; size], (host, 9)).is_ok())
    };
    assert_eq!(
        namespaces[&plan.ases[1].isd_as].run(send).unwrap(),
        [true, false]
    );
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
    links(&plan, &namespaces, || Ok(())).unwrap();
    // Sends a packet of three segments, and returns the lengths in which they arrive. What is
    // sent while a device comes up may be lost.
    let cross = |from: usize, to: usize| {
        let [source, target] = [from, to].map(|at| plan.ases[at].host);
        let bind = |at: usize, host| {
            let socket =
                namespaces[&plan.ases[at].isd_as].run(|| UdpSocket::bind((host, 0)).unwrap());
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
        set_link_up(&namespaces, &plan.links[0], ends_of(&plan, 0), up).unwrap();
    }
    for (at, device) in [&plan.links[0].a, &plan.links[0].b].into_iter().enumerate() {
        let active = namespaces[&plan.ases[at].isd_as].run(|| offload::active(&device.device));
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
    links(&plan, &namespaces, || Ok(())).unwrap();
    let all_permanent = || {
        for (isd_as, namespace) in &namespaces {
            let ends = plan.links.iter().flat_map(|link| [&link.a, &link.b]);
            let own = ends.filter(|end| end.isd_as == *isd_as).count();
            assert_eq!(neighbours(namespace), vec![PERMANENT; own]);
        }
    };
    all_permanent();
    for up in [false, true] {
        set_link_up(&namespaces, &plan.links[0], ends_of(&plan, 0), up).unwrap();
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
    links(&plan, &namespaces, || Ok(())).unwrap();
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
            let socket =
                namespaces[&plan.ases[at].isd_as].run(|| UdpSocket::bind(address).unwrap());
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

    set_link_up(&namespaces, &plan.links[at], ends_of(&plan, at), false).unwrap();
    let speaker = namespaces[&plan.ases[0].isd_as].run(|| UdpSocket::bind((a.host, 0)).unwrap());
    let error = speaker
        .unwrap()
        .send_to(b"over", (b.host, 7000))
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NetworkUnreachable);
    set_link_up(&namespaces, &plan.links[at], ends_of(&plan, at), true).unwrap();
    under();
    plain();
    // Setting a link up again has no effect.
    set_link_up(&namespaces, &plan.links[at], ends_of(&plan, at), true).unwrap();
    let read = || Limiter::open()?.read(&link.a.device);
    let limits: Result<_, LimitError> = namespaces[&plan.ases[0].isd_as].run(read).unwrap();
    let rate = limits.unwrap().first().map(|limit| limit.rate);
    assert_eq!(rate, network.links[at].shape.rate);
}
