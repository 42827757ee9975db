//! Routes and policy rules, by rtnetlink(7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{self, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};

use crate::netlink::{Netlink, NetlinkError};

/// `RT_TABLE_MAIN` of rtnetlink(7): the routing table used without policy rules of one's own.
pub const MAIN_TABLE: u32 = 254;

/// A route to a device, without a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// The destinations. The bits after the prefix are ignored.
    pub destination: IpNet,
    /// Index of the device.
    pub device: u32,
    /// Number of the routing table.
    pub table: u32,
    /// The program that made the route (`RTPROT_*` of rtnetlink(7)), by which it finds its own.
    pub protocol: u8,
    /// Whether packets to the destinations are delivered to this host instead of being sent.
    pub local: bool,
    /// Source address of programs that have not bound one.
    pub source: Option<IpAddr>,
    /// Longest packet in bytes, instead of the device's MTU.
    pub mtu: Option<u32>,
}

impl Route {
    /// A route in the main table (`RTPROT_STATIC`).
    pub fn new(destination: IpNet, device: u32) -> Self {
        Self {
            destination: destination.trunc(),
            device,
            table: MAIN_TABLE,
            protocol: RouteProtocol::Static.into(),
            local: false,
            source: None,
            mtu: None,
        }
    }

    fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        let header = &mut message.header;
        header.address_family = family(self.destination.addr());
        header.destination_prefix_length = self.destination.prefix_len();
        header.protocol = self.protocol.into();
        (header.kind, header.scope) = match (self.local, self.destination) {
            (true, _) => (RouteType::Local, RouteScope::Host),
            (false, IpNet::V4(_)) => (RouteType::Unicast, RouteScope::Link),
            (false, IpNet::V6(_)) => (RouteType::Unicast, RouteScope::Universe),
        };
        message.attributes = vec![
            RouteAttribute::Table(self.table),
            RouteAttribute::Destination(self.destination.trunc().addr().into()),
            RouteAttribute::Oif(self.device),
        ];
        if let Some(source) = self.source {
            let source = RouteAttribute::PrefSource(source.into());
            message.attributes.push(source);
        }
        if let Some(mtu) = self.mtu {
            let mtu = RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]);
            message.attributes.push(mtu);
        }
        message
    }

    /// `None` for what this type does not describe: gateways, several next hops, blackholes.
    fn from_message(message: &RouteMessage) -> Option<Self> {
        let header = &message.header;
        let local = match header.kind {
            RouteType::Unicast => false,
            RouteType::Local => true,
            _ => return None,
        };
        let unspecified = unspecified(header.address_family)?;
        let mut destination = unspecified;
        let (mut table, mut device) = (header.table.into(), None);
        let (mut source, mut mtu) = (None, None);
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(ip)) => destination = (*ip).into(),
                RouteAttribute::Destination(RouteAddress::Inet6(ip)) => destination = (*ip).into(),
                RouteAttribute::Table(number) => table = *number,
                RouteAttribute::Oif(index) => device = Some(*index),
                RouteAttribute::PrefSource(RouteAddress::Inet(ip)) => source = Some((*ip).into()),
                RouteAttribute::PrefSource(RouteAddress::Inet6(ip)) => source = Some((*ip).into()),
                RouteAttribute::Metrics(metrics) => {
                    mtu = metrics.iter().find_map(|metric| match metric {
                        RouteMetric::Mtu(mtu) => Some(*mtu),
                        _ => None,
                    });
                }
                RouteAttribute::Gateway(_)
                | RouteAttribute::Via(_)
                | RouteAttribute::MultiPath(_) => {
                    return None;
                }
                _ => {}
            }
        }
        Some(Self {
            destination: IpNet::new(destination, header.destination_prefix_length).ok()?,
            device: device?,
            table,
            protocol: header.protocol.into(),
            local,
            source,
            mtu,
        })
    }
}

/// What a policy rule does with the packets that match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleAction {
    /// They look up their route in the rule's table, and go on with the next rule if it has none.
    Lookup,
    /// They go on with the rule of this priority, which is behind this one. As long as there is none,
    /// the rule does nothing.
    Goto(u32),
    /// They go on with the next rule. Others lead to it by [`RuleAction::Goto`].
    Nop,
}

/// A policy rule: which packets look up their route in which table (ip-rule(8)).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule {
    /// What it does.
    pub action: RuleAction,
    /// The destinations. The prefix of length 0 of a family is all of the family's packets.
    pub destination: IpNet,
    /// The place among all rules, in ascending order. Local addresses have the rule 0, the main
    /// table has the rule 32766.
    pub priority: u32,
    /// Number of the routing table. Rules that look nothing up have it, too, as a name.
    pub table: u32,
    /// The program that made the rule, as in [`Route::protocol`].
    pub protocol: u8,
    /// Only for packets of this protocol (`IPPROTO_*`, the number in the IP header).
    pub ip_protocol: Option<u8>,
    /// Only for packets that arrive at the device of this name; those that this host sends itself
    /// count as if they arrived at `lo`.
    pub incoming: Option<String>,
    /// Only for packets with this mark (`SO_MARK` of socket(7)).
    pub mark: Option<u32>,
    /// The rule is for packets that do not match all of the above conditions.
    pub inverted: bool,
}

