//! Tests of the table that redirects.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use ipnet::IpNet;

use super::network::{Network, captured, through};
use crate::{Redirect, RedirectError, Wanted};

const MARK: u32 = 0x4857;
const TABLE: &str = "hawser-test";

fn prefixes(all: &[&str]) -> Vec<IpNet> {
    all.iter().map(|one| one.parse().unwrap()).collect()
}

/// Captures `all` at the listener of the network.
fn wanted(network: &Network, all: &[&str]) -> Wanted {
    Wanted::new(network.port(), MARK).with_prefixes(prefixes(all))
}

/// Creates the table in the namespace of the host.
fn create(network: &Network, wanted: &Wanted) -> Result<Redirect, RedirectError> {
    let create = || Redirect::create(TABLE, wanted);
    network.host.run(create).unwrap()
}

#[test]
fn captured_connections_arrive_with_their_destination() {
    let Some(network) = Network::create() else {
        return;
    };
    let both = ["10.1.0.7", "fd01::7"];
    for to in both {
        assert_eq!(network.connect(to, 0), through(to));
    }
    let wanted = wanted(&network, &["10.1.0.0/16", "fd01::/16"]);
    let redirect = create(&network, &wanted).unwrap();
    for to in both {
        assert_eq!(network.connect(to, 0), captured(to));
        assert_eq!(network.connect(to, MARK), through(to));
        assert_eq!(network.connect(to, MARK + 1), captured(to));
    }
    // There is no such server.
    assert_eq!(network.connect("10.1.200.1", 0), captured("10.1.200.1"));
    for to in ["10.2.0.7", "fd02::7"] {
        assert_eq!(network.connect(to, 0), through(to));
    }
    drop(redirect);
    for to in both {
        assert_eq!(network.connect(to, 0), through(to));
    }
}

#[test]
fn connections_that_are_open_stay_where_they_are() {
    let Some(network) = Network::create() else {
        return;
    };
    for to in ["10.1.0.7", "fd01::7"] {
        let (near, far) = network.pair(to);
        let wanted = wanted(&network, &["10.1.0.0/16", "fd01::/16"]);
        let redirect = create(&network, &wanted).unwrap();
        let exchange = |byte: u8| {
            for (mut from, mut to) in [(&near, &far), (&far, &near)] {
                from.write_all(&[byte]).unwrap();
                let mut received = [0];
                to.read_exact(&mut received).unwrap();
                assert_eq!(received, [byte]);
            }
        };
        exchange(1);
        assert_eq!(network.connect(to, 0), captured(to));
        exchange(2);
        drop(redirect);
        exchange(3);
    }
}

#[test]
fn addresses_of_this_host_are_not_captured() {
    let Some(network) = Network::create() else {
        return;
    };
    let wanted = wanted(&network, &["10.0.0.0/8", "fd00::/8"]);
    let _redirect = create(&network, &wanted).unwrap();
    for to in ["10.9.0.1", "fd09::1"] {
        assert_eq!(network.connect(to, 0), through(to));
    }
    for to in ["10.9.0.2", "fd09::2"] {
        assert_eq!(network.connect(to, 0), captured(to));
    }
}

#[test]
fn what_is_wanted_changes_in_place() {
    let Some(network) = Network::create() else {
        return;
    };
    let sets: [&[&str]; 6] = [
        &["10.1.0.0/16"],
        // Overlapping and adjoining prefixes.
        &["10.1.0.0/17", "10.2.0.0/16", "10.1.0.7/32", "fd02::/15"],
        &["10.0.0.0/14", "10.1.0.0/16", "fd01::7/128"],
        &["10.2.0.0/15", "fd01::/16", "fd02::/16"],
        &[],
        &["10.3.0.0/16", "fd03::7/128"],
    ];
    let mut redirect = create(&network, &wanted(&network, &["fd01::/16"])).unwrap();
    for set in sets {
        let wanted = wanted(&network, set);
        assert!(redirect.apply(&wanted).unwrap(), "{set:?}");
        assert!(!redirect.apply(&wanted).unwrap(), "{set:?}");
        let mut reversed = wanted.clone();
        reversed.prefixes.reverse();
        assert!(!redirect.apply(&reversed).unwrap(), "{set:?}");
        for n in 1..=3 {
            for to in [format!("10.{n}.0.7"), format!("fd0{n}::7")] {
                let address: std::net::IpAddr = to.parse().unwrap();
                let expected = match prefixes(set).iter().any(|one| one.contains(&address)) {
                    true => captured(&to),
                    false => through(&to),
                };
                assert_eq!(network.connect(&to, 0), expected, "{set:?}");
            }
        }
    }
    // A change of the rules.
    let other = Wanted::new(network.port(), MARK + 1).with_prefixes(prefixes(&["10.3.0.0/16"]));
    assert!(redirect.apply(&other).unwrap());
    assert_eq!(network.connect("10.3.0.7", MARK), captured("10.3.0.7"));
    assert_eq!(network.connect("10.3.0.7", MARK + 1), through("10.3.0.7"));
    // Connections of this user, which is root.
    assert!(redirect.apply(&other.with_exempt_users([7, 0])).unwrap());
    assert_eq!(network.connect("10.3.0.7", MARK), through("10.3.0.7"));
}

