//! What fails on one device is no failure of the others.

use super::*;

/// The limits that `device` has, as links.
fn limited(limiter: &mut Limiter, device: &str) -> usize {
    limiter.read(device).unwrap().len()
}

/// Another device, `c`.
fn add_device() {
    run("ip link add name c type veth peer name d && ip link set dev c up");
}

#[test]
fn a_device_that_fails_keeps_no_other_from_its_limits() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        add_device();
        run("tc qdisc add dev c root handle 8001: pfifo");
        let mut wanted = BTreeMap::new();
        for device in ["a", "b-is-missing", "c"] {
            wanted.insert(device.to_owned(), many(3, 1_000_000));
        }
        let mut limiter = Limiter::open().unwrap();
        let planned = limiter.plan(&wanted).unwrap();
        assert_eq!((planned.done.len(), planned.failed.len()), (1, 2));
        let outcome = limiter.apply(&wanted).unwrap();
        assert_eq!(outcome.done.added, 6);
        let failed: Vec<_> = outcome.failed.keys().map(String::as_str).collect();
        assert_eq!(failed, ["b-is-missing", "c"]);
        assert!(matches!(outcome.failed["c"], LimitError::Foreign { .. }));
        assert_eq!(limited(&mut limiter, "a"), 6);
        let read = limiter.read_all(None).unwrap().all().unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), ["a"]);
        // What was in the way is gone, and the missing one is there.
        run("tc qdisc del dev c root && ip link set dev d name b-is-missing");
        let outcome = limiter.apply(&wanted).unwrap();
        assert_eq!(outcome.all().unwrap().added, 12);
        // One that is gone again keeps no other from losing its limits.
        run("ip link set dev b-is-missing name d");
        limiter.forget();
        let nothing = wanted
            .keys()
            .map(|name| (name.clone(), DeviceLimits::default()));
        let outcome = limiter.apply(&nothing.collect()).unwrap();
        assert_eq!((outcome.done.removed, outcome.failed.len()), (12, 1));
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn filters_of_others_in_the_way_are_named_and_nothing_is_half_applied() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        for (filter, preference) in [
            // A table of others that has a number of hawser's.
            ("pref 7 protocol ip handle 10: u32 divisor 256", 7),
            (
                "pref 18519 protocol all u32 match u32 0 0 flowid 1:1",
                18_519,
            ),
        ] {
            run(&format!(
                "tc qdisc add dev a ingress && tc filter add dev a ingress {filter}"
            ));
            let before = printed();
            let mut limiter = Limiter::open().unwrap();
            let outcome = limiter.apply(&on("a", many(3, 1_000_000))).unwrap();
            let error = outcome.failed["a"].to_string();
            let remedy = format!("tc filter del dev a ingress pref {preference}");
            assert!(error.ends_with(&format!("remove it ({remedy})")), "{error}");
            assert_eq!(printed(), before);
            // What needs not their place is possible.
            let mut sent = many(3, 1_000_000);
            sent.links
                .values_mut()
                .for_each(|limits| limits.ingress = None);
            limiter.apply(&on("a", sent)).unwrap().all().unwrap();
            limiter.agrees("a");
            let nothing = on("a", DeviceLimits::default());
            assert_eq!(limiter.apply(&nothing).unwrap().all().unwrap().removed, 3);
            assert_eq!(printed(), before);
            run(&remedy);
            limiter
                .apply(&on("a", many(3, 1_000_000)))
                .unwrap()
                .all()
                .unwrap();
            limiter.apply(&nothing).unwrap().all().unwrap();
            run("tc qdisc del dev a ingress");
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn filters_that_come_later_do_not_keep_limits_from_being_removed() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let before = printed();
        let mut limiter = Limiter::open().unwrap();
        limiter
            .apply(&on("a", many(3, 1_000_000)))
            .unwrap()
            .all()
            .unwrap();
        run("tc filter add dev a ingress pref 18526 protocol all u32 match u32 0 0 flowid 1:1");
        let nothing = on("a", DeviceLimits::default());
        assert_eq!(limiter.apply(&nothing).unwrap().all().unwrap().removed, 6);
        let left = run("tc filter show dev a ingress");
        assert!(
            left.contains("flowid 1:1") && !left.contains("protocol ip"),
            "{left}"
        );
        run("tc qdisc del dev a ingress");
        assert_eq!(printed(), before);
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn a_change_that_the_kernel_refuses_half_way_is_taken_back() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        // Filters of a shared block cannot be changed by a device of it.
        run("tc qdisc add dev a ingress_block 5 ingress");
        let before = printed();
        let mut limiter = Limiter::open().unwrap();
        let outcome = limiter.apply(&on("a", many(3, 1_000_000))).unwrap();
        assert!(outcome.failed.contains_key("a"), "{outcome:?}");
        assert_eq!(printed(), before);
        // What was set before is kept.
        let mut sent = many(3, 1_000_000);
        sent.links
            .values_mut()
            .for_each(|limits| limits.ingress = None);
        limiter
            .apply(&on("a", sent.clone()))
            .unwrap()
            .all()
            .unwrap();
        let before = printed();
        let outcome = limiter.apply(&on("a", many(5, 1_000_000))).unwrap();
        assert!(outcome.failed.contains_key("a"), "{outcome:?}");
        assert_eq!(printed(), before);
        let summary = limiter.apply(&on("a", sent)).unwrap().all().unwrap();
        assert_eq!(summary, Summary::default());
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn devices_of_others_with_names_of_ifbs_are_left_alone() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let index = run("ip -o link show dev a | cut -d: -f1");
        let index = index.trim();
        let mine = format!("hawser{index}-1");
        for kind in ["dummy", "bridge", "ifb"] {
            // Not every kernel has all types of devices.
            let added = Command::new("sh")
                .args(["-c", &format!("ip link add {mine} type {kind}")])
                .status()
                .unwrap();
            if !added.success() {
                assert_ne!(kind, "ifb");
                continue;
            }
            run(&format!("ip link add hawser9999-1 type {kind}"));
            let before = printed();
            let mut limiter = Limiter::open().unwrap();
            assert_eq!(limiter.devices().unwrap(), [""; 0]);
            assert_eq!(limiter.remove_orphans().unwrap().all().unwrap(), 0);
            let nothing = on("a", DeviceLimits::default());
            assert_eq!(
                limiter.apply(&nothing).unwrap().all().unwrap(),
                Summary::default()
            );
            let outcome = limiter.apply(&on("a", many(3, 1_000_000))).unwrap();
            assert_eq!(
                outcome.failed["a"].to_string(),
                format!(
                    "the limits of a need the name {mine}, which a device has that hawser did not \
                     create: rename it (ip link set dev {mine} name NEW), or remove it"
                )
            );
            assert_eq!(printed(), before);
            run(&format!(
                "ip link set dev {mine} name mine && ip link del hawser9999-1"
            ));
            limiter
                .apply(&on("a", many(3, 1_000_000)))
                .unwrap()
                .all()
                .unwrap();
            limiter.apply(&nothing).unwrap().all().unwrap();
            run("ip link del mine");
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn an_orphan_that_stays_keeps_no_other_from_going() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        add_device();
        run("ip link add name e type veth peer name f");
        let mut wanted = BTreeMap::new();
        for device in ["a", "c", "e"] {
            wanted.insert(device.to_owned(), many(3, 1_000_000));
        }
        let mut limiter = Limiter::open().unwrap();
        limiter.apply(&wanted).unwrap().all().unwrap();
        let names = run("ip -o link show type ifb | awk -F': ' '{print $2}'");
        assert_eq!(names.lines().count(), 3);
        run("ip link del dev c && ip link del dev e");
        let all = CapabilitySets {
            inheritable: CapabilitySet::empty(),
            ..capabilities(None).unwrap()
        };
        // Without it the kernel refuses to remove a device.
        let fewer = CapabilitySets {
            effective: all.effective - CapabilitySet::NET_ADMIN,
            ..all
        };
        set_capabilities(None, fewer).unwrap();
        let orphans = limiter.remove_orphans().unwrap();
        wanted.retain(|device, _| device == "a");
        let again = limiter.apply(&wanted).unwrap().all().unwrap();
        set_capabilities(None, all).unwrap();
        assert_eq!(again, Summary::default());
        assert_eq!((orphans.done, orphans.failed.len()), (0, 2));
        for (name, error) in &orphans.failed {
            assert!(names.lines().any(|known| known == name), "{name}");
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("cannot remove {name}, "))
                    && text.ends_with(&format!("(ip link del dev {name})")),
                "{text}"
            );
        }
        assert_eq!(limiter.remove_orphans().unwrap().all().unwrap(), 2);
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn a_dry_run_quotes_the_names_of_devices() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let name = "a;x'$(y)";
        run("ip link set dev a down && ip link set dev a name \"a;x'\\$(y)\"");
        run("ip link set dev 'a;x'\\''$(y)' up");
        let mut limiter = Limiter::open().unwrap();
        let wanted = on(name, many(3, 1_000_000));
        let plans = limiter.plan(&wanted).unwrap().all().unwrap();
        run(&format!("set -e; {}", plans[0].commands.join("\n")));
        assert_eq!(
            limiter.apply(&wanted).unwrap().all().unwrap(),
            Summary::default()
        );
    };
    pair.here.run(inside).unwrap();
}
