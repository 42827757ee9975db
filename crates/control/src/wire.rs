//! Conversion of paths to the daemon's messages.

use std::net::SocketAddr;

use hawser_path::{Discovery, Geo, LinkType};
use hawser_proto::daemon::{
    DiscoveryInformation, GeoCoordinates, Interface, LinkType as LinkTypeMessage, Path,
    PathInterface, PathsResponse, Underlay,
};
use hawser_proto::well_known::{Duration, Timestamp};
use hawser_segment::Combined;
use hawser_topology::{AsTopology, Shape};

/// Lifetime of the empty path inside an AS, in seconds: scionproto's `MaxTTL`.
const LOCAL_LIFETIME: u64 = 24 * 3600;

/// The only path inside the AS, which is empty.
pub(crate) fn local_path(mtu: u16, now: u64) -> PathsResponse {
    PathsResponse {
        paths: vec![Path {
            mtu: mtu.into(),
            expiration: Some(Timestamp::from_unix_secs(now + LOCAL_LIFETIME)),
            ..Path::default()
        }],
    }
}

/// The message for paths with their metadata.
pub(crate) fn paths(topology: &AsTopology, paths: &[Combined]) -> PathsResponse {
    PathsResponse {
        paths: paths.iter().map(|path| message(topology, path)).collect(),
    }
}

fn message(topology: &AsTopology, path: &Combined) -> Path {
    let interfaces = &path.path.interfaces;
    let metadata = &path.path.metadata;
    Path {
        raw: path.raw.clone(),
        interface: next_hop(topology, interfaces.first().map_or(0, |first| first.id)),
        interfaces: interfaces
            .iter()
            .map(|interface| PathInterface {
                isd_as: interface.isd_as.to_u64(),
                id: interface.id.into(),
            })
            .collect(),
        mtu: metadata.mtu.into(),
        expiration: Some(Timestamp::from_unix_secs(metadata.expiry)),
        latency: metadata.latency.iter().map(latency).collect(),
        bandwidth: metadata
            .bandwidth
            .iter()
            .map(|bits| bits.map_or(0, |bits| bits / 1000))
            .collect(),
        geo: metadata.geo.iter().map(geo).collect(),
        link_type: metadata.link_types.iter().map(link_type).collect(),
        internal_hops: metadata.internal_hops.clone(),
        notes: metadata.notes.clone(),
        discovery_information: metadata
            .discovery
            .iter()
            .map(|(isd_as, services)| (isd_as.to_u64(), discovery(services)))
            .collect(),
    }
}

/// As in scionproto, -1 ns if no latency is announced.
fn latency(latency: &Option<std::time::Duration>) -> Duration {
    const UNKNOWN: Duration = Duration {
        seconds: 0,
        nanos: -1,
    };
    latency.map_or(UNKNOWN, Duration::from)
}

/// As in scionproto, all zeros if no place is announced.
fn geo(geo: &Option<Geo>) -> GeoCoordinates {
    let geo = geo.clone().unwrap_or_default();
    GeoCoordinates {
        latitude: geo.latitude,
        longitude: geo.longitude,
        address: geo.address,
    }
}

fn discovery(services: &Discovery) -> DiscoveryInformation {
    let texts = |list: &[SocketAddr]| list.iter().map(SocketAddr::to_string).collect();
    DiscoveryInformation {
        control_service_addresses: texts(&services.control_services),
        discovery_service_addresses: texts(&services.discovery_services),
    }
}

fn link_type(kind: &LinkType) -> i32 {
    let kind = match kind {
        LinkType::Direct => LinkTypeMessage::Direct,
        LinkType::MultiHop => LinkTypeMessage::MultiHop,
        LinkType::OpenNet => LinkTypeMessage::OpenNet,
        _ => LinkTypeMessage::Unspecified,
    };
    kind.into()
}

/// The rate limit of a link in kbit/s; 0 without a limit.
pub(crate) fn kbit(shape: &Shape) -> u64 {
    shape.rate.map_or(0, |rate| (rate / 1000).max(1))
}

/// The internal address of the router with interface `id` of the local AS.
fn next_hop(topology: &AsTopology, id: u16) -> Option<Interface> {
    topology
        .border_routers
        .values()
        .find(|router| router.interfaces.contains_key(&id))
        .map(|router| interface(router.internal_addr))
}

pub(crate) fn interface(address: SocketAddr) -> Interface {
    Interface {
        address: Some(Underlay {
            address: address.to_string(),
        }),
    }
}
