//! Tests in processes of their own: what is left of one that is killed, and what a user namespace
//! allows.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::netlink::Netlink;
use ipnet::IpNet;

use super::network::{Network, captured, is_local, through};
use super::process;
use crate::{Device, Redirect, Routes, Target, Wanted, original_destination};

const MARK: u32 = 0x4857;
const LISTENER: &str = "HAWSER_CAPTURE_TEST_PORT";

fn capture(port: u16, prefix: &str) -> Wanted {
    Wanted::new(port, MARK).with_prefixes([prefix.parse().unwrap()])
}

#[test]
fn captures_when_started_inside() {
    if process::is_inside() {
        let port = std::env::var(LISTENER).unwrap().parse().unwrap();
        let _redirect = Redirect::create("hawser-test", &capture(port, "10.1.0.0/16")).unwrap();
        println!("captured");
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
}

#[test]
fn nothing_is_left_of_a_killed_process() {
    let Some(network) = Network::create() else {
        return;
    };
    let port = network.port();
    let other = || Redirect::create("hawser-other", &capture(port, "10.2.0.0/16")).unwrap();
    let _other = network.host.run(other).unwrap();
    let mut command = process::command("tests::life::captures_when_started_inside");
    command.env(LISTENER, port.to_string());
    let mut child = network.host.run(|| command.spawn()).unwrap().unwrap();
    process::read_until(&mut child, "captured");
    assert_eq!(network.connect("10.1.0.7", 0), captured("10.1.0.7"));
    assert_eq!(network.connect("10.2.0.7", 0), captured("10.2.0.7"));
    // By SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(network.connect("10.1.0.7", 0), through("10.1.0.7"));
    assert_eq!(network.connect("10.2.0.7", 0), captured("10.2.0.7"));
}

#[test]
fn a_user_namespace_suffices() {
    if process::is_inside() {
        return inside();
    }
    let isolated = ["--user", "--map-root-user", "--net"];
    let allowed = Command::new("unshare").args(isolated).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: needs user namespaces");
        return;
    }
    let test = process::command("tests::life::a_user_namespace_suffices");
    let mut command = Command::new("unshare");
    command.args(isolated).arg(test.get_program());
    command.args(test.get_args());
    let variables = test.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{failure}");
    assert!(printed.contains("1 passed"), "{printed}");
}

/// Captures connections of this process, whose network has no other device than `lo`.
fn inside() {
    let mut netlink = Netlink::open().unwrap();
    netlink.set_up(LOOPBACK, true).unwrap();
    let addresses = [("10.9.0.1", 32), ("fd09::1", 128)];
    let mut device = Device::new(
        LOOPBACK,
        ["10.1.0.0/16", "fd01::/16"].map(|one| one.parse::<IpNet>().unwrap()),
    );
    for (address, prefix) in addresses {
        let address = address.parse().unwrap();
        netlink.add_address(LOOPBACK, address, prefix).unwrap();
        while !is_local(&mut netlink, address) {
            std::thread::yield_now();
        }
        device = device.with_source(address);
    }
    let wanted = |port| Wanted::new(port, MARK).with_prefixes(device.prefixes.clone());
    let listeners = ["10.1.0.7:443", "[fd01::7]:443"].map(|to| {
        let to: SocketAddr = to.parse().unwrap();
        let listen = match to.is_ipv4() {
            true => "127.0.0.1:0",
            false => "[::1]:0",
        };
        (to, TcpListener::bind(listen).unwrap())
    });
    let routes = Routes::new(4857, 1000, MARK, Target::Device(device.clone()));
    assert!(routes.apply().unwrap());
    for (to, listener) in listeners {
        let port = listener.local_addr().unwrap().port();
        let redirect = Redirect::create("hawser-test", &wanted(port)).unwrap();
        let _stream = TcpStream::connect(to).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(original_destination(&accepted).unwrap(), Some(to));
        drop(redirect);
    }
    assert!(Routes::reset(4857).unwrap());
}
