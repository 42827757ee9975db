//! The device to which programs' packets to captured prefixes are routed.
//!
//! It gives programs a route to these destinations at all, without which the kernel refuses to
//! connect before any rule of nf_tables applies. What arrives at it is not TCP.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use hawser_capture::{Device, Routes, RoutesError, Scope, Target};
use hawser_kernel::interface;
use hawser_kernel::netlink::{Netlink, NetlinkError};
use hawser_tun::{Queue, Tun};
use ipnet::IpNet;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType};

use super::error::HolderError;
use super::network::wait_for_address;
use crate::mark::MARK;

/// The name of the device; `%d` is the first free number.
pub(super) const NAME: &str = "hawser%d";
/// The network namespace of the calling thread.
const OWN_NET: &str = "/proc/thread-self/ns/net";
/// The device's MTU in bytes: the least that IPv6 has (RFC 8200, 5), which most paths take.
pub(crate) const MTU: u16 = 1280;
/// Packets that may wait for the carrier.
pub(super) const QUEUE: u32 = 1000;

/// The numbers of our routing tables: "hw" in the upper half, the device's index in the lower.
const TABLES: u32 = 0x6877_0000;
/// Packets to captured prefixes that are not TCP go to the device, whatever other routes there are: the
/// rules, three, are before that of the main table (32766).
const FIRST_RULE: (u32, u32) = (0, 26_743);
/// Captured prefixes go to the device if there is no other route: the rules are behind that of the
/// default table (32767). Added to the number of the first table.
const LAST_RULE: (u32, u32) = (0x8000, 32_800);

/// Source addresses on hosts that have none: of IPv4 (RFC 7600, 4.8), and a local one of IPv6.
pub(super) const SOURCES: [(IpAddr, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8)), 32),
    (
        IpAddr::V6(Ipv6Addr::new(0xfd68, 0x7773, 0x7200, 0, 0, 0, 0, 8)),
        128,
    ),
];

/// The device, which vanishes when it is dropped, with all of its routes, or with the process, but
/// for the rules.
pub(super) struct CaptureDevice {
    /// The descriptor of its queue; carriers get copies.
    queue: OwnedFd,
    index: u32,
    name: String,
    scope: Scope,
}

