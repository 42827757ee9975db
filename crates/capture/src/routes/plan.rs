//! The changes that turn the routes and rules of the kernel into those wanted.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::route::{Route, Rule, RuleAction};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::error::RoutesError;
use super::wanted::{Routes, Target};

/// The protocol number that our routes and rules have (`RTPROT_*` of rtnetlink(7)): H in ASCII.
const PROTOCOL: u8 = 72;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// Where packets count as arriving that this host sends itself.
const OWN: &str = "lo";
/// How far behind the first rule the last one is.
const BEHIND: u32 = 2;

/// Routes and rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TableState {
    pub routes: BTreeSet<Route>,
    pub rules: BTreeSet<Rule>,
}

/// A change in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    AddRoute(Route),
    /// Instead of the route to the same destinations.
    ReplaceRoute(Route),
    RemoveRoute(Route),
    AddRule(Rule),
    RemoveRule(Rule),
}

impl TableState {
    /// What is to be in the kernel.
    pub fn wanted(routes: &Routes) -> Result<Self, RoutesError> {
        routes.check()?;
        let everything = [Ipv4Net::default().into(), Ipv6Net::default().into()];
        let route = |destination: IpNet, device| Route {
            table: routes.table,
            protocol: PROTOCOL,
            ..Route::new(destination, device)
        };
        let mut state = Self::default();
        match &routes.target {
            Target::Device(device) => {
                let routes = device.prefixes.iter().map(|prefix| Route {
                    source: match prefix {
                        IpNet::V4(_) => device.source.map(IpAddr::V4),
                        IpNet::V6(_) => device.source6.map(IpAddr::V6),
                    },
                    mtu: device.mtu,
                    ..route(*prefix, device.index)
                });
                state.routes.extend(routes);
            }
            Target::Listener => {
                let routes = everything.map(|all| Route {
                    local: true,
                    ..route(all, LOOPBACK)
                });
                state.routes.extend(routes);
            }
        }
        let needed = everything.into_iter().filter(|all| {
            let mut routes = state.routes.iter();
            routes.any(|route| same_family(&route.destination, all))
        });
        for destination in needed {
            state.rules.extend(rules(routes, destination));
        }
        Ok(state)
    }
}

/// The rules for packets to `destination`, all of an address family.
fn rules(routes: &Routes, destination: IpNet) -> Vec<Rule> {
    let rule = |action, after| Rule {
        action,
        destination,
        priority: routes.priority + after,
        table: routes.table,
        protocol: PROTOCOL,
        ip_protocol: None,
        incoming: None,
        mark: None,
        inverted: false,
    };
    // An inverted rule is for packets that do not have all of its conditions, so "neither TCP nor the
    // mark" cannot be one rule: what keeps its other routes is led around the lookup.
    let around = rule(RuleAction::Goto(routes.priority + BEHIND), 0);
    let mut rules = Vec::new();
    if let Target::Device(device) = &routes.target {
        rules.extend(device.without_tcp.then(|| Rule {
            ip_protocol: Some(TCP),
            ..around.clone()
        }));
        rules.extend(device.own_only.then(|| Rule {
            incoming: Some(OWN.to_owned()),
            inverted: true,
            ..around
        }));
    }
    let lookup = Rule {
        mark: Some(routes.mark),
        inverted: matches!(routes.target, Target::Device(_)),
        ..rule(RuleAction::Lookup, u32::from(!rules.is_empty()))
    };
    if !rules.is_empty() {
        rules.push(rule(RuleAction::Nop, BEHIND));
    }
    rules.push(lookup);
    rules
}

fn same_family(one: &IpNet, other: &IpNet) -> bool {
    one.addr().is_ipv4() == other.addr().is_ipv4()
}

/// The changes that turn what is ours in `found` into `wanted`, in order: no packet is led to a
/// table before its routes are there, or after they are gone.
pub(super) fn plan(
    table: u32,
    wanted: &TableState,
    found: &TableState,
) -> Result<Vec<Change>, RoutesError> {
    let (ours, foreign): (Vec<_>, Vec<_>) = found
        .routes
        .iter()
        .filter(|route| route.table == table)
        .partition(|route| route.protocol == PROTOCOL);
    let mut changes = Vec::new();
    for route in wanted.routes.difference(&found.routes) {
        let destination = route.destination;
        if foreign.iter().any(|other| other.destination == destination) {
            return Err(RoutesError::Foreign { destination, table });
        }
        let replaces = ours.iter().any(|own| own.destination == destination);
        changes.push(match replaces {
            true => Change::ReplaceRoute(route.clone()),
            false => Change::AddRoute(route.clone()),
        });
    }

    let ours_of = |rule: &&Rule| rule.table == table && rule.protocol == PROTOCOL;
    let mut rules: Vec<_> = found.rules.iter().filter(ours_of).collect();
    // To remove a rule, the kernel takes the first that has its conditions and maybe more. So if
    // any of ours is wrong, all are removed, those with most conditions first.
    if rules.iter().any(|rule| !wanted.rules.contains(*rule)) {
        rules.sort_by_key(|rule| {
            let prefix = u8::from(rule.destination.prefix_len() > 0);
            let conditions = [
                rule.mark.is_some(),
                rule.ip_protocol.is_some(),
                rule.incoming.is_some(),
            ];
            let conditions: u8 = conditions.map(u8::from).iter().sum();
            (order(rule), std::cmp::Reverse(prefix + conditions))
        });
        changes.extend(rules.drain(..).cloned().map(Change::RemoveRule));
    }
    let mut missing: Vec<_> = wanted
        .rules
        .iter()
        .filter(|rule| !rules.contains(rule))
        .collect();
    missing.sort_by_key(|rule| std::cmp::Reverse(order(rule)));
    changes.extend(missing.into_iter().cloned().map(Change::AddRule));

    let kept = |route: &Route| {
        let mut wanted = wanted.routes.iter();
        wanted.any(|other| other.destination == route.destination)
    };
    let gone = ours.into_iter().filter(|route| !kept(route));
    changes.extend(gone.cloned().map(Change::RemoveRoute));
    Ok(changes)
}

/// The order in which rules are removed, the reverse of that in which they are added: a packet that is
/// led around a lookup is so as long as there is the lookup.
fn order(rule: &Rule) -> u8 {
    match rule.action {
        RuleAction::Lookup => 0,
        RuleAction::Goto(_) => 1,
        RuleAction::Nop => 2,
    }
}

#[cfg(test)]
mod tests;
