use std::net::IpAddr;
use std::process::Command;

use hawser_kernel::namespace::{NetNs, is_privileged};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::*;
use crate::limit::Limit;

fn remote(ip: &str, port: Option<u16>) -> Remote {
    Remote {
        address: ip.parse().unwrap(),
        port,
    }
}

fn link(name: u8, remote: Remote, device: Option<&str>) -> NamedLink<u8> {
    NamedLink {
        name,
        remote,
        device: device.map(str::to_owned),
        limits: Limits::both(Limit::new(8_000_000)),
    }
}

fn sh(commands: &str) -> String {
    let output = Command::new("sh").args(["-ec", commands]).output().unwrap();
    assert!(output.status.success(), "{commands}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs in a namespace with the devices `a` and `c`.
fn inside(test: impl FnOnce() + Send + 'static) {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    let inside = || {
        sh(
            "ip link add name a type veth peer name b; ip link set dev a up; \
            ip link add name c type veth peer name d; ip link set dev c up",
        );
        test();
    };
    NetNs::create().unwrap().run(inside).unwrap();
}

#[test]
fn links_of_one_address_are_told_apart_by_port_and_the_later_of_two_alike_fails() {
    let (first, second) = (remote("127.0.0.1", Some(1)), remote("127.0.0.1", Some(2)));
    let links = [
        link(1, first, None),
        link(2, second, None),
        link(3, first, None),
    ];
    let default = Limits::both(Limit::new(9_000_000));
    let placed = place(&links, default, |_| Ok("lo".to_owned()), |_| Ok(None)).unwrap();
    assert_eq!(placed.names["lo"], [(first, 1), (second, 2)].into());
    assert_eq!(placed.limits["lo"].default, default);
    assert_eq!(placed.limits["lo"].links.len(), 2);
    assert_eq!(placed.failed.len(), 1);
    let error = &placed.failed[&3];
    assert!(error.contains("link 1 has the same address"), "{error}");
}

#[test]
fn a_link_without_a_route_keeps_no_other_from_its_limits() {
    let remotes = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|ip| remote(ip, None));
    let links: Vec<_> = (1..)
        .zip(remotes)
        .map(|(name, to)| link(name, to, None))
        .collect();
    let device_to = |ip: IpAddr| match ip == remotes[0].address {
        true => Ok("eth0".to_owned()),
        false => Err("no device leads there".to_owned()),
    };
    // The third has a limit, and keeps it.
    let limited_on = |to: &Remote| Ok((*to == remotes[2]).then(|| "eth1".to_owned()));
    let placed = place(&links, Limits::default(), device_to, limited_on).unwrap();
    assert_eq!(placed.failed.keys().collect::<Vec<_>>(), [&2, &3]);
    assert_eq!(placed.names["eth0"], [(remotes[0], 1)].into());
    assert_eq!(placed.names["eth1"], [(remotes[2], 3)].into());
}

#[test]
fn what_remains_of_a_device_and_stays_keeps_no_other_from_its_limits() {
    inside(|| {
        let mut links = vec![
            link(1, remote("10.0.0.1", None), Some("a")),
            link(2, remote("10.0.1.1", None), Some("c")),
        ];
        let limits = KernelEnforcer::new(
            Limiter::open().unwrap(),
            Scope::OwnDevices,
            Limits::default(),
        );
        assert!(limits.enforce(&links).unwrap().is_empty());
        sh("ip link del dev c");
        links.pop();
        let all = capabilities(None).unwrap();
        // Without it the kernel refuses to remove a device.
        let fewer = CapabilitySets {
            effective: all.effective - CapabilitySet::NET_ADMIN,
            ..all
        };
        set_capabilities(None, fewer).unwrap();
        let (applied, usage, reset) = (limits.enforce(&links), limits.usage(), limits.reset());
        set_capabilities(None, all).unwrap();
        assert!(applied.unwrap().is_empty());
        assert_eq!(usage.unwrap().len(), 1);
        let error = reset.unwrap_err().to_string();
        assert!(error.contains("not allowed to limit a"), "{error}");
        assert!(error.contains("cannot remove hawser"), "{error}");
        // With the right to it, all goes.
        limits.reset().unwrap();
        assert!(!sh("ip link show").contains("hawser"));
    });
}

#[test]
fn devices_that_others_have_limited_are_left_alone_unless_all_are_its_own() {
    inside(|| {
        let there = link(1, remote("10.0.1.1", None), Some("c"));
        let before = KernelEnforcer::new(
            Limiter::open().unwrap(),
            Scope::OwnDevices,
            Limits::default(),
        );
        assert!(before.enforce(&[there]).unwrap().is_empty());
        let here = [link(7, remote("10.0.0.1", None), Some("a"))];
        let limited = || {
            let mut limiter = Limiter::open().unwrap();
            limiter.devices().unwrap()
        };
        for (scope, devices) in [
            (Scope::OwnDevices, &["a", "c"][..]),
            (Scope::AllDevices, &["a"]),
        ] {
            let limits = KernelEnforcer::new(Limiter::open().unwrap(), scope, Limits::default());
            assert!(limits.enforce(&here).unwrap().is_empty());
            assert_eq!(limited(), devices);
            assert_eq!(limits.usage().unwrap()[0].link, 7);
        }
    });
}
