//! Paths as the daemon's messages carry them.

use crate::{combine::Combined, graph::Graph};
use hawser_topology::{AsTopology, Shape};
use scion_protobuf::{
    buffa::{EnumValue, MessageField},
    buffa_types::{Duration, Timestamp},
    proto::daemon::v1::{
        GeoCoordinates, Interface, LinkType, Path, PathInterface, PathsResponse, Underlay,
    },
};

/// Life of the empty path inside an AS, in seconds: scionproto's `MaxTTL`.
const LOCAL_LIFETIME: u64 = 24 * 3600;

/// The one path to the AS itself: empty.
pub(crate) fn local_path(mtu: u16, now: u64) -> PathsResponse {
    PathsResponse {
        paths: vec![Path {
            mtu: mtu.into(),
            expiration: timestamp(now + LOCAL_LIFETIME),
            ..Path::default()
        }],
    }
}

/// Paths with all that the network says of their links and ASes.
pub(crate) fn paths(
    graph: &Graph,
    topology: &AsTopology,
    paths: &[Combined],
    expiry: u64,
) -> PathsResponse {
    PathsResponse {
        paths: paths
            .iter()
            .map(|path| message(graph, topology, path, expiry))
            .collect(),
    }
}

fn message(graph: &Graph, topology: &AsTopology, path: &Combined, expiry: u64) -> Path {
    let interfaces = graph.interfaces(path);
    let hops = path.links.len();
    let mut message = Path {
        raw: path.raw.clone(),
        interface: next_hop(topology, interfaces.first().map_or(0, |first| first.1)),
        mtu: graph.mtu(path).into(),
        expiration: timestamp(expiry),
        // No AS of a network says where it is.
        geo: vec![GeoCoordinates::default(); interfaces.len()],
        // The two routers of a link face each other over one cable, a veth.
        link_type: vec![EnumValue::Known(LinkType::Direct); hops],
        interfaces: interfaces
            .iter()
            .map(|&(isd_as, id)| PathInterface {
                isd_as: isd_as.to_u64(),
                id: id.into(),
            })
            .collect(),
        notes: path
            .ases
            .iter()
            .map(|&at| graph.r#as(at).note.clone().unwrap_or_default())
            .collect(),
        ..Path::default()
    };
    for (at, &link) in path.links.iter().enumerate() {
        if at > 0 {
            // Between two interfaces of one AS: no delay of its own, no limit,
            // and no hop unless they are of two routers.
            message.latency.push(Duration::default());
            message.bandwidth.push(0);
            let r#as = path.ases[at];
            let routers = [path.links[at - 1], link].map(|l| &graph.end(l, r#as).router);
            message
                .internal_hops
                .push(u32::from(routers[0] != routers[1]));
        }
        let shape = &graph.link(link).shape;
        message.latency.push(shape.delay.into());
        message.bandwidth.push(kbit(shape));
    }
    message
}

/// A link's limit in kbit/s; 0 says that it has none.
pub(crate) fn kbit(shape: &Shape) -> u64 {
    shape.rate.map_or(0, |rate| (rate / 1000).max(1))
}

/// The router that has an interface of the local AS.
fn next_hop(topology: &AsTopology, id: u16) -> MessageField<Interface> {
    topology
        .border_routers
        .values()
        .find(|router| router.interfaces.contains_key(&id))
        .map(|router| interface(router.internal_addr))
        .into()
}

pub(crate) fn interface(address: std::net::SocketAddr) -> Interface {
    Interface {
        address: Some(Underlay {
            address: address.to_string(),
        })
        .into(),
    }
}

pub(crate) fn timestamp(seconds: u64) -> MessageField<Timestamp> {
    Some(Timestamp {
        seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        ..Timestamp::default()
    })
    .into()
}
