//! Which packets are limited.

use std::net::UdpSocket;
use std::time::Duration;

use super::*;

const FAR: [u16; 2] = [50_000, 50_001];

/// Sockets at both ends, by which packets go both ways.
struct Ends {
    here: UdpSocket,
    there: [UdpSocket; 2],
}

impl Ends {
    fn new(pair: &Pair, version: usize) -> Self {
        let bind = |namespace: &NetNs, address: &str, port| {
            let address: IpAddr = address.parse().unwrap();
            let bound = namespace.run(|| UdpSocket::bind((address, port)).unwrap());
            let socket = bound.unwrap();
            let patience = Some(Duration::from_secs(60));
            socket.set_read_timeout(patience).unwrap();
            socket
        };
        Self {
            here: bind(&pair.here, HERE[version], 40_000),
            there: FAR.map(|port| bind(&pair.there, THERE[version], port)),
        }
    }

    /// Sends `count` datagrams of `length` bytes each way between here and a far socket.
    fn exchange(&self, far: usize, count: usize, length: usize) {
        let there = &self.there[far];
        let mut buffer = vec![0; length];
        for (from, to) in [(&self.here, there), (there, &self.here)] {
            for _ in 0..count {
                from.send_to(&vec![0; length], to.local_addr().unwrap())
                    .unwrap();
            }
            for _ in 0..count {
                assert_eq!(to.recv(&mut buffer).unwrap(), length);
            }
        }
    }
}

fn packets(limiter: &mut Limiter) -> Vec<(Owner, Direction, u64)> {
    let all = limiter.read("a").unwrap();
    all.iter()
        .map(|one| (one.owner, one.direction, one.counters.packets))
        .collect()
}

/// Packets of an owner, the same in both directions.
fn of(limiter: &mut Limiter, owner: Owner) -> u64 {
    let mut found = packets(limiter)
        .into_iter()
        .filter(|(other, ..)| *other == owner)
        .map(|(.., packets)| packets);
    let (egress, ingress) = (found.next().unwrap(), found.next().unwrap());
    assert_eq!(egress, ingress, "{owner}");
    egress
}

/// Limits of many links, with which those of the test are on IFBs for what is sent, too.
fn crowd() -> DeviceLimits {
    let mut crowd = many(600, 1_000_000);
    crowd.links.retain(|remote, _| remote.port.is_none());
    let more = |i: u32| Remote {
        address: IpAddr::from((0x0902_0000 + i).to_be_bytes()),
        port: None,
    };
    crowd
        .links
        .extend((0..600).map(|i| (more(i), both(1_000_000))));
    crowd
}