impl CaptureDevice {
    /// Creates the device in the calling thread's network namespace, without routes.
    pub(super) fn create(scope: Scope) -> Result<Self, HolderError> {
        remove_leftovers()?;
        let tun = Tun::create(NAME, 1)?;
        let (index, name) = (tun.index, tun.name.clone());
        let configured = || -> Result<(), NetlinkError> {
            let mut netlink = Netlink::open()?;
            netlink.set_mtu(index, MTU.into())?;
            netlink.set_queue_length(index, QUEUE)?;
            netlink.set_up(index, true)
        };
        let failed = HolderError::system("set up the TUN device for captured packets");
        configured().map_err(|error| failed(error.into()))?;
        let queue = tun.queues.into_iter().next();
        let queue = queue.ok_or_else(|| failed(std::io::Error::other("it has no queue")))?;
        Ok(Self {
            queue: queue.into(),
            index,
            name,
            scope,
        })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A copy of the queue.
    pub(super) fn queue(&self) -> Result<Queue, HolderError> {
        let copy = self.queue.try_clone();
        let copy = copy.map_err(HolderError::system("copy the TUN device's queue"))?;
        Ok(copy.into())
    }

    /// Leads packets to `routed` to the device, and those to the rest of `captured` if this host has
    /// no other route to it. If not all programs are captured, all others keep their routes, and
    /// unless this host `forwards`, packets of other hosts keep theirs.
    pub(super) fn route(
        &self,
        captured: &[IpNet],
        routed: Vec<IpNet>,
        forwards: bool,
    ) -> Result<(), HolderError> {
        self.add_sources(captured)?;
        let first = match self.scope {
            Scope::Host => routed,
            Scope::Group { .. } | Scope::Class(_) => Vec::new(),
        };
        // Connections are redirected, and those that are open already keep their route.
        let first = Device::new(self.index, first).without_tcp();
        let last = Device::new(self.index, captured.to_vec());
        for ((table, priority), device) in [(FIRST_RULE, first), (LAST_RULE, last)] {
            let target = Target::Device(device.own_only(!forwards));
            Routes::new(self.table(table), priority, MARK, target).apply()?;
        }
        Ok(())
    }

    fn table(&self, offset: u32) -> u32 {
        TABLES + offset + self.index % LAST_RULE.0
    }

    /// Gives the device an address of each family that `prefixes` have, if this host has none: the
    /// kernel finds no source address otherwise.
    fn add_sources(&self, prefixes: &[IpNet]) -> Result<(), HolderError> {
        let failed = HolderError::system("add an address to the TUN device");
        let addresses = interface::addresses().map_err(|error| failed(error.into()))?;
        for (source, length) in SOURCES {
            let is_needed = prefixes
                .iter()
                .any(|prefix| prefix.addr().is_ipv4() == source.is_ipv4());
            let has_one = addresses
                .iter()
                .any(|(_, ip)| ip.is_ipv4() == source.is_ipv4() && is_source(*ip));
            if is_needed && !has_one {
                let added =
                    Netlink::open().and_then(|mut one| one.add_address(self.index, source, length));
                added.map_err(|error| failed(error.into()))?;
                if let IpAddr::V6(source) = source {
                    // Until then answers to it do not arrive, and connections to what is mapped fail.
                    wait_for_address(source).map_err(&failed)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for CaptureDevice {
    fn drop(&mut self) {
        for (table, _) in [FIRST_RULE, LAST_RULE] {
            if let Err(error) = Routes::reset(self.table(table)) {
                tracing::error!("{error}");
            }
        }
    }
}

/// Whether packets to other hosts may have the address as their source.
fn is_source(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    }
}

/// Removes the rules in the calling thread's network namespace that killed holders left. The routes
/// vanish with their device.
///
/// # Errors
/// [`RoutesError`].
pub fn remove_leftovers() -> Result<(), RoutesError> {
    let failed = |error: NetlinkError| RoutesError::Netlink(error.into());
    let mut netlink = Netlink::open().map_err(failed)?;
    let tables = netlink.rules().map_err(failed)?.into_iter();
    let tables: BTreeSet<u32> = tables
        .map(|rule| rule.table)
        .filter(|table| table & 0xffff_0000 == TABLES)
        .collect();
    for table in tables {
        // Routes are there before their rule. Those of a holder that was killed this moment may still
        // be there.
        let routes = netlink.routes(table).map_err(failed)?;
        if !routes.iter().any(|route| is_held(route.device)) {
            Routes::reset(table)?;
        }
    }
    Ok(())
}

/// Whether a process in this network namespace has a queue of the TUN device with this index. What
/// cannot be found out is taken for so.
fn is_held(index: u32) -> bool {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
    let Ok(socket) = socket else { return true };
    let Ok(name) = index_to_name(&socket, index) else {
        return false;
    };
    let (Ok(own), Ok(_)) = (fs::read_link(OWN_NET), fs::read_dir("/proc")) else {
        return true;
    };
    let line = format!("iff:\t{name}");
    let has_queue = |process: &Path| {
        entries(&process.join("fdinfo")).any(|queue| {
            let info = fs::read_to_string(queue);
            info.is_ok_and(|info| info.lines().any(|one| one == line))
        })
    };
    // Another namespace may have a device of that name.
    let is_here = |process: &Path| {
        let mut threads = entries(&process.join("task"));
        threads.any(|thread| fs::read_link(thread.join("ns/net")).is_ok_and(|net| net == own))
    };
    entries(Path::new("/proc")).any(|process| has_queue(&process) && is_here(&process))
}

/// What is in a folder; nothing if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::UdpSocket;

    use hawser_kernel::namespace::{NetNs, is_privileged};

    use super::*;

    const CAPTURED: [&str; 2] = ["10.99.0.0/16", "fd99::/16"];

    fn prefixes() -> Vec<IpNet> {
        CAPTURED.map(|prefix| prefix.parse().unwrap()).to_vec()
    }

    fn rules() -> usize {
        let rules = Netlink::open().unwrap().rules().unwrap();
        let ours = |table: u32| table & 0xffff_0000 == TABLES;
        rules.iter().filter(|rule| ours(rule.table)).count()
    }

    /// The source address of packets to `to`, if there is a route.
    fn source(to: &str) -> Option<String> {
        let any = if to.starts_with('[') {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(to).ok()?;
        Some(socket.local_addr().unwrap().ip().to_string())
    }

    fn inside(job: impl FnOnce() + Send) {
        match is_privileged() {
            true => NetNs::create().unwrap().run(job).unwrap(),
            false => eprintln!("skipped: needs root"),
        }
    }

    #[test]
    fn programs_have_a_route_until_the_device_is_dropped() {
        inside(|| {
            let device = CaptureDevice::create(Scope::Host).unwrap();
            assert_eq!(source("10.99.0.1:9"), None);
            device.route(&prefixes(), prefixes(), false).unwrap();
            assert_eq!(source("10.99.0.1:9").unwrap(), SOURCES[0].0.to_string());
            assert_eq!(source("[fd99::1]:9").unwrap(), SOURCES[1].0.to_string());
            assert_eq!(source("10.98.0.1:9"), None);
            // Another device does not take the rules of the first for a killed holder's.
            let other = CaptureDevice::create(Scope::Class(7)).unwrap();
            assert_ne!(source("10.99.0.1:9"), None);
            drop(other);
            device.route(&[], Vec::new(), false).unwrap();
            assert_eq!((source("10.99.0.1:9"), rules()), (None, 0));
            device.route(&prefixes(), Vec::new(), false).unwrap();
            assert_ne!(source("10.99.0.1:9"), None);
            drop(device);
            assert_eq!((source("10.99.0.1:9"), rules()), (None, 0));
        });
    }

    #[test]
    fn rules_of_a_killed_holder_are_removed() {
        inside(|| {
            let mut device = CaptureDevice::create(Scope::Host).unwrap();
            device.route(&prefixes(), prefixes(), false).unwrap();
            // As the kernel does it with the process.
            device.queue = File::open("/dev/null").unwrap().into();
            std::mem::forget(device);
            assert_eq!((source("10.99.0.1:9"), rules()), (None, 14));
            remove_leftovers().unwrap();
            assert_eq!(rules(), 0);
        });
    }
}
