//! Which HTB and which class a link has.

use std::collections::{BTreeMap, BTreeSet};

use crate::layout::Layout;
use crate::limit::{Direction, Remote};
use crate::state::{HOST_CAPACITY, Host, IFBS, KernelState, LAST_CLASS, Root, Then, direction_of};

/// The class of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub host: Host,
    pub class: u16,
}

/// The places of links in one direction. A link that has a place keeps it: the filters of the kernel
/// remember it. Others get the lowest free numbers. `None` if there is no room for all.
pub(super) fn places(
    direction: Direction,
    links: &BTreeSet<Remote>,
    found: &KernelState,
) -> Option<BTreeMap<Remote, Place>> {
    let mut places = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (remote, place) in known(direction, found) {
        let is_free = |place| !taken.contains(&place);
        if links.contains(&remote) && !places.contains_key(&remote) && is_free(place) {
            places.insert(remote, place);
            taken.insert(place);
        }
    }
    let mut room = hosts(direction).map(|host| {
        let on_host = taken.iter().filter(|place| place.host == host).count();
        let classes = found.shapers.get(&host).map(|shaper| &shaper.classes);
        // Classes that are removed are so only after new ones were added.
        let is_free = move |class: &u16| classes.is_none_or(|all| !all.contains_key(class));
        let numbers = (1..=LAST_CLASS).filter(is_free);
        let places = numbers.map(move |class| Place { host, class });
        places.take(HOST_CAPACITY.saturating_sub(on_host))
    });
    let mut free = room.next()?;
    for &remote in links {
        if places.contains_key(&remote) {
            continue;
        }
        let place = loop {
            match free.find(|place| !taken.contains(place)) {
                Some(place) => break place,
                None => free = room.next()?,
            }
        };
        places.insert(remote, place);
    }
    Some(places)
}

/// The HTBs of a direction, in the order in which they are filled.
fn hosts(direction: Direction) -> impl Iterator<Item = Host> {
    let ifbs = (1..=2 * IFBS).map(Host::Ifb);
    let all = std::iter::once(Host::Device).chain(ifbs);
    all.filter(move |&host| direction_of(host) == direction)
}

/// The place that a link has.
pub(super) fn place(direction: Direction, link: Remote, found: &KernelState) -> Option<Place> {
    let of_host = |host| {
        let shaper = found.shapers.get(&host)?;
        let class = Layout::class(direction, link, &shaper.filters)?;
        Some(Place { host, class })
    };
    hosts(direction).find_map(of_host)
}

#[cfg(test)]
thread_local! {
    /// How many filters [`known`] has looked at.
    pub(crate) static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The places that links have, as far as filters and classes are complete.
pub(crate) fn known(direction: Direction, found: &KernelState) -> Vec<(Remote, Place)> {
    let mut known = Vec::new();
    for host in hosts(direction) {
        let Some(shaper) = found.shapers.get(&host) else {
            continue;
        };
        if shaper.root != Root::Htb {
            continue;
        }
        for ((spot, _), filter) in &shaper.filters.nodes {
            #[cfg(test)]
            VISITS.set(VISITS.get() + 1);
            let Then::Class(class) = filter.then else {
                continue;
            };
            let of_a_link =
                (1..=LAST_CLASS).contains(&class) && shaper.classes.contains_key(&class);
            let remote = Layout::remote(direction, spot.preference, &filter.keys);
            if let (Some(remote), true) = (remote, of_a_link) {
                known.push((remote, Place { host, class }));
            }
        }
    }
    known
}
