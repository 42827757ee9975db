use std::collections::HashSet;
use std::net::Ipv4Addr;

use hawser_endhost::{IsdAsn, Path};
use proptest::prelude::*;

use super::*;

fn isd_as() -> IsdAsn {
    "1-ff00:0:1".parse().unwrap()
}

/// A route to the peer with this number.
fn route(peer: u32) -> Route {
    let local = ScionAddr::new(isd_as(), "10.0.0.1:1".parse().unwrap());
    let host = (Ipv4Addr::from(0x0a01_0000 + peer), 2).into();
    let path = Path::within(isd_as(), 1472);
    Route::new(local, ScionAddr::new(isd_as(), host), &path).unwrap()
}

/// What a packet from the peer with this number does.
fn packet(routes: &Routes, peer: u32, form: &[u8]) -> SocketAddr {
    let mut table = routes.lock();
    if let Some(way) = table.by_form(form) {
        return way.addr();
    }
    let way = Arc::clone(table.way(route(peer), &[], 1));
    table.remember(&way, form);
    way.addr()
}

fn sizes(routes: &Routes) -> (usize, usize, usize, usize) {
    let table = routes.lock();
    let (ways, idle) = (table.ways.len(), table.idle.len());
    (ways, idle, table.by_path.len(), table.by_form.len())
}

#[test]
fn a_way_has_one_address() {
    let routes = Arc::new(Routes::default());
    let used = routes.take(route(1), &[], 1);
    let addr = used.way().addr();
    assert_eq!(packet(&routes, 1, b"form"), addr);
    assert_eq!(packet(&routes, 1, b"another"), addr);
    assert_eq!(routes.take(route(1), &[], 1).way().addr(), addr);
    assert_ne!(
        routes.take(route(1), &[1, 2], 1).way().addr(),
        addr,
        "another path"
    );
    assert_ne!(
        routes.take(route(2), &[], 1).way().addr(),
        addr,
        "another peer"
    );
    assert_eq!(routes.find(addr).unwrap().peer(), route(1).peer());
    assert!(routes.find("[::1]:4242".parse().unwrap()).is_none());
    assert!(routes.find("10.0.0.1:4242".parse().unwrap()).is_none());
}

#[test]
fn strangers_push_out_strangers_only() {
    let routes = Arc::new(Routes::default());
    let used = routes.take(route(0), &[], 1);
    let first = packet(&routes, 1, &1u32.to_be_bytes());
    for peer in 2..5 * IDLE as u32 {
        for form in 0..3 * FORMS as u32 {
            packet(&routes, peer, &(peer << 8 | form).to_be_bytes());
        }
    }
    let (ways, idle, by_path, by_form) = sizes(&routes);
    assert_eq!((ways, idle, by_path), (IDLE + 1, IDLE, IDLE + 1));
    assert_eq!(by_form, IDLE * FORMS);
    assert!(routes.find(first).is_none(), "the oldest is gone");
    assert!(routes.find(used.way().addr()).is_some());
    // Come back, it is another.
    assert_ne!(packet(&routes, 1, &1u32.to_be_bytes()), first);
}

#[test]
fn what_the_local_side_asks_for_replaces_the_headers() {
    let routes = Arc::new(Routes::default());
    let used = routes.take(route(1), &[], 5);
    let again = routes.take(route(1), &[], 9);
    assert_eq!(used.way().expiry(), 9);
    used.way().refresh(route(1), 12);
    assert_eq!(again.way().expiry(), 12);
}

#[derive(Debug, Clone)]
enum Step {
    Packet(u32, u8),
    Take(u32),
    TakeAddr(u32),
    Release(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3000u32, any::<u8>()).prop_map(|(peer, form)| Step::Packet(peer, form)),
        (0..50u32).prop_map(Step::Take),
        (0..50u32).prop_map(Step::TakeAddr),
        any::<prop::sample::Index>().prop_map(Step::Release),
    ]
}

proptest! {
    #[test]
    fn ways_in_use_stay_and_addresses_are_never_used_twice(steps in prop::collection::vec(step(), 1..300)) {
        let routes = Arc::new(Routes::default());
        let mut used: Vec<InUse> = Vec::new();
        let mut peers: HashMap<SocketAddr, ScionAddr> = HashMap::new();
        for step in steps {
            let addr = match step {
                Step::Packet(peer, form) => {
                    Some(packet(&routes, peer, &[&peer.to_be_bytes()[..], &[form]].concat()))
                }
                Step::Take(peer) => {
                    used.push(routes.take(route(peer), &[], 1));
                    used.last().map(|way| way.way().addr())
                }
                Step::TakeAddr(peer) => {
                    let addr = packet(&routes, peer, &peer.to_be_bytes());
                    used.extend(routes.take_addr(addr));
                    Some(addr)
                }
                Step::Release(_) if used.is_empty() => None,
                Step::Release(which) => {
                    used.swap_remove(which.index(used.len()));
                    None
                }
            };
            if let Some(addr) = addr {
                let peer = routes.find(addr).unwrap().peer();
                prop_assert_eq!(*peers.entry(addr).or_insert(peer), peer);
            }
            for way in &used {
                prop_assert!(routes.find(way.way().addr()).is_some());
            }
            let (ways, idle, by_path, _) = sizes(&routes);
            let in_use: HashSet<_> = used.iter().map(|way| way.way().addr()).collect();
            prop_assert_eq!((ways, by_path), (idle + in_use.len(), ways));
            prop_assert!(idle <= IDLE);
        }
    }
}
