//! Changes as netlink requests.

use std::collections::BTreeMap;

use hawser_kernel::netlink::RawRequest;

use super::attribute::Writer;
use super::u32_filter::{class, handle, is_root_table, write_node, write_table};
use crate::change::Change;
use crate::htb;
use crate::layout::{Version, version};
use crate::state::{DEFAULT_CLASS, Host, KernelState, Point, ROOT_TABLE, Spot, Then};

/// Message types of rtnetlink(7).
const NEW_LINK: u16 = 16;
const DEL_LINK: u16 = 17;
const SET_LINK: u16 = 19;
const NEW_QDISC: u16 = 36;
const DEL_QDISC: u16 = 37;
const NEW_CLASS: u16 = 40;
const DEL_CLASS: u16 = 41;
const NEW_FILTER: u16 = 44;
const DEL_FILTER: u16 = 45;

/// Flags of netlink(7).
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

/// Attributes of devices (`linux/if_link.h`).
const IFLA_IFNAME: u16 = 3;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_INFO_KIND: u16 = 1;
const IFF_UP: u32 = 1;

/// Attributes of traffic control (`linux/rtnetlink.h`).
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;

/// `TC_H_ROOT`, `TC_H_INGRESS`, and the parent of filters for what a device receives.
const AT_ROOT: u32 = 0xffff_ffff;
const AT_INGRESS: u32 = 0xffff_fff1;
const INGRESS_FILTERS: u32 = 0xffff_fff2;
const INGRESS_HANDLE: u32 = 0xffff_0000;

/// Protocol numbers of Ethernet.
const ETH_IPV4: u16 = 0x0800;
const ETH_IPV6: u16 = 0x86dd;

/// Packets that an IFB may take in before it has processed those before; its own default is 32.
pub(crate) const IFB_QUEUE: u32 = 1000;

/// With what the aliases of IFBs begin.
pub(crate) const ALIAS: &str = "hawser limits of ";

/// The protocol of the packets that hawser's filters of a preference look at, in network order.
pub(crate) fn protocol(preference: u16) -> u16 {
    let protocol = match version(preference) {
        Version::V4 => ETH_IPV4,
        Version::V6 => ETH_IPV6,
    };
    protocol.to_be()
}

/// The kernel's numbers of a device and its IFBs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Indices {
    pub device: u32,
    pub ifbs: BTreeMap<u8, u32>,
}

impl Indices {
    pub fn of(&self, host: Host) -> u32 {
        match host {
            Host::Device => self.device,
            // The kernel has no device 0, and refuses requests for it.
            Host::Ifb(ifb) => self.ifbs.get(&ifb).copied().unwrap_or_default(),
        }
    }

    fn point(&self, point: Point) -> (u32, u32) {
        match point {
            Point::Ingress => (self.device, INGRESS_FILTERS),
            Point::Root(host) => (self.of(host), class(0)),
        }
    }
}

/// The name of an IFB of the device with the number `index`.
pub(crate) fn ifb_name(index: u32, ifb: u8) -> String {
    format!("hawser{index}-{ifb}")
}

/// Device and number of an IFB with this name; `None` for names of others.
pub(crate) fn parse_ifb_name(name: &str) -> Option<(u32, u8)> {
    let (index, ifb) = name.strip_prefix("hawser")?.split_once('-')?;
    let (index, ifb) = (index.parse().ok()?, ifb.parse().ok()?);
    (ifb_name(index, ifb) == name).then_some((index, ifb))
}

/// The alias of an IFB: which device it is for, and whether the device's ingress queueing discipline is
/// hawser's, too.
pub(crate) fn ifb_alias(device: &str, made_ingress: bool) -> String {
    let ingress = match made_ingress {
        true => ", with its ingress qdisc",
        false => "",
    };
    format!("{ALIAS}{device}{ingress}")
}

