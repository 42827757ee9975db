//! Compares paths combined from the segments of a reference network with those of its daemon.
//!
//! The files in `recorded/` are answers of scionproto v0.15 over gRPC in a network of its `default`
//! topology, with invented static information for most of the ASes. For a pair of ASes,
//! `SRC_DST.segments` is a `SegmentsResponse` that joins the answers of the control service of SRC
//! to the requests that a daemon sends (up, core and down segments by wildcards); `SRC_DST.paths`
//! is the `PathsResponse` of the daemon of SRC, recorded right after. Of the 240 recorded pairs a
//! few are kept.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hawser_address::IsdAsn;
use hawser_path::{Discovery, Geo, Interface, LinkType};
use hawser_proto::Message;
use hawser_proto::control_plane::{SegmentType, SegmentsResponse};
use hawser_proto::daemon::{self, PathsResponse};
use hawser_segment::{Combined, Segment, Segments, combine};

struct Recorded {
    src: IsdAsn,
    dst: IsdAsn,
    segments: Segments,
    paths: Vec<daemon::Path>,
}

fn read(segments: &Path) -> Recorded {
    let message = std::fs::read(segments).unwrap();
    let message = SegmentsResponse::decode(message.as_slice()).unwrap();
    let of = |kind: SegmentType| {
        let list = message.segments.get(&(kind as i32));
        let list = list.into_iter().flat_map(|list| &list.segments);
        list.map(|segment| Segment::from_message(segment).unwrap())
            .collect()
    };
    let paths = std::fs::read(segments.with_extension("paths")).unwrap();
    let name = segments.file_stem().unwrap().to_str().unwrap();
    // 1-ff00_0_110_2-ff00_0_220
    let ends = name.replace('_', ":");
    let dash = ends.rfind('-').unwrap();
    let colon = ends[..dash].rfind(':').unwrap();
    Recorded {
        src: ends[..colon].parse().unwrap(),
        dst: ends[colon + 1..].parse().unwrap(),
        segments: Segments {
            up: of(SegmentType::Up),
            core: of(SegmentType::Core),
            down: of(SegmentType::Down),
        },
        paths: PathsResponse::decode(paths.as_slice()).unwrap().paths,
    }
}

fn all() -> BTreeMap<String, Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let files = std::fs::read_dir(folder).unwrap();
    let mut found = BTreeMap::new();
    for file in files.map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|e| e == "segments") {
            let name = file.file_stem().unwrap().to_str().unwrap();
            found.insert(name.to_owned(), read(&file));
        }
    }
    assert!(found.len() >= 5, "the recorded files are gone");
    found
}

fn interfaces(path: &daemon::Path) -> Vec<Interface> {
    path.interfaces
        .iter()
        .map(|interface| Interface {
            isd_as: IsdAsn::from_u64(interface.isd_as),
            id: interface.id.try_into().unwrap(),
        })
        .collect()
}

fn check(ours: &Combined, theirs: &daemon::Path) {
    let metadata = &ours.path.metadata;
    assert_eq!(ours.path.interfaces, interfaces(theirs));
    assert_eq!(u32::from(metadata.mtu), theirs.mtu);
    assert_eq!(
        i64::try_from(metadata.expiry).unwrap(),
        theirs.expiration.unwrap().seconds
    );
    assert_eq!(ours.raw, theirs.raw);
    // The daemon sends -1 ns for a latency that is not announced.
    let latency: Vec<_> = theirs
        .latency
        .iter()
        .map(|l| {
            let nanos = u64::try_from(l.seconds * 1_000_000_000 + i64::from(l.nanos));
            nanos.ok().map(Duration::from_nanos)
        })
        .collect();
    assert_eq!(metadata.latency, latency);
    let bandwidth = theirs.bandwidth.iter().map(|&kbit| match kbit {
        0 => None,
        kbit => Some(1000 * kbit),
    });
    assert_eq!(metadata.bandwidth, bandwidth.collect::<Vec<_>>());
    let geo = theirs.geo.iter().map(|geo| {
        let geo = Geo {
            latitude: geo.latitude,
            longitude: geo.longitude,
            address: geo.address.clone(),
        };
        (geo != Geo::default()).then_some(geo)
    });
    assert_eq!(metadata.geo, geo.collect::<Vec<_>>());
    let link_types = theirs.link_type.iter().map(|&kind| match kind.try_into() {
        Ok(daemon::LinkType::Direct) => LinkType::Direct,
        Ok(daemon::LinkType::MultiHop) => LinkType::MultiHop,
        Ok(daemon::LinkType::OpenNet) => LinkType::OpenNet,
        _ => LinkType::Unset,
    });
    assert_eq!(metadata.link_types, link_types.collect::<Vec<_>>());
    assert_eq!(metadata.internal_hops, theirs.internal_hops);
    assert_eq!(metadata.notes, theirs.notes);
    let services = theirs
        .discovery_information
        .iter()
        .map(|(&isd_as, announced)| {
            let read = |list: &[String]| list.iter().map(|a| a.parse().unwrap()).collect();
            let services = Discovery {
                control_services: read(&announced.control_service_addresses),
                discovery_services: read(&announced.discovery_service_addresses),
            };
            (IsdAsn::from_u64(isd_as), services)
        });
    assert_eq!(metadata.discovery, services.collect());
    assert!(!metadata.discovery.is_empty());
}

#[test]
fn paths_equal_those_of_the_reference_daemon() {
    let (mut latencies, mut places, mut peerings) = (0, 0, 0);
    for (name, recorded) in all() {
        let Recorded { src, dst, .. } = recorded;
        let ours = combine(&recorded.segments, src, dst, usize::MAX);
        let list = |paths: &mut dyn Iterator<Item = Vec<Interface>>| {
            let paths = paths.map(|path| {
                let path: Vec<_> = path.iter().map(Interface::to_string).collect();
                path.join(" ")
            });
            paths.collect::<Vec<_>>()
        };
        assert_eq!(
            list(&mut ours.iter().map(|path| path.path.interfaces.clone())),
            list(&mut recorded.paths.iter().map(interfaces)),
            "{name}"
        );
        for (ours, theirs) in ours.iter().zip(&recorded.paths) {
            check(ours, theirs);
            latencies += ours.path.metadata.latency.iter().flatten().count();
            places += ours.path.metadata.geo.iter().flatten().count();
            // Bit 1 of this byte is the peering flag of the first info field.
            peerings += u32::from(ours.raw[4] & 2 != 0);
        }
    }
    // The comparison covered all of these.
    assert!(latencies > 100 && places > 100 && peerings > 0);
}
