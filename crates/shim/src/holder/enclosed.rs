//! The device of a network namespace all of whose traffic is captured.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::netlink::Netlink;
use hawser_kernel::route::Route;
use hawser_tun::Tun;
use ipnet::IpNet;

use super::device::{MTU, NAME, QUEUE, SOURCES};
use super::error::HolderError;
use super::network::wait_for_address;

/// What no connection leaves the namespace for: "this" host and network, loopback and link-local
/// addresses, multicast and reserved ones (RFC 6890).
const INSIDE: [&str; 6] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "224.0.0.0/3",
    "::/16",
    "fe80::/10",
    "ff00::/8",
];
/// All destinations.
const ALL: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// The groups whose users may ping without further rights (icmp(7)), in the namespace of the thread
/// that opens it.
const PING_GROUPS: &str = "/proc/sys/net/ipv4/ping_group_range";

/// Makes a device to which all packets in the calling thread's namespace are routed. Returns its
/// queue.
pub(super) fn create_device() -> Result<OwnedFd, HolderError> {
    let tun = Tun::create(NAME, 1)?;
    let configured = || -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        netlink.set_up(LOOPBACK, true)?;
        netlink.set_mtu(tun.index, MTU.into())?;
        netlink.set_queue_length(tun.index, QUEUE)?;
        netlink.set_up(tun.index, true)?;
        for (source, length) in SOURCES {
            netlink.add_address(tun.index, source, length)?;
        }
        for net in nets(&ALL) {
            netlink.add_route(&Route::new(net, tun.index))?;
        }
        Ok(())
    };
    let failed = HolderError::system("set up the TUN device for captured packets");
    configured().map_err(&failed)?;
    for (source, _) in SOURCES {
        if let IpAddr::V6(source) = source {
            wait_for_address(source).map_err(&failed)?;
        }
    }
    let group = rustix::process::getegid().as_raw();
    if let Err(error) = fs::write(PING_GROUPS, format!("{group} {group}")) {
        tracing::warn!(%error, "programs that ping need further rights");
    }
    let queue = tun.queues.into_iter().next();
    let queue = queue.ok_or_else(|| failed(io::Error::other("it has no queue")))?;
    Ok(queue.into())
}

/// All destinations that are not inside the namespace.
pub(super) fn everything() -> Vec<IpNet> {
    let inside: Vec<IpNet> = nets(&INSIDE).collect();
    nets(&ALL).flat_map(|net| without(net, &inside)).collect()
}

/// The parts of `net` that are in none of `others`.
fn without(net: IpNet, others: &[IpNet]) -> Vec<IpNet> {
    if others.iter().any(|other| other.contains(&net)) {
        return Vec::new();
    }
    if !others.iter().any(|other| net.contains(other)) {
        return vec![net];
    }
    let halves = net.subnets(net.prefix_len() + 1).into_iter().flatten();
    halves.flat_map(|half| without(half, others)).collect()
}

fn nets<'a>(texts: &'a [&str]) -> impl Iterator<Item = IpNet> + 'a {
    texts.iter().filter_map(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_can_be_captured_but_what_is_inside() {
        let everything = everything();
        for net in &everything {
            hawser_capture::check(net).unwrap();
        }
        let is_captured = |ip: &str| {
            let ip: IpAddr = ip.parse().unwrap();
            everything.iter().any(|net| net.contains(&ip))
        };
        for ip in [
            "10.0.0.1",
            "1.1.1.1",
            "223.255.255.255",
            "fd00::1",
            "64:ff9b::1",
            "2001::1",
        ] {
            assert!(is_captured(ip), "{ip}");
        }
        for ip in [
            "127.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "ff02::1",
            "fe80::1",
        ] {
            assert!(!is_captured(ip), "{ip}");
        }
    }
}
