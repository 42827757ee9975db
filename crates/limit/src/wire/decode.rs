//! The kernel's lists as state.

use std::collections::{BTreeMap, BTreeSet};

use hawser_kernel::netlink::Netlink;

use super::attribute::{find, text, word};
use super::encode::{
    ALIAS, IFB_QUEUE, Indices, ifb_alias, parse_ifb_name, protocol, queue, traffic,
};
use super::u32_filter::{self, Found, FoundThen, class, is_root_table, parts};
use crate::error::{LimitError, reading};
use crate::htb::Class;
use crate::layout::{is_own, is_own_table};
use crate::limit::Counters;
use crate::state::{
    Filter, Filters, ForeignFilter, Host, Ifb, Ingress, KernelState, Point, ROOT_TABLE, Root,
    Shaper, Spot, Then,
};

/// Message types of rtnetlink(7).
const GET_LINK: u16 = 18;
const GET_QDISC: u16 = 38;
const GET_CLASS: u16 = 42;
const GET_FILTER: u16 = 46;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_INFO_KIND: u16 = 1;
const IFF_UP: u32 = 1;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// The 64-bit packet count, which the kernel sends only if it exceeds the 32 bits of the basic
/// counters.
const TCA_STATS_PKT64: u16 = 8;

const AT_ROOT: u32 = 0xffff_ffff;
const AT_INGRESS: u32 = 0xffff_fff1;
const INGRESS_FILTERS: u32 = 0xffff_fff2;

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub index: u32,
    pub name: String,
    pub mtu: u32,
    pub is_up: bool,
    pub alias: String,
    /// Its type, as `ip link add` takes it; empty for a physical one.
    pub kind: String,
    /// Most packets that wait to be sent.
    pub queue: u32,
}

impl Link {
    /// For an IFB that hawser created: the device that it is for, and its number there. Others may have
    /// given such a name to a device of theirs. An IFB whose creation was interrupted has no alias, but
    /// another queue than other IFBs.
    pub fn ifb(&self) -> Option<(u32, u8)> {
        let is_new = self.alias.is_empty() && self.queue == IFB_QUEUE;
        let is_own = self.kind == "ifb" && (is_new || self.alias.starts_with(ALIAS));
        parse_ifb_name(&self.name).filter(|_| is_own)
    }
}

/// A queueing discipline.
struct Discipline {
    handle: u32,
    parent: u32,
    kind: String,
    /// Length in bytes, of a `bfifo`.
    length: Option<u32>,
}

/// What the kernel lists for all devices at once.
pub(crate) struct Lists {
    pub links: Vec<Link>,
    /// By the number of their device.
    disciplines: BTreeMap<u32, Vec<Discipline>>,
}

/// The state of a device, and the counters of its classes.
pub(crate) struct Reading {
    pub state: KernelState,
    pub indices: Indices,
    pub mtu: u32,
    pub counters: BTreeMap<(Host, u16), Counters>,
}

impl Lists {
    pub fn read(netlink: &mut Netlink) -> Result<Self, LimitError> {
        let lists = Self::links(netlink)?;
        let all = netlink.raw_dump(GET_QDISC, &traffic(0, 0, 0, 0));
        let all = all.map_err(|error| reading("devices", error))?;
        let mut disciplines: BTreeMap<u32, Vec<Discipline>> = BTreeMap::new();
        for (index, one) in all.iter().filter_map(|one| discipline(one)) {
            disciplines.entry(index).or_default().push(one);
        }
        Ok(Self {
            disciplines,
            ..lists
        })
    }

    /// The devices alone.
    pub fn links(netlink: &mut Netlink) -> Result<Self, LimitError> {
        let links = netlink.raw_dump(GET_LINK, &[0; 16]);
        let links = links.map_err(|error| reading("devices", error))?;
        Ok(Self {
            links: links.iter().filter_map(|one| link(one)).collect(),
            disciplines: BTreeMap::new(),
        })
    }

