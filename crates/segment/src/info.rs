//! What the ASes of a path announced about it (scionproto, `combinator`, static info).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hawser_path::{Discovery, Geo, Interface, LinkType, Metadata};
use sciparse::identifier::isd_asn::IsdAsn;

use crate::segment::{Entry, StaticInfo};

/// Two interfaces, in no order.
type Between = [Interface; 2];

fn between(a: Interface, b: Interface) -> Between {
    [a.min(b), a.max(b)]
}

/// Everything but MTU and expiry. `entries` are those of the path's ASes in the order of travel;
/// where two segments meet, an AS has two.
///
/// Of contradicting announcements the more careful one counts: the longer latency, the smaller
/// bandwidth; a link of two types has none.
pub(crate) fn collect(interfaces: &[Interface], entries: &[&Entry]) -> Metadata {
    let links = || interfaces.chunks_exact(2).map(|link| [link[0], link[1]]);
    let far: HashMap<_, _> = links().flat_map(|[a, b]| [(a, b), (b, a)]).collect();
    let mut known = Known::default();
    for entry in entries {
        if let Some(info) = &entry.info {
            known.add(entry, info, &far);
        }
        known.add_services(entry);
    }
    let hops = || interfaces.windows(2).map(|hop| between(hop[0], hop[1]));
    let inside = interfaces.get(1..).unwrap_or_default().chunks_exact(2);
    let last_of_links = interfaces.iter().skip(1).step_by(2);
    let ases = interfaces.first().into_iter().chain(last_of_links);
    Metadata {
        latency: hops().map(|h| known.latency.get(&h).copied()).collect(),
        bandwidth: hops().map(|h| known.bandwidth.get(&h).copied()).collect(),
        geo: interfaces
            .iter()
            .map(|i| known.geo.get(i).cloned())
            .collect(),
        link_types: links()
            .map(|[a, b]| known.link_type.get(&between(a, b)).copied())
            .map(Option::unwrap_or_default)
            .collect(),
        internal_hops: inside
            .map(|hop| known.internal_hops.get(&between(hop[0], hop[1])).copied())
            .map(Option::unwrap_or_default)
            .collect(),
        notes: ases
            .map(|i| known.notes.get(&i.isd_as).map(|notes| notes.join("\n")))
            .map(Option::unwrap_or_default)
            .collect(),
        discovery: known.discovery,
        ..Metadata::default()
    }
}

/// Announcements, by what they are about.
#[derive(Default)]
struct Known<'a> {
    latency: HashMap<Between, Duration>,
    /// In bit/s.
    bandwidth: HashMap<Between, u64>,
    geo: HashMap<Interface, Geo>,
    link_type: HashMap<Between, LinkType>,
    internal_hops: HashMap<Between, u32>,
    notes: HashMap<IsdAsn, Vec<&'a str>>,
    discovery: BTreeMap<IsdAsn, Discovery>,
}

impl<'a> Known<'a> {
    fn add(&mut self, entry: &Entry, info: &'a StaticInfo, far: &HashMap<Interface, Interface>) {
        let isd_as = entry.isd_as;
        let own = |id| Interface { isd_as, id };
        // A beacon that ends in the AS has no egress, and announces no hops through it.
        let egress = Some(entry.hop.egress).filter(|&id| id != 0).map(own);
        let through = |id: u16| Some(between(egress?, own(id)));
        let over = |id: u16| Some(between(own(id), *far.get(&own(id))?));

        for (hop, latency) in
            pairs(&info.latency_intra, through).chain(pairs(&info.latency_inter, over))
        {
            let known = self.latency.entry(hop).or_insert(latency);
            *known = latency.max(*known);
        }
        for (hop, kbit) in pairs(&info.bandwidth_intra, through)
            .chain(pairs(&info.bandwidth_inter, over))
            .filter(|&(_, kbit)| kbit != 0)
        {
            let bits = kbit.saturating_mul(1000);
            let known = self.bandwidth.entry(hop).or_insert(bits);
            *known = bits.min(*known);
        }
        for (hop, hops) in pairs(&info.internal_hops, through).filter(|&(_, hops)| hops != 0) {
            let known = self.internal_hops.entry(hop).or_insert(hops);
            *known = hops.min(*known);
        }
        for (link, kind) in pairs(&info.link_type, over) {
            let known = self.link_type.entry(link).or_insert(kind);
            if *known != kind {
                *known = LinkType::Unset;
            }
        }
        for (id, geo) in &info.geo {
            // In the daemon's messages all zero means that none is announced.
            if *geo != Geo::default() {
                self.geo.insert(own(*id), geo.clone());
            }
        }
        if !info.note.is_empty() {
            let notes = self.notes.entry(isd_as).or_default();
            if !notes.contains(&info.note.as_str()) {
                notes.push(&info.note);
            }
        }
    }

    fn add_services(&mut self, entry: &Entry) {
        if entry.discovery == Discovery::default() {
            return;
        }
        let known = self.discovery.entry(entry.isd_as).or_default();
        let Discovery {
            control_services,
            discovery_services,
        } = &entry.discovery;
        for (known, announced) in [
            (&mut known.control_services, control_services),
            (&mut known.discovery_services, discovery_services),
        ] {
            for address in announced {
                if !known.contains(address) {
                    known.push(*address);
                }
            }
        }
    }
}

/// The values about hops that can be named.
fn pairs<T: Copy>(
    values: &[(u16, T)],
    name: impl Fn(u16) -> Option<Between>,
) -> impl Iterator<Item = (Between, T)> {
    values
        .iter()
        .filter_map(move |&(id, value)| Some((name(id)?, value)))
}
