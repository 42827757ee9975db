//! The numbers from which the addresses of a lab follow.
//!
//! A fresh lab counts its parts in the order of the network. When a lab is changed, what stays keeps its
//! numbers, and so its addresses; what is added gets numbers that nothing of the lab before had, so that
//! the old and the new part never share an address while one takes the place of the other.

use std::collections::{BTreeMap, BTreeSet};

use hawser_topology::{As, IsdAsn, Link, Network, Side, Underlay};

use super::Plan;
use super::layout::{AsPlan, LinkId};

/// The numbers of the parts of a network, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(super) ases: Vec<u32>,
    /// Of the border routers of each AS, by their labels in the topology file.
    pub(super) routers: Vec<BTreeMap<String, u32>>,
    pub(super) links: Vec<u32>,
}

/// Hands out the lowest numbers that are not in use.
struct Free {
    used: BTreeSet<u32>,
    next: u32,
}

impl Free {
    fn beside(used: impl IntoIterator<Item = u32>) -> Self {
        Self {
            used: used.into_iter().collect(),
            next: 0,
        }
    }

    fn take(&mut self) -> u32 {
        while self.used.contains(&self.next) {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }
}

impl Numbers {
    /// The numbers of a lab that is brought up with a network.
    pub fn fresh(network: &Network) -> Self {
        let nothing = Plan {
            ases: Vec::new(),
            links: Vec::new(),
        };
        Self::after(&nothing, network)
    }

    /// The numbers of a lab of the plan `before` that is changed to a network.
    pub fn after(before: &Plan, network: &Network) -> Self {
        let known: BTreeMap<IsdAsn, &AsPlan> = before.ases.iter().map(|a| (a.isd_as, a)).collect();
        let mut free = Free::beside(before.ases.iter().map(|a| a.number));
        let number = |as_: &As| {
            let known = known.get(&as_.isd_as);
            known.map_or_else(|| free.take(), |known| known.number)
        };
        let ases = network.ases.iter().map(number).collect();
        let routers: Vec<_> = (network.ases.iter())
            .map(|as_| routers(known.get(&as_.isd_as).copied(), network, as_.isd_as))
            .collect();

        let position: BTreeMap<IsdAsn, usize> = (network.ases.iter().enumerate())
            .map(|(at, as_)| (as_.isd_as, at))
            .collect();
        // An AS with another underlay is made anew, and so are its links.
        let stays = |isd_as: IsdAsn| {
            let (known, now) = (
                known.get(&isd_as)?,
                network.ases.get(*position.get(&isd_as)?)?,
            );
            Some(known.host6.is_some() == (now.underlay == Underlay::Ipv6))
        };
        let links: BTreeMap<LinkId, _> = before.links.iter().map(|l| (l.id(), l)).collect();
        let kept = |link: &Link| {
            let known = links.get(&LinkId::of(link))?;
            let same = |side: Side| {
                let (end, before) = (link.end(side), known.end(side));
                let router = routers[*position.get(&end.isd_as)?].get(&end.router);
                Some(stays(end.isd_as)? && router == Some(&before.router))
            };
            let same_underlay = known.a.address6.is_some() == (link.underlay == Underlay::Ipv6);
            (same_underlay && same(Side::A)? && same(Side::B)?).then_some(known.number)
        };
        let mut free = Free::beside(before.links.iter().map(|link| link.number));
        let links = network.links.iter();
        let links = links.map(|link| kept(link).unwrap_or_else(|| free.take()));
        let links = links.collect();
        Self {
            ases,
            routers,
            links,
        }
    }
}

/// The numbers of the border routers of an AS, at least one, by their labels.
fn routers(known: Option<&AsPlan>, network: &Network, isd_as: IsdAsn) -> BTreeMap<String, u32> {
    let known = known.map_or(&[][..], |known| &known.routers);
    let mut labels = network.routers(isd_as);
    if labels.is_empty() {
        labels.push("");
    }
    let mut free = Free::beside(known.iter().map(|router| router.number));
    let number = |label: &str| {
        let known = known.iter().find(|router| router.label == label);
        known.map_or_else(|| free.take(), |known| known.number)
    };
    let numbered = |label: &str, number: u32| (label.to_owned(), number);
    let numbers: Vec<u32> = labels.iter().copied().map(number).collect();
    let both = labels.into_iter().zip(numbers);
    both.map(|(label, number)| numbered(label, number))
        .collect()
}
