//! What others have set.

use super::*;

#[test]
fn a_foreign_root_is_kept_unless_it_may_be_replaced() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        run("tc qdisc add dev a root handle 8001: pfifo");
        let before = printed();
        let wanted = on("a", links([(remote(THERE[0], None), both(1_000_000))]));
        let mut limiter = Limiter::open().unwrap();
        let error = limiter.apply(&wanted).unwrap().all().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a has a queueing discipline that hawser did not set (pfifo 8001:): replace it \
             (--replace), or remove it (tc qdisc del dev a root)"
        );
        assert_eq!(printed(), before);
        limiter
            .apply(&on("a", DeviceLimits::default()))
            .unwrap()
            .all()
            .unwrap();
        assert_eq!(printed(), before);
        let mut limiter = limiter.with_replace(true);
        assert_eq!(limiter.apply(&wanted).unwrap().all().unwrap().added, 2);
        limiter.agrees("a");
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn filters_of_others_at_ingress_are_kept() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        for discipline in ["ingress", "clsact"] {
            run(&format!("tc qdisc add dev a {discipline}"));
            run(
                "tc filter add dev a ingress protocol ip pref 7 u32 match u32 0 0 action mirred \
                 egress mirror dev lo",
            );
            let before = printed();
            let mut limiter = Limiter::open().unwrap();
            for wanted in [many(20, 1_000_000), many(3, 1_000_000)] {
                limiter.apply(&on("a", wanted)).unwrap().all().unwrap();
                limiter.agrees("a");
            }
            let nothing = on("a", DeviceLimits::default());
            assert_eq!(limiter.apply(&nothing).unwrap().all().unwrap().removed, 6);
            assert_eq!(printed(), before);
            // Nothing is left that would be in the way.
            limiter
                .apply(&on("a", many(30, 1_000_000)))
                .unwrap()
                .all()
                .unwrap();
            limiter.agrees("a");
            limiter.apply(&nothing).unwrap().all().unwrap();
            assert_eq!(printed(), before);
            run(&format!("tc qdisc del dev a {discipline}"));
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn what_others_remove_is_set_again() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let wanted = on("a", many(3, 1_000_000));
        let mut limiter = Limiter::open().unwrap();
        limiter.apply(&wanted).unwrap().all().unwrap();
        assert!(!limiter.is_disturbed().unwrap());
        assert_eq!(
            limiter.apply(&wanted).unwrap().all().unwrap(),
            Summary::default()
        );
        for command in [
            "tc qdisc del dev a root",
            "tc class change dev a classid 4857:1 htb rate 9mbit",
            "tc qdisc del dev a ingress",
            "tc filter del dev a parent 4857: pref 18519 protocol ip",
            "tc qdisc replace dev a parent 4857:2 pfifo",
        ] {
            run(command);
            let summary = limiter.apply(&wanted).unwrap().all().unwrap();
            assert!(summary.requests > 0, "{command}");
            limiter.agrees("a");
        }
        run("ip link del $(ip -o link show type ifb | cut -d: -f2)");
        limiter.forget();
        limiter.apply(&wanted).unwrap().all().unwrap();
        limiter.agrees("a");
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn namespaces_do_not_share_limits() {
    let Some(pair) = Pair::new() else { return };
    let set = |device: &'static str| {
        move || {
            let mut limiter = Limiter::open().unwrap();
            limiter
                .apply(&on(device, many(2, 1_000_000)))
                .unwrap()
                .all()
                .unwrap();
            limiter.devices().unwrap()
        }
    };
    assert_eq!(pair.here.run(set("a")).unwrap(), ["a"]);
    let there = pair
        .there
        .run(|| Limiter::open().unwrap().devices().unwrap());
    assert_eq!(there.unwrap(), [""; 0]);
}

#[test]
fn the_device_of_a_far_end_is_found() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let mut routes = Routes::open().unwrap();
        let mut device_to = |address: &str| {
            let found = routes.device_to(address.parse().unwrap());
            found.map_err(|error| error.to_string())
        };
        for address in [THERE[0], THERE[1], "fe80::1", "10.0.0.77"] {
            assert_eq!(device_to(address).unwrap(), "a", "{address}");
        }
        assert_eq!(
            device_to("192.0.2.1").unwrap_err(),
            "no device leads to 192.0.2.1: name its device"
        );
        for own in HERE {
            assert_eq!(
                device_to(own).unwrap_err(),
                format!("{own} is an address of this host: name the link by the far end's address")
            );
        }
        run(
            "ip link add name c type veth peer name d && ip link set dev c up && \
             ip link set dev d up && ip addr add fe80::7/64 dev c nodad && \
             ip addr add fe80::8/64 dev d nodad",
        );
        let mut routes = Routes::open().unwrap();
        let error = routes.device_to("fe80::1".parse().unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "fe80::1 can be behind any of a, c, d: name its device"
        );
    };
    pair.here.run(inside).unwrap();
}
