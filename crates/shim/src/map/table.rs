//! The map in memory: the entry of a destination.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use hawser_address::ScionAddr;
use ipnet::IpNet;

use super::check::{Fault, Local, Problem, check};
use super::destination::Hosts;
use super::entry::Entry;
use super::resolve::Addresses;

/// Finds the entry of a destination: that of the longest prefix; of equal ones that with the
/// destination's TCP port; of equal ones that written as an address, not as a name.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: Vec<Entry>,
    v4: Prefixes,
    v6: Prefixes,
}

/// What the map says of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// The address of the shim that serves the destination.
    pub shim: ScionAddr,
}

/// The prefixes of a family of addresses, by length: few lengths are in use, so that a look-up asks
/// few tables, however many prefixes there are.
#[derive(Debug, Clone, Default)]
struct Prefixes(BTreeMap<u8, HashMap<u128, Ports>>);

/// The entries of one prefix, as indices.
#[derive(Debug, Clone, Default)]
struct Ports {
    /// The one for all ports.
    all: Option<usize>,
    /// Those for one port each, sorted by it.
    one: Vec<(u16, usize)>,
}

impl Map {
    /// Makes a map of the entries that can be used on the host `local`, with the `addresses` of
    /// their names, and reports the others. Names that were not resolved have no address.
    pub fn new(entries: &[Entry], addresses: &Addresses, local: &Local) -> (Self, Vec<Problem>) {
        let mut map = Self {
            entries: entries.to_vec(),
            ..Self::default()
        };
        let mut problems = Vec::new();
        // Addresses first: they have precedence over names.
        for (index, entry) in entries.iter().enumerate() {
            if let Hosts::Prefix(net) = entry.destination.hosts {
                let added = map.add(index, net, local);
                problems.extend(added.err().map(|fault| Problem::new(entry, fault)));
            }
        }
        for (index, entry) in entries.iter().enumerate() {
            let Hosts::Name(name) = &entry.destination.hosts else {
                continue;
            };
            let (ips, error) = match addresses.of(name) {
                Some(known) => (&known.ips[..], known.error.clone()),
                None => (&[][..], Some("it was not resolved".to_owned())),
            };
            let fault = error.map(|error| match ips {
                [] => Fault::NoAddress(error),
                _ => Fault::Former(error),
            });
            let faults = ips.iter().map(|ip| map.add(index, (*ip).into(), local));
            let faults: Vec<Fault> = fault
                .into_iter()
                .chain(faults.filter_map(Result::err))
                .collect();
            problems.extend(faults.into_iter().map(|fault| Problem::new(entry, fault)));
        }
        problems.sort_by_key(|problem| problem.line);
        // A target that is this host is one fault, whatever the number of a name's addresses.
        problems.dedup();
        (map, problems)
    }

    /// Adds the addresses `net` of an entry.
    fn add(&mut self, index: usize, net: IpNet, local: &Local) -> Result<(), Fault> {
        let entry = &self.entries[index];
        check(entry, net, local)?;
        let prefixes = match net {
            IpNet::V4(_) => &mut self.v4,
            IpNet::V6(_) => &mut self.v6,
        };
        let lengths = prefixes.0.entry(net.prefix_len()).or_default();
        let ports = lengths.entry(bits(net.addr())).or_default();
        let Some(before) = ports.put(entry.destination.port, index) else {
            return Ok(());
        };
        // The destinations differ, so one of them is a name. An address has precedence over names
        // silently, as a long prefix over a short one.
        let before = &self.entries[before];
        let is_name = matches!(before.destination.hosts, Hosts::Name(_));
        let same = (before.target, before.paths, &before.policy)
            == (entry.target, entry.paths, &entry.policy);
        match is_name && !same {
            true => Err(Fault::Shared {
                ip: net.addr(),
                other: before.destination.to_string(),
                line: before.line,
                target: before.target,
            }),
            false => Ok(()),
        }
    }