    /// The device with this name.
    pub fn device(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The number of what has the HTB `host` of a device.
    pub fn index(&self, device: &str, host: Host) -> Option<u32> {
        let device = self.device(device)?.index;
        match host {
            Host::Device => Some(device),
            Host::Ifb(number) => {
                let mut links = self.links.iter();
                links.find(|link| link.ifb() == Some((device, number)))
            }
            .map(|link| link.index),
        }
    }

    /// The names of devices on which there may be limits.
    pub fn limited(&self) -> impl Iterator<Item = &str> {
        let with_ifb: BTreeSet<u32> = self
            .links
            .iter()
            .filter_map(Link::ifb)
            .map(|(of, _)| of)
            .collect();
        let has_root = |link: &Link| self.of(link.index).any(|one| one.handle == class(0));
        let is_device = |link: &&Link| link.ifb().is_none();
        let links = self.links.iter().filter(is_device);
        let limited = links.filter(move |link| has_root(link) || with_ifb.contains(&link.index));
        limited.map(|link| link.name.as_str())
    }

    /// IFBs of devices that are gone.
    pub fn orphans(&self) -> impl Iterator<Item = &Link> {
        let devices: BTreeSet<u32> = self.links.iter().map(|link| link.index).collect();
        let is_orphan =
            move |link: &&Link| link.ifb().is_some_and(|(of, _)| !devices.contains(&of));
        self.links.iter().filter(is_orphan)
    }

    /// The queueing disciplines of a device.
    fn of(&self, index: u32) -> impl Iterator<Item = &Discipline> + Clone {
        self.disciplines.get(&index).into_iter().flatten()
    }

    /// The state of a device.
    pub fn state(&self, netlink: &mut Netlink, device: &str) -> Result<Reading, LimitError> {
        let link = self
            .device(device)
            .ok_or_else(|| LimitError::NoDevice(device.to_owned()))?;
        let mut reading = Reading {
            state: KernelState::default(),
            indices: Indices {
                device: link.index,
                ifbs: BTreeMap::new(),
            },
            mtu: link.mtu,
            counters: BTreeMap::new(),
        };
        for ifb in &self.links {
            let Some((of, number)) = parse_ifb_name(&ifb.name) else {
                continue;
            };
            if of != link.index {
                continue;
            }
            if ifb.ifb().is_none() {
                reading.state.foreign_ifbs.insert(number);
                continue;
            }
            let aliases = [false, true].map(|made| ifb_alias(device, made));
            let found = Ifb {
                ready: ifb.is_up && aliases.contains(&ifb.alias),
                made_ingress: ifb.alias == aliases[1],
            };
            reading.state.ifbs.insert(number, found);
            reading.indices.ifbs.insert(number, ifb.index);
        }
        let ifbs = reading.state.ifbs.keys().map(|&ifb| Host::Ifb(ifb));
        let hosts: Vec<Host> = std::iter::once(Host::Device).chain(ifbs).collect();
        for host in hosts {
            self.shaper(netlink, device, host, &mut reading)?;
        }
        if self.of(link.index).any(|one| one.parent == AT_INGRESS) {
            reading.state.ingress = Some(Ingress {
                foreign_filters: false,
            });
            filters(netlink, device, Point::Ingress, &mut reading)?;
        }
        Ok(reading)
    }

    fn shaper(
        &self,
        netlink: &mut Netlink,
        device: &str,
        host: Host,
        reading: &mut Reading,
    ) -> Result<(), LimitError> {
        let index = reading.indices.of(host);
        let mut own = self.of(index);
        let root = match own.clone().find(|one| one.parent == AT_ROOT) {
            // The kernel's default disciplines have the major number 0.
            None => Root::Free,
            Some(root) if root.handle >> 16 == 0 => Root::Free,
            Some(root) if root.handle == class(0) && root.kind == "htb" => Root::Htb,
            Some(root) => Root::Foreign {
                kind: root.kind.clone(),
                handle: root.handle,
            },
        };
        let is_htb = root == Root::Htb;
        let mut shaper = Shaper {
            root,
            ..Shaper::default()
        };
        if is_htb {
            for one in own.by_ref() {
                let minor = one.parent as u16;
                let below = one.parent == class(minor) && one.handle == queue(minor);
                if let (true, Some(length)) = (below && one.kind == "bfifo", one.length) {
                    shaper.queues.insert(minor, length);
                }
            }
            for (minor, options, counters) in classes(netlink, device, index)? {
                shaper.classes.insert(minor, options);
                reading.counters.insert((host, minor), counters);
            }
            // A queue whose class is none of hawser's is not one of a limit.
            shaper
                .queues
                .retain(|minor, _| shaper.classes.contains_key(minor));
        }
        reading.state.shapers.insert(host, shaper);
        if is_htb {
            filters(netlink, device, Point::Root(host), reading)?;
        }
        Ok(())
    }
}

/// The classes of the HTB of the device with a number, which is for limits of `device`.
pub(crate) fn classes(
    netlink: &mut Netlink,
    device: &str,
    index: u32,
) -> Result<Vec<(u16, Class, Counters)>, LimitError> {
    let all = netlink
        .raw_dump(GET_CLASS, &traffic(index, 0, 0, 0))
        .map_err(|error| crate::error::reading(device, error))?;
    let read = |one: &Vec<u8>| class_of(one).ok_or_else(|| unreadable(device, "a class"));
    all.iter().map(read).collect()
}

/// Reads the filters of a point.
fn filters(
    netlink: &mut Netlink,
    device: &str,
    point: Point,
    reading: &mut Reading,
) -> Result<(), LimitError> {
    let (index, parent) = match point {
        Point::Ingress => (reading.indices.device, INGRESS_FILTERS),
        Point::Root(host) => (reading.indices.of(host), class(0)),
    };
    let all = netlink
        .raw_dump(GET_FILTER, &traffic(index, 0, parent, 0))
        .map_err(|error| crate::error::reading(device, error))?;
    let ifbs: BTreeMap<u32, u8> = reading
        .indices
        .ifbs
        .iter()
        .map(|(&ifb, &index)| (index, ifb))
        .collect();
    let mut found = Filters::default();
    for one in &all {
        let invalid = || unreadable(device, "a filter");
        let (handle, info) = (word(one, 8), word(one, 16));
        let (handle, info) = handle.zip(info).ok_or_else(invalid)?;
        let preference = (info >> 16) as u16;
        let attributes = one.get(20..).unwrap_or_default();
        let kind = find(attributes, TCA_KIND)
            .and_then(text)
            .unwrap_or_default();
        let options = find(attributes, TCA_OPTIONS).filter(|_| handle != 0);
        let is_u32 = kind == "u32";
        let is_possible = is_own(preference) && is_u32 && info as u16 == protocol(preference);
        if !is_possible {
            // The tables of all preferences of a point share their numbers.
            let takes_number = options.is_some() && is_u32 && is_own_table(parts(handle).0);
            if let (Point::Ingress, Some(ingress)) = (point, &mut reading.state.ingress) {
                ingress.foreign_filters = true;
            }
            if is_own(preference) || takes_number {
                found.in_the_way.get_or_insert(ForeignFilter {
                    kind: kind.to_owned(),
                    preference,
                });
            }
            continue;
        }
        found.preferences.insert(preference);
        // The first entry of a preference has no number and no options.
        let Some(options) = options else {
            continue;
        };
        let (table, bucket, number) = parts(handle);
        if is_root_table(table) {
            found.root_tables.insert(preference, table);
        }
        match u32_filter::read_node(options).ok_or_else(invalid)? {
            Found::Table if is_root_table(table) => {}
            Found::Table => {
                found.tables.insert(table as u16, preference);
            }
            Found::Node(keys, then) => {
                let then = match then {
                    FoundThen::Then(then) => then,
                    FoundThen::RedirectTo(index) => ifbs
                        .get(&index)
                        .map_or(Then::Other, |&ifb| Then::Redirect(ifb)),
                };
                let spot = Spot {
                    preference,
                    table: match is_root_table(table) {
                        true => ROOT_TABLE,
                        false => table as u16,
                    },
                    bucket,
                };
                found.nodes.insert((spot, number), Filter { keys, then });
            }
        }
    }
    match point {
        Point::Ingress => reading.state.ingress_filters = found,
        Point::Root(host) => {
            if let Some(shaper) = reading.state.shapers.get_mut(&host) {
                shaper.filters = found;
            }
        }
    }
    Ok(())
}

fn unreadable(device: &str, what: &str) -> LimitError {
    LimitError::Answer {
        device: device.to_owned(),
        what: format!("{what} is not as documented"),
    }
}

fn link(message: &[u8]) -> Option<Link> {
    let attributes = message.get(16..)?;
    let name = |kind| find(attributes, kind).and_then(text);
    let info = find(attributes, IFLA_LINKINFO).unwrap_or_default();
    let queue = find(attributes, IFLA_TXQLEN).and_then(|value| word(value, 0));
    Some(Link {
        index: word(message, 4)?,
        name: name(IFLA_IFNAME)?.to_owned(),
        mtu: word(find(attributes, IFLA_MTU)?, 0)?,
        is_up: word(message, 8)? & IFF_UP != 0,
        alias: name(IFLA_IFALIAS).unwrap_or_default().to_owned(),
        kind: find(info, IFLA_INFO_KIND)
            .and_then(text)
            .unwrap_or_default()
            .to_owned(),
        queue: queue.unwrap_or_default(),
    })
}

/// A queueing discipline, and the number of its device.
fn discipline(message: &[u8]) -> Option<(u32, Discipline)> {
    let attributes = message.get(20..)?;
    let kind = text(find(attributes, TCA_KIND)?)?;
    let options = find(attributes, TCA_OPTIONS);
    let discipline = Discipline {
        handle: word(message, 8)?,
        parent: word(message, 12)?,
        length: match kind {
            // struct tc_fifo_qopt: one number.
            "bfifo" => options.and_then(|options| word(options, 0)),
            _ => None,
        },
        kind: kind.to_owned(),
    };
    Some((word(message, 4)?, discipline))
}

/// Minor number, parameters and counters of a class.
fn class_of(message: &[u8]) -> Option<(u16, Class, Counters)> {
    let attributes = message.get(20..)?;
    let minor = word(message, 8)? as u16;
    let options = Class::read(find(attributes, TCA_OPTIONS)?)?;
    let counters = find(attributes, TCA_STATS2).map(counters);
    Some((minor, options, counters.unwrap_or_default()))
}

fn counters(stats: &[u8]) -> Counters {
    let mut counters = Counters::default();
    let long = |value: &[u8]| value.first_chunk().copied().map(u64::from_ne_bytes);
    if let Some(basic) = find(stats, TCA_STATS_BASIC) {
        counters.bytes = long(basic).unwrap_or_default();
        counters.packets = word(basic, 8).unwrap_or_default().into();
    }
    if let Some(packets) = find(stats, TCA_STATS_PKT64).and_then(long) {
        counters.packets = packets;
    }
    if let Some(queue) = find(stats, TCA_STATS_QUEUE) {
        // struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits.
        let word = |i: usize| word(queue, 4 * i).unwrap_or_default();
        (counters.backlog, counters.drops, counters.overlimits) = (word(1), word(2), word(4));
    }
    counters
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reading_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (link(&bytes), discipline(&bytes), class_of(&bytes), counters(&bytes));
        }
    }
}
