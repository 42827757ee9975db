//! Which packets are to be routed where.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::error::RoutesError;
use crate::prefixes;

/// A routing table of ours, and the policy rule that leads packets to it: one for each address
/// family that is needed. The routes vanish with the device; the rules stay until they are removed.
///
/// Ours are the routes and rules with the protocol number 72 (`proto 72` of ip-route(8)) and the
/// number of the table. All others are left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routes {
    /// Number of the routing table, which nothing else should use: 1 to 252, or 256 and above.
    pub table: u32,
    /// Place of the rule, from 1. The rule of the main table has 32766. With
    /// [`Device::without_tcp`] or [`Device::own_only`] the two places behind it are taken as well.
    pub priority: u32,
    /// The mark (`SO_MARK` of socket(7)) that distinguishes packets.
    pub mark: u32,
    /// Where the packets go.
    pub target: Target,
}

/// Where packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// Packets to captured prefixes, without the mark, go to a device.
    Device(Device),
    /// All packets with the mark are delivered to this host, whatever their destination, for
    /// [`Manner::Transparent`](crate::Manner::Transparent).
    Listener,
}

/// The device to which packets to captured prefixes go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Its index.
    pub index: u32,
    /// The captured prefixes, in any order.
    pub prefixes: Vec<IpNet>,
    /// Source address of programs that have not bound one. Without it the kernel chooses.
    pub source: Option<Ipv4Addr>,
    /// The same for IPv6.
    pub source6: Option<Ipv6Addr>,
    /// Longest packet in bytes, instead of the device's MTU.
    pub mtu: Option<u32>,
    /// Whether TCP packets keep their other routes: connections that exist are not to be interrupted,
    /// and new ones are redirected.
    pub without_tcp: bool,
    /// Whether packets of other hosts, which this one forwards, keep their other routes.
    pub own_only: bool,
}

impl Device {
    /// Packets to `prefixes` go to the device with this index.
    pub fn new(index: u32, prefixes: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            index,
            prefixes: prefixes.into_iter().collect(),
            source: None,
            source6: None,
            mtu: None,
            without_tcp: false,
            own_only: false,
        }
    }

    /// Sets the source address of programs that have not bound one, for the family of `source`.
    pub fn with_source(mut self, source: IpAddr) -> Self {
        match source {
            IpAddr::V4(ip) => self.source = Some(ip),
            IpAddr::V6(ip) => self.source6 = Some(ip),
        }
        self
    }

    /// Sets the length of the longest packet, in bytes.
    pub fn with_mtu(mut self, bytes: u32) -> Self {
        self.mtu = Some(bytes);
        self
    }

    /// Leaves TCP packets to other routes.
    pub fn without_tcp(mut self) -> Self {
        self.without_tcp = true;
        self
    }

    /// Leaves packets of other hosts to other routes, or no longer.
    pub fn own_only(mut self, own_only: bool) -> Self {
        self.own_only = own_only;
        self
    }
}

impl Routes {
    /// Routes in a table of ours, for packets with or without a mark.
    pub fn new(table: u32, priority: u32, mark: u32, target: Target) -> Self {
        Self {
            table,
            priority,
            mark,
            target,
        }
    }

    /// Checks the numbers and the prefixes.
    pub(super) fn check(&self) -> Result<(), RoutesError> {
        let &Self {
            table, priority, ..
        } = self;
        if matches!(table, 0 | 253..=255) || !(1..=u32::MAX - 2).contains(&priority) {
            return Err(RoutesError::Number { table, priority });
        }
        if self.mark == 0 {
            return Err(RoutesError::Mark);
        }
        if let Target::Device(device) = &self.target {
            device.prefixes.iter().try_for_each(prefixes::check)?;
        }
        Ok(())
    }
}
