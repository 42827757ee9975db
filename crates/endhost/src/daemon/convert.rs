//! Conversion of the daemon's messages. The daemon may be another implementation: every field is
//! checked, and nothing may panic.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use hawser_address::IsdAsn;
use hawser_packet::path::expiry;
use hawser_path::{Discovery, Geo, Interface, LinkType, Metadata};
use hawser_proto::daemon as pb;

use crate::local_as::LocalAs;
use crate::path::{Path, PathError};

/// SCION packets have at most 65535 bytes, but a daemon may announce a larger MTU.
fn mtu(mtu: u32) -> Result<u16, String> {
    match mtu {
        0 => Err("a path has the MTU 0".into()),
        mtu => Ok(u16::try_from(mtu).unwrap_or(u16::MAX)),
    }
}

fn interface_id(id: u64) -> Result<u16, String> {
    match u16::try_from(id) {
        Ok(id) if id != 0 => Ok(id),
        _ => Err(format!("{id} is not an interface id: ids are 1 to 65535")),
    }
}

fn router(interface: &pb::Interface) -> Result<SocketAddr, String> {
    let address = interface.address.as_ref();
    let address = address.map_or("", |underlay| &underlay.address);
    let parsed = address.parse();
    parsed.map_err(|_| format!("`{address}` is not a router address"))
}

pub(super) fn local_as(answer: pb::ASResponse) -> Result<LocalAs, String> {
    let isd_as = IsdAsn::from_u64(answer.isd_as);
    if isd_as.is_wildcard() {
        return Err(format!("{isd_as} is not an AS"));
    }
    Ok(LocalAs {
        isd_as,
        core: answer.core,
        mtu: mtu(answer.mtu)?,
    })
}

pub(super) fn interfaces(
    answer: pb::InterfacesResponse,
) -> Result<BTreeMap<u16, SocketAddr>, String> {
    answer
        .interfaces
        .iter()
        .map(|(id, interface)| Ok((interface_id(*id)?, router(interface)?)))
        .collect()
}

/// An AS without dispatched ports announces 0 to 0.
pub(super) fn port_range(answer: pb::PortRangeResponse) -> Result<RangeInclusive<u16>, String> {
    let (start, end) = (answer.dispatched_port_start, answer.dispatched_port_end);
    match (u16::try_from(start), u16::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end => Ok(start..=end),
        _ => Err(format!("{start} to {end} is not a port range")),
    }
}

/// One path from `src` to `dst`, or to one of the ASes that the wildcard `dst` stands for. Lists of
/// metadata without one entry per hop are left out; all
/// other fields must be valid.
pub(crate) fn path(src: IsdAsn, dst: IsdAsn, path: pb::Path) -> Result<Path, String> {
    if src == dst {
        return Ok(Path::within(src, mtu(path.mtu)?));
    }
    let interfaces = path
        .interfaces
        .iter()
        .map(|interface| {
            Ok(Interface {
                isd_as: IsdAsn::from_u64(interface.isd_as),
                id: interface_id(interface.id)?,
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    let dst = match interfaces.last() {
        Some(last) if dst.is_wildcard() && last.isd_as.isd() == dst.isd() => last.isd_as,
        _ => dst,
    };
    let announced = path
        .expiration
        .and_then(|expiration| u64::try_from(expiration.seconds).ok());
    let announced = announced.ok_or("a path has no expiry")?;
    // Routers check the hop fields, not the announced expiry.
    let carried = expiry(&path.raw).map_err(|error| PathError::from(error).to_string())?;
    let (ends, links) = (interfaces.len(), interfaces.len() / 2);
    let metadata = Metadata {
        mtu: mtu(path.mtu)?,
        expiry: announced.min(carried),
        latency: list(path.latency, ends.saturating_sub(1), |latency| {
            let seconds = u64::try_from(latency.seconds).ok()?;
            let nanos = u32::try_from(latency.nanos).ok()?;
            Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanos.into()))
        }),
        // In kbit/s; zero for an unknown bandwidth.
        bandwidth: list(path.bandwidth, ends.saturating_sub(1), |kbit| {
            (kbit != 0).then(|| kbit.saturating_mul(1000))
        }),
        geo: list(path.geo, ends, geo),
        link_types: list(path.link_type, links, link_type),
        internal_hops: list(path.internal_hops, links.saturating_sub(1), |hops| hops),
        notes: list(path.notes, links + 1, |note| note),
        discovery: path
            .discovery_information
            .into_iter()
            .map(|(isd_as, services)| (IsdAsn::from_u64(isd_as), discovery(services)))
            .filter(|(_, services)| *services != Discovery::default())
            .collect(),
    };
    let next_hop = path.interface.as_ref().map(router).transpose()?;
    let info = hawser_path::Path::new(src, dst, interfaces, metadata);
    let info = info.map_err(|error| error.to_string())?;
    Path::new(info, path.raw, next_hop).map_err(|error| error.to_string())
}

/// The services of an AS, without those whose addresses are invalid.
fn discovery(services: pb::DiscoveryInformation) -> Discovery {
    let read = |addresses: Vec<String>| {
        let read = addresses.iter().filter_map(|address| address.parse().ok());
        read.collect()
    };
    Discovery {
        control_services: read(services.control_service_addresses),
        discovery_services: read(services.discovery_service_addresses),
    }
}

/// `entries` converted; an empty list unless there are `expected` of them.
fn list<T, U>(entries: Vec<T>, expected: usize, convert: impl Fn(T) -> U) -> Vec<U> {
    if entries.len() == expected {
        entries.into_iter().map(convert).collect()
    } else {
        Vec::new()
    }
}

/// All zeroes mean an unknown position.
fn geo(geo: pb::GeoCoordinates) -> Option<Geo> {
    let known = geo.latitude != 0.0 || geo.longitude != 0.0 || !geo.address.is_empty();
    let sane = geo.latitude.abs() <= 90.0 && geo.longitude.abs() <= 180.0;
    (known && sane).then_some(Geo {
        latitude: geo.latitude,
        longitude: geo.longitude,
        address: geo.address,
    })
}

fn link_type(kind: i32) -> LinkType {
    match pb::LinkType::try_from(kind) {
        Ok(pb::LinkType::Direct) => LinkType::Direct,
        Ok(pb::LinkType::MultiHop) => LinkType::MultiHop,
        Ok(pb::LinkType::OpenNet) => LinkType::OpenNet,
        _ => LinkType::Unset,
    }
}

#[cfg(test)]
mod tests;