    /// The entry of the destination of a program's connection; `None` if it does not go over SCION,
    /// but over IP. That can be so for an address in [`captured`](Self::captured), if its entries
    /// are for other ports.
    pub fn lookup(&self, destination: SocketAddr) -> Option<Route<'_>> {
        let ip = destination.ip().to_canonical();
        let lengths = 0..=IpNet::from(ip).max_prefix_len();
        let entry = self.longest(ip, Some(destination.port()), lengths)?;
        let shim = entry.target.address(ip);
        Some(Route { entry, shim })
    }

    /// The same for what has no TCP port: only entries for all ports count.
    pub fn lookup_host(&self, destination: IpAddr) -> Option<Route<'_>> {
        let lengths = 0..=IpNet::from(destination).max_prefix_len();
        let entry = self.longest(destination, None, lengths)?;
        let shim = entry.target.address(destination);
        Some(Route { entry, shim })
    }

    /// The entry that would count for the addresses of `entry` without it; `None` if they would not
    /// go over SCION, or if it has a name.
    pub fn next(&self, entry: &Entry) -> Option<&Entry> {
        let Hosts::Prefix(net) = entry.destination.hosts else {
            return None;
        };
        let (ip, len) = (net.addr(), net.prefix_len());
        let same = entry
            .destination
            .port
            .and_then(|_| self.longest(ip, None, len..=len));
        let shorter = len.checked_sub(1);
        same.or_else(|| self.longest(ip, entry.destination.port, 0..=shorter?))
    }

    /// The prefixes that have entries, of both families, in order: as few as can be, without
    /// overlap.
    pub fn captured(&self) -> Vec<IpNet> {
        self.nets(|_| true)
    }

    /// Those of them that have an entry for all ports.
    pub fn routed(&self) -> Vec<IpNet> {
        self.nets(|ports| ports.all.is_some())
    }

    fn nets(&self, has: impl Fn(&Ports) -> bool) -> Vec<IpNet> {
        let v4 = self.v4.nets(&has).filter_map(|(bits, len)| {
            let ip = u32::try_from(bits >> 96).ok()?;
            IpNet::new(Ipv4Addr::from_bits(ip).into(), len).ok()
        });
        let v6 = self.v6.nets(&has);
        let v6 =
            v6.filter_map(|(bits, len)| IpNet::new(Ipv6Addr::from_bits(bits).into(), len).ok());
        let mut nets = IpNet::aggregate(&v4.chain(v6).collect());
        nets.sort();
        nets
    }

    /// The entries, whether or not they are used, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of the longest prefix of `ip` with one of these lengths that has an entry for the
    /// port; for all ports if that is `None`.
    fn longest(
        &self,
        ip: IpAddr,
        port: Option<u16>,
        lengths: RangeInclusive<u8>,
    ) -> Option<&Entry> {
        let prefixes = match ip {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => &self.v6,
        };
        let bits = bits(ip);
        let mut lengths = prefixes.0.range(lengths).rev();
        let index = lengths.find_map(|(len, table)| table.get(&masked(bits, *len))?.of(port))?;
        self.entries.get(index)
    }
}

impl Prefixes {
    /// Those whose entries are as wanted.
    fn nets(&self, has: &impl Fn(&Ports) -> bool) -> impl Iterator<Item = (u128, u8)> {
        let lengths = self.0.iter();
        lengths.flat_map(move |(len, table)| {
            let wanted = table.iter().filter(|(_, ports)| has(ports));
            wanted.map(|(bits, _)| (*bits, *len))
        })
    }
}

impl Ports {
    /// Adds an entry, unless there is one for the port, which is returned.
    fn put(&mut self, port: Option<u16>, index: usize) -> Option<usize> {
        let Some(port) = port else {
            let before = self.all;
            self.all = before.or(Some(index));
            return before;
        };
        match self.one.binary_search_by_key(&port, |(port, _)| *port) {
            Ok(at) => Some(self.one[at].1),
            Err(at) => {
                self.one.insert(at, (port, index));
                None
            }
        }
    }

    /// The entry for a port, else that for all.
    fn of(&self, port: Option<u16>) -> Option<usize> {
        let one = port.and_then(|port| {
            let at = self.one.binary_search_by_key(&port, |(port, _)| *port);
            Some(self.one[at.ok()?].1)
        });
        one.or(self.all)
    }
}

/// The bits of an address, from the highest.
fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The first `len` bits.
fn masked(bits: u128, len: u8) -> u128 {
    let host = u128::MAX.checked_shr(len.into()).unwrap_or(0);
    bits & !host
}

#[cfg(test)]
mod tests;
