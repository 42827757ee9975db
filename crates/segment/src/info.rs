//! The metadata that the ASes of a path announce (scionproto, `combinator`, static info).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hawser_address::IsdAsn;
use hawser_path::{Discovery, Geo, Interface, LinkType, Metadata};
use hawser_proto::control_plane::LinkType as LinkTypeMessage;

use crate::segment::Entry;

/// An unordered pair of interfaces.
type Between = [Interface; 2];

fn between(a: Interface, b: Interface) -> Between {
    [a.min(b), a.max(b)]
}

/// The metadata of a path without MTU and expiry. `entries` are those of the path's ASes in the
/// order of travel; an AS where two segments meet has two.
///
/// Of contradicting announcements the more conservative one counts: the longer latency, the smaller
/// bandwidth. The type of a link with two announced types is unset.
pub(crate) fn collect(interfaces: &[Interface], entries: &[&Entry]) -> Metadata {
    let links = || interfaces.chunks_exact(2).map(|link| [link[0], link[1]]);
    let far: HashMap<_, _> = links().flat_map(|[a, b]| [(a, b), (b, a)]).collect();
    let mut known = Known::default();
    for entry in entries {
        known.add(entry, &far);
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

/// Announcements, by their subject.
#[derive(Default)]
struct Known<'a> {
    latency: HashMap<Between, Duration>,
    /// Bandwidths in bit/s.
    bandwidth: HashMap<Between, u64>,
    geo: HashMap<Interface, Geo>,
    link_type: HashMap<Between, LinkType>,
    internal_hops: HashMap<Between, u32>,
    notes: HashMap<IsdAsn, Vec<&'a str>>,
    discovery: BTreeMap<IsdAsn, Discovery>,
}

impl<'a> Known<'a> {
    fn add(&mut self, entry: &'a Entry, far: &HashMap<Interface, Interface>) {
        let (isd_as, info) = (entry.isd_as, &entry.info);
        let own = |id| Interface { isd_as, id };
        // A beacon that ends in the AS has no egress interface, and announces no hops through the
        // AS.
        let egress = Some(entry.hop.cons_egress).filter(|&id| id != 0).map(own);
        let through = |id: u16| Some(between(egress?, own(id)));
        let over = |id: u16| Some(between(own(id), *far.get(&own(id))?));

        let latency = info.latency.iter();
        let latency = latency.flat_map(|l| about(&l.intra, through).chain(about(&l.inter, over)));
        for (hop, micros) in latency {
            let latency = Duration::from_micros((*micros).into());
            let known = self.latency.entry(hop).or_insert(latency);
            *known = latency.max(*known);
        }
        let bandwidth = info.bandwidth.iter();
        let bandwidth =
            bandwidth.flat_map(|b| about(&b.intra, through).chain(about(&b.inter, over)));
        for (hop, kbit) in bandwidth.filter(|&(_, &kbit)| kbit != 0) {
            let bits = kbit.saturating_mul(1000);
            let known = self.bandwidth.entry(hop).or_insert(bits);
            *known = bits.min(*known);
        }
        let hops = about(&info.internal_hops, through);
        for (hop, &hops) in hops.filter(|&(_, &hops)| hops != 0) {
            let known = self.internal_hops.entry(hop).or_insert(hops);
            *known = hops.min(*known);
        }
        for (link, kind) in about(&info.link_type, over) {
            let kind = match LinkTypeMessage::try_from(*kind) {
                Ok(LinkTypeMessage::Direct) => LinkType::Direct,
                Ok(LinkTypeMessage::MultiHop) => LinkType::MultiHop,
                Ok(LinkTypeMessage::OpenNet) => LinkType::OpenNet,
                _ => continue,
            };
            let known = self.link_type.entry(link).or_insert(kind);
            if *known != kind {
                *known = LinkType::Unset;
            }
        }
        for (interface, geo) in about(&info.geo, |id| Some(own(id))) {
            let place = Geo {
                latitude: geo.latitude,
                longitude: geo.longitude,
                address: geo.address.clone(),
            };
            let on_earth = geo.latitude.abs() <= 90.0 && geo.longitude.abs() <= 180.0;
            // In the daemon's messages a place of all zeros means that no place is announced.
            if on_earth && place != Geo::default() {
                self.geo.insert(interface, place);
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

/// The values of an announcement, with their interfaces converted by `name`. Values are left out if
/// their key is not an interface number, or `name` returns `None`.
fn about<T, K>(
    values: &BTreeMap<u64, T>,
    name: impl Fn(u16) -> Option<K>,
) -> impl Iterator<Item = (K, &T)> {
    let named = move |id| name(u16::try_from(id).ok().filter(|&id| id != 0)?);
    let values = values.iter();
    values.filter_map(move |(&id, value)| Some((named(id)?, value)))
}

#[cfg(test)]
mod tests {
    use hawser_proto::control_plane::{GeoCoordinates, LatencyInfo, StaticInfoExtension};

    use super::*;
    use crate::testing::{ia, segment, spec};

    #[test]
    fn static_information_about_unknown_interfaces_is_left_out() {
        let geo = |latitude: f32| GeoCoordinates {
            latitude,
            longitude: 8.5,
            address: "Zurich".to_owned(),
        };
        let info = StaticInfoExtension {
            latency: Some(LatencyInfo {
                intra: [(0, 1), (1, 2), (65536, 3)].into(),
                inter: [(65535, 4)].into(),
            }),
            geo: [(1, geo(47.4)), (2, geo(91.0)), (3, geo(f32::NAN))].into(),
            link_type: [
                (1, LinkTypeMessage::OpenNet.into()),
                (2, LinkTypeMessage::Unspecified.into()),
                (3, 77),
            ]
            .into(),
            ..StaticInfoExtension::default()
        };
        let mut specs = [spec(1, 0, 9), spec(2, 1, 0)];
        specs[0].info = Some(info);
        let segment = segment(0, &specs);
        let own = |id| Interface { isd_as: ia(1), id };
        let other = |id| Interface { isd_as: ia(2), id };
        let far = [1, 2, 3, 65535].map(|id| (own(id), other(id))).into();
        let mut known = Known::default();
        known.add(&segment.entries[0], &far);
        let micros = Duration::from_micros;
        let expected = [
            (between(own(9), own(1)), micros(2)),
            (between(own(65535), other(65535)), micros(4)),
        ];
        assert_eq!(known.latency, expected.into());
        assert_eq!(known.geo.keys().collect::<Vec<_>>(), [&own(1)]);
        let kinds = [(between(own(1), other(1)), LinkType::OpenNet)];
        assert_eq!(known.link_type, kinds.into());
    }
}
