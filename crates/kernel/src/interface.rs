//! Network interfaces and their addresses, by rtnetlink(7).

use std::net::{IpAddr, Ipv6Addr};
use std::{fs, io};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::{Netlink, NetlinkError};

/// The IPv6 routes of the calling thread's network namespace, of all tables.
const ROUTES6: &str = "/proc/thread-self/net/ipv6_route";
/// `RTF_LOCAL`: packets over the route are for this host.
const LOCAL: u32 = 0x8000_0000;

/// Index of the loopback device in every network namespace.
pub const LOOPBACK: u32 = 1;

/// An interface, as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Number in its network namespace.
    pub index: u32,
    /// Whether it is set up (`IFF_UP` of netdevice(7)).
    pub up: bool,
    /// Longest packet in bytes, without the header of its link layer.
    pub mtu: u32,
    /// Length in packets of the transmit queue.
    pub queue_length: u32,
}

impl Netlink {
    /// The interface with this name; `None` if there is none in this network namespace.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn interface(&mut self, name: &str) -> Result<Option<Interface>, NetlinkError> {
        // For invalid names the kernel's error is less clear.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Ok(None);
        }
        let mut question = LinkMessage::default();
        question.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        let answer = match self.request(RouteNetlinkMessage::GetLink(question), 0) {
            Err(error) if error.refusal() == Some(libc::ENODEV) => return Ok(None),
            other => other?,
        };
        let [RouteNetlinkMessage::NewLink(link)] = &answer[..] else {
            let error = format!("expected one interface {name}");
            return Err(NetlinkError::Invalid(error));
        };
        let mut interface = Interface {
            index: link.header.index,
            up: link.header.flags.contains(LinkFlags::Up),
            mtu: 0,
            queue_length: 0,
        };
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
                LinkAttribute::TxQueueLen(length) => interface.queue_length = *length,
                _ => {}
            }
        }
        match interface.mtu {
            0 => Err(NetlinkError::Invalid(format!("no MTU of {name}"))),
            _ => Ok(Some(interface)),
        }
    }

    /// Sets an interface up or down. One that goes down keeps its IPv4 addresses and loses its IPv6
    /// addresses, neighbours and routes.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when there is no such interface.
    pub fn set_up(&mut self, index: u32, up: bool) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags.set(LinkFlags::Up, up);
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sets the MTU of an interface, in bytes.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, when there is no such interface, or its driver refuses the MTU.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        self.set_attribute(index, LinkAttribute::Mtu(mtu))
    }

    /// Sets the length of an interface's transmit queue, in packets.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when there is no such interface.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> Result<(), NetlinkError> {
        self.set_attribute(index, LinkAttribute::TxQueueLen(packets))
    }

    fn set_attribute(&mut self, index: u32, value: LinkAttribute) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![value];
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Adds an address to an interface, and with it the route to its prefix of `prefix` bits. For an
    /// IPv6 address no duplicate is looked for on the link: programs can bind it at once, and the
    /// kernel accepts packets to it some time afterwards ([`is_local`]).
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when the interface does not exist or has the address (`EEXIST`).
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix;
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        if address.is_ipv6() {
            message.header.family = AddressFamily::Inet6;
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewAddress(message), flags)
    }

    /// Takes an address from an interface.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when the interface does not have it (`EADDRNOTAVAIL`).
    pub fn remove_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address)];
        self.change(RouteNetlinkMessage::DelAddress(message), 0)
    }

    /// Removes an interface; of a pair of devices (veth(4)) the other one, too.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, when there is no such interface (`ENODEV`), or it cannot be removed.
    pub fn remove_interface(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.change(RouteNetlinkMessage::DelLink(message), 0)
    }

    /// Sends a request that has no answer but its confirmation.
    pub(crate) fn change(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        self.request(request, flags)?;
        Ok(())
    }
}

/// Whether packets to `address` are for this host. The kernel adds that route in its own time after the
/// address, on a busy machine milliseconds later; until then packets take other routes, as that of the
/// address's prefix to the interface.
///
/// # Errors
/// When the routes cannot be read.
pub fn is_local(address: Ipv6Addr) -> io::Result<bool> {
    Ok(has_local_route(&fs::read_to_string(ROUTES6)?, address))
}

