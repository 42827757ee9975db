//! The services that an AS announces in its entry of a segment, so that others need not ask its
//! routers where they are (scionproto, `seg_extensions.proto`: `DiscoveryExtension`).

use std::net::SocketAddr;

use hawser_path::Discovery;
use hawser_proto::control_plane::DiscoveryExtension;
use hawser_topology::AsTopology;

/// The only version of the extension so far.
const VERSION: u32 = 1;

/// The services that an AS announces: those in its `topology.json`.
pub fn announced(topology: &AsTopology) -> Discovery {
    Discovery {
        control_services: topology.control_service.values().copied().collect(),
        discovery_services: topology.discovery_service.values().copied().collect(),
    }
}

/// The extension that announces `services`, if there are any.
pub(crate) fn extension(services: &Discovery) -> Option<DiscoveryExtension> {
    let texts = |list: &[SocketAddr]| {
        let texts = list.iter().map(SocketAddr::to_string);
        texts.map(String::into_bytes).collect()
    };
    (*services != Discovery::default()).then(|| DiscoveryExtension {
        version: VERSION,
        control_service_addresses: texts(&services.control_services),
        discovery_service_addresses: texts(&services.discovery_services),
    })
}