#[test]
fn no_connection_escapes_while_the_table_changes() {
    let Some(network) = Network::create() else {
        return;
    };
    let all = [
        wanted(&network, &["10.1.0.0/16"]),
        wanted(&network, &["10.1.0.0/16", "10.2.0.0/16", "fd01::/16"]),
        // Merged with the prefix that stays.
        wanted(&network, &["10.1.0.0/16", "10.0.0.0/16"]),
        wanted(&network, &["10.1.0.0/16"]).with_exempt_users([7]),
    ];
    let mut redirect = create(&network, &all[0]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            let mut count = 0;
            for wanted in all[1..].iter().cycle() {
                assert!(redirect.apply(wanted).unwrap());
                count += 1;
                if done.load(Ordering::Relaxed) {
                    return count;
                }
            }
            count
        });
        for _ in 0..200 {
            assert_eq!(network.connect("10.1.0.7", 0), captured("10.1.0.7"));
        }
        done.store(true, Ordering::Relaxed);
        assert_ne!(changes.join().unwrap(), 0);
    });
}

#[test]
fn a_refused_change_changes_nothing() {
    let Some(network) = Network::create() else {
        return;
    };
    let mut redirect = create(&network, &wanted(&network, &["10.1.0.0/16"])).unwrap();
    let refused = wanted(&network, &["10.2.0.0/16", "0.0.0.0/0"]);
    let error = redirect.apply(&refused).unwrap_err().to_string();
    let expected = "cannot capture 0.0.0.0/0: it covers the loopback addresses, choose a longer \
                    prefix";
    assert_eq!(error, expected);
    assert_eq!(network.connect("10.1.0.7", 0), captured("10.1.0.7"));
    assert_eq!(network.connect("10.2.0.7", 0), through("10.2.0.7"));
}

#[test]
fn a_table_has_one_owner() {
    let Some(network) = Network::create() else {
        return;
    };
    let wanted = wanted(&network, &["10.1.0.0/16"]);
    let redirect = create(&network, &wanted).unwrap();
    let error = create(&network, &wanted).unwrap_err().to_string();
    let expected = "another process captures connections with the table hawser-test: another shim \
                    runs here, take it down first";
    assert_eq!(error, expected);
    assert_eq!(network.connect("10.1.0.7", 0), captured("10.1.0.7"));
    // Another table is not affected, nor the same name in another namespace.
    let other = || Redirect::create("hawser-other", &Wanted::new(1, MARK));
    let _other = network.host.run(other).unwrap().unwrap();
    let elsewhere = || Redirect::create(TABLE, &wanted);
    let _elsewhere = network.server.run(elsewhere).unwrap().unwrap();
    drop(redirect);
    let error = network.host.run(other).unwrap().unwrap_err();
    assert!(matches!(error, RedirectError::Owned(_)), "{error}");
    let again = create(&network, &wanted).unwrap();
    drop(again);
    assert_eq!(network.connect("10.1.0.7", 0), through("10.1.0.7"));
}

#[test]
fn many_prefixes_are_one_transaction() {
    let Some(network) = Network::create() else {
        return;
    };
    let every_other = |n: u32| {
        let address = std::net::Ipv4Addr::from(0x0a01_0000 + 2 * n);
        IpNet::from(std::net::IpAddr::from(address))
    };
    let mut wanted = wanted(&network, &[]).with_prefixes((0..20_000).map(every_other));
    let mut redirect = create(&network, &wanted).unwrap();
    assert_eq!(network.connect("10.1.0.8", 0), captured("10.1.0.8"));
    assert_eq!(network.connect("10.1.0.7", 0), through("10.1.0.7"));
    wanted.prefixes.truncate(4);
    wanted.prefixes.push("10.1.0.7/32".parse().unwrap());
    assert!(redirect.apply(&wanted).unwrap());
    assert_eq!(network.connect("10.1.0.7", 0), captured("10.1.0.7"));
}

#[test]
fn without_privileges_the_error_says_so() {
    let Some(network) = Network::create() else {
        return;
    };
    let wanted = wanted(&network, &["10.1.0.0/16"]);
    let denied = || {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let none = CapabilitySet::empty();
        // Of this thread only.
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        set_capabilities(None, sets).unwrap();
        Redirect::create(TABLE, &wanted).unwrap_err()
    };
    let error = network.host.run(denied).unwrap();
    assert!(matches!(error, RedirectError::Denied), "{error:?}");
}
