//! The device: its number, addresses, size of packets and queues.

use std::net::IpAddr;

use hawser_kernel::netlink::{Netlink, NetlinkError};
use hawser_kernel::{ethtool, interface};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    LinkAttribute, LinkFlags, LinkHeader, LinkLayerType, LinkMessage,
};

use crate::error::XdpError;
use crate::frame::Mac;

/// A network device.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    pub name: String,
    /// The kernel's number of it.
    pub index: u32,
    pub mac: Mac,
    /// Bytes of the largest packet, Ethernet header excluded.
    pub mtu: u32,
    /// Receive queues.
    pub queues: u32,
    /// The name of its driver.
    pub driver: String,
}

impl Device {
    /// The device called `name`, which packets to `local` must arrive at.
    ///
    /// # Errors
    /// When there is none, it is no Ethernet device or down, or `local` is another device's.
    pub(crate) fn find(netlink: &mut Netlink, name: &str, local: IpAddr) -> Result<Self, XdpError> {
        let mut by_name = LinkMessage::default();
        by_name
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        let link = match link(netlink, by_name) {
            Ok(Some(link)) => link,
            // Names may also be too long, or have characters that are not allowed.
            Ok(None) | Err(NetlinkError::Refused(_)) => {
                return Err(XdpError::NoDevice(name.to_owned()));
            }
            Err(error) => return Err(error.into()),
        };
        let (mut mac, mut mtu) = (None, 0);
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Address(bytes) => mac = Mac::try_from(&bytes[..]).ok(),
                LinkAttribute::Mtu(bytes) => mtu = *bytes,
                _ => {}
            }
        }
        let LinkHeader {
            index,
            link_layer_type,
            flags,
            ..
        } = link.header;
        let (LinkLayerType::Ether, Some(mac)) = (link_layer_type, mac) else {
            return Err(XdpError::NotEthernet(name.to_owned()));
        };
        check_owner(netlink, (index, name), local)?;
        if !flags.contains(LinkFlags::Up) {
            return Err(XdpError::Down(name.to_owned()));
        }
        // Some drivers do not say. Packets of queues that are not known stay with the kernel.
        let queues = ethtool::receive_queues(name).unwrap_or(1);
        let driver = ethtool::driver(name).unwrap_or_else(|_| "unknown".to_owned());
        Ok(Self {
            name: name.to_owned(),
            index,
            mac,
            mtu,
            queues,
            driver,
        })
    }
}

/// Checks that packets to `local` may arrive at the device: the address is that of the device, or of
/// the loopback device, where hosts with several devices have theirs.
fn check_owner(netlink: &mut Netlink, device: (u32, &str), local: IpAddr) -> Result<(), XdpError> {
    let (index, name) = device;
    let all = interface::addresses()?;
    let owners: Vec<u32> = (all.iter().filter(|(_, ip)| *ip == local))
        .map(|(owner, _)| *owner)
        .collect();
    if owners.contains(&index) {
        return Ok(());
    }
    let mut owner = None;
    if let Some(index) = owners.first() {
        let mut by_index = LinkMessage::default();
        by_index.header.index = *index;
        if let Some(link) = link(netlink, by_index)? {
            let everywhere = link.header.link_layer_type == LinkLayerType::Loopback;
            if everywhere && !local.is_loopback() {
                return Ok(());
            }
            owner = link.attributes.into_iter().find_map(|one| match one {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            });
        }
    }
    Err(XdpError::OtherAddress {
        device: name.to_owned(),
        address: local,
        owner,
    })
}

fn link(netlink: &mut Netlink, wanted: LinkMessage) -> Result<Option<LinkMessage>, NetlinkError> {
    let answers = netlink.request(RouteNetlinkMessage::GetLink(wanted), 0)?;
    Ok(answers.into_iter().find_map(|answer| match answer {
        RouteNetlinkMessage::NewLink(link) => Some(link),
        _ => None,
    }))
}