fn has_local_route(routes: &str, address: Ipv6Addr) -> bool {
    // The prefix of an address of 128 bits has a route to the same destination.
    let destination = format!("{:032x} 80 ", u128::from(address));
    let mut routes = routes.lines().filter(|line| line.starts_with(&destination));
    routes.any(|line| {
        let flags = line.split_whitespace().nth(8);
        let flags = flags.and_then(|flags| u32::from_str_radix(flags, 16).ok());
        flags.is_some_and(|flags| flags & LOCAL != 0)
    })
}

/// All addresses of this host, each with the number of the interface that has it.
///
/// # Errors
/// When the kernel does not answer.
pub fn addresses() -> Result<Vec<(u32, IpAddr)>, NetlinkError> {
    let mut netlink = Netlink::open()?;
    let all = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let answers = netlink.request(all, NLM_F_DUMP)?;
    let addresses = answers.iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewAddress(found) => Some((found.header.index, own(found)?)),
        _ => None,
    });
    Ok(addresses.collect())
}

/// The interface's address: the local end if it is a point-to-point interface.
fn own(message: &AddressMessage) -> Option<IpAddr> {
    let mut address = None;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => return Some(*ip),
            AddressAttribute::Address(ip) => address = Some(*ip),
            _ => {}
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::namespace::{NetNs, is_privileged};

    #[test]
    fn the_route_to_the_prefix_of_an_address_is_not_its_local_route() {
        let address: Ipv6Addr = "fd68:7773:7200::8".parse().unwrap();
        let none = "00000000000000000000000000000000";
        let route = |flags: &str| {
            let own = "fd687773720000000000000000000008";
            format!("{own} 80 {none} 00 {none} 00000100 00000001 00000000 {flags}  hawser0\n")
        };
        let (prefix, local) = (route("00000001"), route("80200001"));
        assert!(!has_local_route("", address));
        assert!(!has_local_route(&prefix, address));
        assert!(has_local_route(&(prefix + &local), address));
        assert!(!has_local_route(&local, Ipv6Addr::LOCALHOST));
    }

    #[test]
    fn the_loopback_interface_has_its_address() {
        let all = addresses().unwrap();
        let loopback = (1, IpAddr::from(Ipv4Addr::LOCALHOST));
        // A sandbox may run tests with the loopback interface down; it then has no address.
        assert!(all.is_empty() || all.contains(&loopback), "{all:?}");
    }

    #[test]
    fn interfaces_are_found_by_name() {
        let mut netlink = Netlink::open().unwrap();
        assert_eq!(netlink.interface("lo").unwrap().unwrap().index, LOOPBACK);
        for name in ["", "hawser-no-such", "a name that is far too long"] {
            assert_eq!(netlink.interface(name).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn an_interface_is_configured() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let inside = || {
            let mut netlink = Netlink::open().unwrap();
            assert!(!netlink.interface("lo").unwrap().unwrap().up);
            netlink.set_up(LOOPBACK, true).unwrap();
            netlink.set_mtu(LOOPBACK, 1400).unwrap();
            netlink.set_queue_length(LOOPBACK, 77).unwrap();
            let expected = Interface {
                index: LOOPBACK,
                up: true,
                mtu: 1400,
                queue_length: 77,
            };
            assert_eq!(netlink.interface("lo").unwrap(), Some(expected));
            let wanted: [(IpAddr, u8); 2] = [
                ("10.9.0.1".parse().unwrap(), 24),
                ("fd09::1".parse().unwrap(), 112),
            ];
            for (address, prefix) in wanted {
                netlink.add_address(LOOPBACK, address, prefix).unwrap();
                let all = addresses().unwrap();
                assert!(all.contains(&(LOOPBACK, address)), "{all:?}");
                // Without duplicate address detection it can be bound at once.
                std::net::UdpSocket::bind((address, 0)).unwrap();
                let again = netlink.add_address(LOOPBACK, address, prefix);
                assert_eq!(again.unwrap_err().refusal(), Some(libc::EEXIST));
            }
            netlink.set_up(LOOPBACK, false).unwrap();
            assert!(!netlink.interface("lo").unwrap().unwrap().up);
            assert!(netlink.set_up(99, true).is_err());
        };
        NetNs::create().unwrap().run(inside).unwrap();
    }
}