impl Rule {
    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = family(self.destination.addr());
        message.header.action = match self.action {
            RuleAction::Lookup => rule::RuleAction::ToTable,
            RuleAction::Goto(_) => rule::RuleAction::Goto,
            RuleAction::Nop => rule::RuleAction::Nop,
        };
        if self.inverted {
            message.header.flags = RuleFlags::Invert;
        }
        message.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(self.protocol.into()),
        ];
        let attributes = &mut message.attributes;
        if let RuleAction::Goto(priority) = self.action {
            attributes.push(RuleAttribute::Goto(priority));
        }
        let ip_protocol = self.ip_protocol.map(IpProtocol::from);
        attributes.extend(ip_protocol.map(RuleAttribute::IpProtocol));
        let incoming = self.incoming.clone();
        attributes.extend(incoming.map(RuleAttribute::Iifname));
        attributes.extend(self.mark.map(RuleAttribute::FwMark));
        if self.destination.prefix_len() > 0 {
            message.header.dst_len = self.destination.prefix_len();
            let destination = self.destination.trunc().addr();
            let destination = RuleAttribute::Destination(destination);
            message.attributes.push(destination);
        }
        message
    }

    /// `None` for what this type does not describe: other actions and conditions.
    fn from_message(message: &RuleMessage) -> Option<Self> {
        let header = &message.header;
        if header.src_len > 0 || header.tos > 0 {
            return None;
        }
        let mut destination = unspecified(header.family)?;
        // Without a number the rule is the first one.
        let (mut priority, mut table) = (0, header.table.into());
        let (mut protocol, mut ip_protocol, mut mark) = (0, None, None);
        let (mut incoming, mut target) = (None, None);
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Destination(ip) => destination = *ip,
                RuleAttribute::Priority(number) => priority = *number,
                RuleAttribute::Table(number) => table = *number,
                RuleAttribute::Protocol(number) => protocol = (*number).into(),
                RuleAttribute::Iifname(name) => incoming = Some(name.clone()),
                RuleAttribute::Goto(priority) => target = Some(*priority),
                RuleAttribute::IpProtocol(number) => ip_protocol = Some((*number).into()),
                RuleAttribute::FwMark(value) => mark = Some(*value),
                RuleAttribute::FwMask(u32::MAX) => {}
                // The kernel always sends this one, with all ones for "not set".
                RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
                RuleAttribute::Other(_) => {}
                _ => return None,
            }
        }
        let action = match header.action {
            rule::RuleAction::ToTable => RuleAction::Lookup,
            rule::RuleAction::Goto => RuleAction::Goto(target?),
            rule::RuleAction::Nop => RuleAction::Nop,
            _ => return None,
        };
        Some(Self {
            action,
            destination: IpNet::new(destination, header.dst_len).ok()?,
            priority,
            table,
            protocol,
            ip_protocol,
            incoming,
            mark,
            inverted: header.flags.contains(RuleFlags::Invert),
        })
    }
}