#[test]
fn packets_are_counted_where_they_belong() {
    let Some(pair) = Pair::new() else { return };
    let ends = [0, 1].map(|version| Ends::new(&pair, version));
    let inside = || {
        for crowd in [DeviceLimits::default(), crowd()] {
            let mut limiter = Limiter::open().unwrap();
            if !crowd.is_empty() {
                // The crowd has all places on the device.
                limiter
                    .apply(&on("a", crowd.clone()))
                    .unwrap()
                    .all()
                    .unwrap();
            }
            for version in [0, 1] {
                let whole = remote(THERE[version], None);
                let [first, second] = FAR.map(|port| remote(THERE[version], Some(port)));
                let mut wanted = crowd.clone();
                wanted.links.insert(whole, both(100_000_000));
                wanted.links.insert(second, both(100_000_000));
                limiter
                    .apply(&on("a", wanted.clone()))
                    .unwrap()
                    .all()
                    .unwrap();
                let [whole, first, second] = [whole, first, second].map(Owner::Link);
                ends[version].exchange(0, 5, 1000);
                ends[version].exchange(1, 7, 1000);
                assert_eq!(of(&mut limiter, whole), 5);
                assert_eq!(of(&mut limiter, second), 7);
                // Later fragments have no port.
                ends[version].exchange(1, 1, 4000);
                let fragments = if version == 0 { (1, 2) } else { (0, 3) };
                assert_eq!(of(&mut limiter, second), 7 + fragments.0);
                assert_eq!(of(&mut limiter, whole), 5 + fragments.1);

                // Without a link for the whole address they count as of the first with a port.
                let Owner::Link(gone) = whole else { panic!() };
                let Owner::Link(new) = first else { panic!() };
                wanted.links.remove(&gone);
                wanted.links.insert(new, both(100_000_000));
                limiter.apply(&on("a", wanted)).unwrap().all().unwrap();
                ends[version].exchange(1, 1, 4000);
                assert_eq!(of(&mut limiter, first), fragments.1);
                assert_eq!(of(&mut limiter, second), 7 + 2 * fragments.0);
            }
            limiter
                .apply(&on("a", DeviceLimits::default()))
                .unwrap()
                .all()
                .unwrap();
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn other_traffic_has_no_limit_but_the_default() {
    let Some(pair) = Pair::new() else { return };
    let ends = Ends::new(&pair, 0);
    let inside = || {
        let mut limiter = Limiter::open().unwrap();
        let mut wanted = links([(remote("10.0.0.3", None), both(8_000))]);
        limiter
            .apply(&on("a", wanted.clone()))
            .unwrap()
            .all()
            .unwrap();
        ends.exchange(0, 50, 1000);
        assert!(
            packets(&mut limiter)
                .iter()
                .all(|(.., packets)| *packets == 0)
        );
        wanted.default = both(1_000_000_000);
        limiter.apply(&on("a", wanted)).unwrap().all().unwrap();
        ends.exchange(0, 50, 1000);
        for (owner, direction, packets) in packets(&mut limiter) {
            let counted = packets >= 50;
            assert_eq!(counted, owner == Owner::Default, "{owner} {direction}");
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn a_new_rate_drops_no_queued_packets_and_a_rate_of_0_all() {
    let Some(pair) = Pair::new() else { return };
    let ends = Ends::new(&pair, 0);
    let inside = || {
        let mut limiter = Limiter::open().unwrap();
        let link = remote(THERE[0], Some(FAR[0]));
        let set = |limiter: &mut Limiter, rate| {
            limiter
                .apply(&on("a", links([(link, both(rate))])))
                .unwrap()
                .all()
                .unwrap()
        };
        // At this rate each packet takes a second.
        set(&mut limiter, Limit::MIN_RATE);
        let (here, there) = (&ends.here, &ends.there[0]);
        const SENT: usize = 40;
        for (from, to) in [(here, there), (there, here)] {
            for _ in 0..SENT {
                from.send_to(&[0; 1000], to.local_addr().unwrap()).unwrap();
            }
        }
        let waiting = limiter.read("a").unwrap();
        assert!(
            waiting
                .iter()
                .all(|one| one.counters.backlog > 0 && one.counters.overlimits > 0),
            "{waiting:?}"
        );
        assert_eq!(set(&mut limiter, 1_000_000_000).changed, 2);
        for to in [there, here] {
            for _ in 0..SENT {
                to.recv(&mut [0; 1000]).unwrap();
            }
        }
        for one in limiter.read("a").unwrap() {
            let counters = one.counters;
            assert_eq!((counters.packets, counters.drops), (SENT as u64, 0));
            // The limit counts Ethernet, IP and UDP headers.
            assert_eq!(counters.bytes, SENT as u64 * 1042);
        }
        set(&mut limiter, 0);
        for (from, to) in [(here, there), (there, here)] {
            // What is sent here may fail with the error of a full queue.
            let _ = from.send_to(&[0; 1000], to.local_addr().unwrap());
        }
        for one in limiter.read("a").unwrap() {
            assert_eq!((one.rate, one.counters.drops), (0, 1));
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn counters_alone_are_read_again_while_the_limits_stay() {
    let Some(pair) = Pair::new() else {
        return;
    };
    let job = || {
        let mut limiter = Limiter::open().unwrap();
        let apply = |limiter: &mut Limiter, limits: &DeviceLimits| {
            let outcome = limiter.apply(&on("a", limits.clone())).unwrap();
            assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        };
        let ends = Ends::new(&pair, 0);
        let link = remote(THERE[0], Some(FAR[0]));
        let wanted = links([(link, both(10_000_000))]);
        apply(&mut limiter, &wanted);
        let mut limits = limiter.read_all(None).unwrap().done;
        let before = limits.clone();
        ends.exchange(0, 3, 100);
        assert!(limiter.read_counters(&mut limits).unwrap());
        assert_ne!(limits, before);
        assert_eq!(limits, limiter.read_all(None).unwrap().done);
        // Another rate, another link, no limits, no device: they are not the same.
        let more = remote(THERE[0], Some(FAR[1]));
        let more = links([(link, both(10_000_000)), (more, both(10_000_000))]);
        for other in [links([(link, both(20_000_000))]), more, links([])] {
            apply(&mut limiter, &wanted);
            let mut limits = limiter.read_all(None).unwrap().done;
            apply(&mut limiter, &other);
            assert!(!limiter.read_counters(&mut limits).unwrap(), "{other:?}");
        }
        run("ip link del dev a");
        assert!(!limiter.read_counters(&mut limits).unwrap());
    };
    pair.here.run(job).unwrap();
}