/// The request for a change. `before` is the state before it, from which the numbers of tables that the
/// kernel has chosen are known.
pub(crate) fn request(
    change: &Change,
    device: &str,
    indices: &Indices,
    before: &KernelState,
) -> RawRequest {
    let new = NLM_F_CREATE | NLM_F_EXCL;
    match *change {
        Change::AddIfb(ifb) => {
            let mut to = Writer::after(link(0, 0));
            to.text(IFLA_IFNAME, &ifb_name(indices.device, ifb));
            // Shows until it has its alias that hawser created it.
            to.word(IFLA_TXQLEN, IFB_QUEUE);
            to.word(IFLA_NUM_TX_QUEUES, 1);
            to.word(IFLA_NUM_RX_QUEUES, 1);
            to.nested(IFLA_LINKINFO, |info| info.text(IFLA_INFO_KIND, "ifb"));
            raw(NEW_LINK, new, to)
        }
        Change::PrepareIfb { ifb, made_ingress } => {
            let mut to = Writer::after(link(indices.of(Host::Ifb(ifb)), IFF_UP));
            to.word(IFLA_TXQLEN, IFB_QUEUE);
            to.bytes(IFLA_IFALIAS, ifb_alias(device, made_ingress).as_bytes());
            raw(SET_LINK, 0, to)
        }
        Change::DelIfb(ifb) => remove_link(indices.of(Host::Ifb(ifb))),
        Change::DelForeignRoot(host) => {
            let head = traffic(indices.of(host), 0, AT_ROOT, 0);
            raw(DEL_QDISC, 0, Writer::after(head))
        }
        Change::AddRoot(host) => {
            let head = traffic(indices.of(host), class(0), AT_ROOT, 0);
            let mut to = kind(head, "htb");
            to.nested(TCA_OPTIONS, |to| htb::write_discipline(to, DEFAULT_CLASS));
            raw(NEW_QDISC, new, to)
        }
        Change::DelRoot(host) => {
            let head = traffic(indices.of(host), class(0), AT_ROOT, 0);
            raw(DEL_QDISC, 0, Writer::after(head))
        }
        Change::PutClass {
            host,
            minor,
            class: ref parameters,
            new: is_new,
            ..
        } => {
            let head = traffic(indices.of(host), class(minor), class(0), 0);
            let mut to = kind(head, "htb");
            to.nested(TCA_OPTIONS, |to| parameters.write(to));
            raw(NEW_CLASS, if is_new { new } else { 0 }, to)
        }
        Change::DelClass { host, minor } => {
            let head = traffic(indices.of(host), class(minor), class(0), 0);
            raw(DEL_CLASS, 0, Writer::after(head))
        }
        Change::PutQueue { host, minor, bytes } => {
            let head = traffic(indices.of(host), queue(minor), class(minor), 0);
            let mut to = kind(head, "bfifo");
            // struct tc_fifo_qopt: one number.
            to.word(TCA_OPTIONS, bytes);
            raw(NEW_QDISC, NLM_F_CREATE | NLM_F_REPLACE, to)
        }
        Change::AddIngress => {
            let head = traffic(indices.device, INGRESS_HANDLE, AT_INGRESS, 0);
            raw(NEW_QDISC, new, kind(head, "ingress"))
        }
        Change::DelIngress => {
            let head = traffic(indices.device, INGRESS_HANDLE, AT_INGRESS, 0);
            raw(DEL_QDISC, 0, Writer::after(head))
        }
        Change::AddTable {
            point,
            preference,
            table,
        } => {
            let number = handle(u32::from(table), 0, 0);
            let mut to = filter(indices, point, preference, number);
            to.nested(TCA_OPTIONS, write_table);
            raw(NEW_FILTER, new, to)
        }
        Change::DelTable {
            point,
            preference,
            table,
        } => {
            let number = handle(u32::from(table), 0, 0);
            raw(DEL_FILTER, 0, filter(indices, point, preference, number))
        }
        Change::PutNode {
            point,
            spot,
            number,
            filter: ref put,
            new: is_new,
        } => {
            let number = match (spot.table, is_new) {
                // The kernel completes it with the number of the table.
                (ROOT_TABLE, true) => u32::from(number),
                _ => node(before, point, spot, number),
            };
            let mut to = filter(indices, point, spot.preference, number);
            let index = match put.then {
                Then::Redirect(ifb) => indices.of(Host::Ifb(ifb)),
                _ => 0,
            };
            to.nested(TCA_OPTIONS, |to| {
                write_node(to, spot, &put.keys, put.then, index);
            });
            let flags = if is_new { new } else { NLM_F_CREATE };
            raw(NEW_FILTER, flags, to)
        }
        Change::DelNode {
            point,
            spot,
            number,
        } => {
            let number = node(before, point, spot, number);
            raw(
                DEL_FILTER,
                0,
                filter(indices, point, spot.preference, number),
            )
        }
        Change::DelPreference { point, preference } => {
            raw(DEL_FILTER, 0, filter(indices, point, preference, 0))
        }
    }
}

/// The request that removes a device.
pub(crate) fn remove_link(index: u32) -> RawRequest {
    raw(DEL_LINK, 0, Writer::after(link(index, 0)))
}

/// The kernel's number of a filter.
fn node(before: &KernelState, point: Point, spot: Spot, number: u16) -> u32 {
    let table = match spot.table {
        ROOT_TABLE => {
            let filters = before.filters(point);
            let root = filters.and_then(|all| all.root_tables.get(&spot.preference));
            root.copied().filter(|&table| is_root_table(table))
        }
        table => Some(u32::from(table)),
    };
    handle(table.unwrap_or_default(), spot.bucket, number)
}

/// The handle of a class's queue.
pub(crate) fn queue(minor: u16) -> u32 {
    u32::from(minor) << 16
}

fn raw(kind: u16, flags: u16, payload: Writer) -> RawRequest {
    RawRequest {
        kind,
        flags,
        payload: payload.into_bytes(),
    }
}

fn kind(head: Vec<u8>, kind: &str) -> Writer {
    let mut to = Writer::after(head);
    to.text(TCA_KIND, kind);
    to
}

fn filter(indices: &Indices, point: Point, preference: u16, handle: u32) -> Writer {
    let (index, parent) = indices.point(point);
    let info = (u32::from(preference) << 16) | u32::from(protocol(preference));
    kind(traffic(index, handle, parent, info), "u32")
}

/// `struct ifinfomsg` of rtnetlink(7), with flags to set.
fn link(index: u32, flags: u32) -> Vec<u8> {
    words(&[0, index, flags, flags])
}

/// `struct tcmsg` of rtnetlink(7).
pub(crate) fn traffic(index: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    words(&[0, index, handle, parent, info])
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::IFBS;

    #[test]
    fn names_of_ifbs_are_recognised() {
        assert_eq!(parse_ifb_name(&ifb_name(12, 40)), Some((12, 40)));
        for name in [
            "hawser-12",
            "hawser-1-x",
            "hawser-01-2",
            "eth0",
            "hawser-1-300",
        ] {
            assert_eq!(parse_ifb_name(name), None, "{name}");
        }
        // IFNAMSIZ with the final zero byte.
        assert!(ifb_name(99_999, 2 * IFBS).len() < 16);
    }
}