impl Netlink {
    /// Adds a route.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, when there is a route to the same destinations in the table
    /// (`EEXIST`), when the device does not exist or is down, or when no address of this host is the
    /// source.
    pub fn add_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRoute(route.message()), flags)
    }

    /// Adds a route, instead of the one to the same destinations in the table if there is one.
    ///
    /// # Errors
    /// As [`Netlink::add_route`], but for `EEXIST`.
    pub fn replace_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewRoute(route.message()), flags)
    }

    /// Removes a route.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when there is no such route (`ESRCH`).
    pub fn remove_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        self.change(RouteNetlinkMessage::DelRoute(route.message()), 0)
    }

    /// All routes of a table that a [`Route`] can describe.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn routes(&mut self, table: u32) -> Result<Vec<Route>, NetlinkError> {
        let all = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let answers = self.request(all, NLM_F_DUMP)?;
        let routes = answers.iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => Route::from_message(route),
            _ => None,
        });
        Ok(routes.filter(|route| route.table == table).collect())
    }

    /// Adds a policy rule.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when there is such a rule (`EEXIST`).
    pub fn add_rule(&mut self, rule: &Rule) -> Result<(), NetlinkError> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRule(rule.message()), flags)
    }

    /// Removes a policy rule: the first with this action, priority, table and protocol that has the
    /// conditions of `rule`. The kernel does not look whether it has others besides.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when there is no such rule (`ENOENT`).
    pub fn remove_rule(&mut self, rule: &Rule) -> Result<(), NetlinkError> {
        self.change(RouteNetlinkMessage::DelRule(rule.message()), 0)
    }

    /// All policy rules that a [`Rule`] can describe, of both address families.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn rules(&mut self) -> Result<Vec<Rule>, NetlinkError> {
        let all = RouteNetlinkMessage::GetRule(RuleMessage::default());
        let answers = self.request(all, NLM_F_DUMP)?;
        let rules = answers.iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRule(rule) => Rule::from_message(rule),
            _ => None,
        });
        Ok(rules.collect())
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// The address of all zeros; `None` for families other than IP.
fn unspecified(family: AddressFamily) -> Option<IpAddr> {
    match family {
        AddressFamily::Inet => Some(Ipv4Addr::UNSPECIFIED.into()),
        AddressFamily::Inet6 => Some(Ipv6Addr::UNSPECIFIED.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::LOOPBACK;
    use crate::namespace::{NetNs, is_privileged};

    /// Runs `body` in a namespace of its own, in which the loopback device is up.
    fn inside(body: impl FnOnce(&mut Netlink) + Send) {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let run = || {
            let mut netlink = Netlink::open().unwrap();
            netlink.set_up(LOOPBACK, true).unwrap();
            body(&mut netlink);
        };
        NetNs::create().unwrap().run(run).unwrap();
    }

    #[test]
    fn routes_are_read_back_as_added() {
        inside(|netlink| {
            let source: IpAddr = "10.9.0.1".parse().unwrap();
            netlink.add_address(LOOPBACK, source, 32).unwrap();
            let source6: IpAddr = "fd09::1".parse().unwrap();
            netlink.add_address(LOOPBACK, source6, 128).unwrap();
            let route = |text: &str, table| Route {
                table,
                ..Route::new(text.parse().unwrap(), LOOPBACK)
            };
            let mut all = vec![
                route("10.1.0.0/16", 100),
                Route {
                    source: Some(source),
                    mtu: Some(1280),
                    ..route("10.2.3.4/32", 4857)
                },
                Route {
                    source: Some(source6),
                    mtu: Some(1300),
                    protocol: 72,
                    ..route("fd01::/16", 4857)
                },
                Route {
                    local: true,
                    ..route("0.0.0.0/0", 4857)
                },
                Route {
                    local: true,
                    ..route("::/0", 4857)
                },
            ];
            for route in &all {
                netlink.add_route(route).unwrap();
                let again = netlink.add_route(route).unwrap_err();
                assert_eq!(again.refusal(), Some(libc::EEXIST), "{route:?}");
            }
            all.sort();
            for table in [100, 4857] {
                let mut found = netlink.routes(table).unwrap();
                found.sort();
                let expected = all.iter().filter(|route| route.table == table);
                assert!(found.iter().eq(expected), "{found:?}");
            }
            for route in &mut all {
                route.mtu = Some(1310);
                netlink.replace_route(route).unwrap();
                let found = netlink.routes(route.table).unwrap();
                assert!(found.contains(route), "{route:?}: {found:?}");
            }
            let found = netlink.routes(4857).unwrap();
            assert_eq!(found.len(), 4, "{found:?}");
            for route in &all {
                netlink.remove_route(route).unwrap();
                let again = netlink.remove_route(route).unwrap_err();
                assert_eq!(again.refusal(), Some(libc::ESRCH), "{route:?}");
            }
            assert_eq!(netlink.routes(4857).unwrap(), []);
        });
    }

    #[test]
    fn rules_are_read_back_as_added() {
        inside(|netlink| {
            let before = netlink.rules().unwrap();
            let rule = |destination: &str| Rule {
                action: RuleAction::Lookup,
                destination: destination.parse().unwrap(),
                priority: 1000,
                table: 4857,
                protocol: 72,
                ip_protocol: None,
                incoming: None,
                mark: None,
                inverted: false,
            };
            let all = [
                rule("0.0.0.0/0"),
                rule("::/0"),
                rule("10.1.0.0/16"),
                Rule {
                    mark: Some(7),
                    inverted: true,
                    table: 9,
                    ..rule("::/0")
                },
                Rule {
                    action: RuleAction::Goto(1002),
                    ip_protocol: Some(6),
                    ..rule("0.0.0.0/0")
                },
                Rule {
                    action: RuleAction::Goto(1002),
                    incoming: Some("lo".to_owned()),
                    inverted: true,
                    ..rule("::/0")
                },
                Rule {
                    action: RuleAction::Nop,
                    priority: 1002,
                    ..rule("0.0.0.0/0")
                },
            ];
            for rule in &all {
                netlink.add_rule(rule).unwrap();
                let again = netlink.add_rule(rule).unwrap_err();
                assert_eq!(again.refusal(), Some(libc::EEXIST), "{rule:?}");
            }
            let mut found = netlink.rules().unwrap();
            found.retain(|rule| !before.contains(rule));
            assert_eq!(found.len(), all.len(), "{found:?}");
            assert!(all.iter().all(|rule| found.contains(rule)), "{found:?}");
            // Those with more conditions first.
            for rule in all.iter().rev() {
                netlink.remove_rule(rule).unwrap();
                let again = netlink.remove_rule(rule).unwrap_err();
                assert_eq!(again.refusal(), Some(libc::ENOENT), "{rule:?}");
            }
            assert_eq!(netlink.rules().unwrap(), before);
        });
    }
}
